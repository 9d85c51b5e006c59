// A pod: where it is or why it waits, the verdict of this moment, the history of attempts, and a place to try things.

import { get, path } from "../api.js";
import { fill, h, nodeLink, panel, workloadLink } from "../dom.js";
import { often } from "../often.js";
import { decisionLine } from "../parts/decisions.js";
import { helpPanel, podHelp } from "../parts/help.js";
import { tryIt } from "../parts/try-it.js";
import { verdictParts } from "../parts/verdict.js";
import { ago, count, counted, duration } from "../words.js";
import { phase } from "./list.js";

/**
 * @param {import("../cluster.js").Cluster} cluster
 * @returns {import("../router.js").View}
 */
export const pod = (cluster) => async (root, route) => {
  const address = path("pods", route.path[1] ?? "", route.path[2] ?? "");
  /** @type {import("../types").PodView} */
  let view = await get(address);
  const facts = h("div", { class: "facts" }), verdict = h("div", { class: "verdict-parts", "aria-live": "polite" });
  const history = h("div", {});
  let edited = false;
  const show = (/** @type {import("../types").Verdict | undefined} */ found, /** @type {boolean} */ own) => {
    edited ||= own;
    fill(verdict, found ? [note(view, edited), ...verdictParts(found)]
      : h("p", { class: "empty" }, `This pod waits for the scheduler ${view.scheduler}, which is not this one.`));
  };
  const about = () => {
    fill(facts, ...describe(view));
    fill(history, historyOf(view));
  };
  about();
  show(view.verdict, false);
  fill(root, h("div", { class: "pod" },
    h("h1", {}, h("span", { class: "kind" }, "pod"), view.pod), facts,
    h("div", { class: "pod-columns" }, h("div", {}, verdict, history),
      h("aside", {}, stuck(view) && cluster.about.experiments ? helpPanel("Look for changes", path("help", "pods", ...route.path.slice(1)), podHelp) : null,
        tryIt(view, (found) => show(found, true), (stale) => verdict.classList.toggle("stale", stale))))));
  const renew = async () => {
    view = await get(address);
    about();
    if (!edited) show(view.verdict, false);
  };
  return { leave: often(2000, renew, (again) => cluster.on("decisions", again)) };
};

/** Whether it waits and nothing that the scheduler does now gives it a node. @param {import("../types").PodView} view */
function stuck(view) {
  return !view.node && !!view.verdict && (!view.verdict.node || !!view.verdict.gate);
}

/** @param {import("../types").PodView} view */
function describe(view) {
  const waiting = view.waiting;
  const where = view.node ? h("span", {}, phase(view.phase), " on ", nodeLink(view.node)) : h("span", { class: view.verdict?.node ? "good" : "bad" }, view.cause || "waits");
  return [
    where,
    h("span", {}, `priority ${count(view.priority)}`),
    view.workload[1] === "Pod" ? h("span", {}, "no owner") : h("span", {}, `of ${view.workload[1]} `, workloadLink(view.workload)),
    view.podGroup ? h("span", {}, "in the group ", workloadLink([view.workload[0], "PodGroup", view.podGroup], view.podGroup)) : null,
    view.nominatedNode ? h("span", {}, "room is being made on ", nodeLink(view.nominatedNode)) : null,
    waiting?.place ? h("span", {}, `${waiting.place}, ${counted(waiting.attempts, "attempt")}`) : null,
    waiting?.waitsSeconds !== undefined ? h("span", {}, `waits for ${duration(waiting.waitsSeconds)}`) : null,
    waiting?.triedSeconds !== undefined ? h("span", {}, `last tried ${ago(waiting.triedSeconds)}`) : null,
    waiting?.nextTrySeconds !== undefined ? h("span", {}, `next try in ${duration(waiting.nextTrySeconds)}`) : null,
    view.wakes.length ? h("span", { class: "dim" }, `woken by ${view.wakes.join(", ")}`) : null,
  ];
}

/** @param {import("../types").PodView} view @param {boolean} edited */
function note(view, edited) {
  if (edited) return h("p", { class: "note" }, "This is the pod as you edited it, on the cluster as it is now.");
  if (view.node) return h("p", { class: "note" }, "It has its node. This is where one more like it would go now.");
  return null;
}

/** @param {import("../types").PodView} view */
function historyOf(view) {
  if (!view.history.length) return null;
  return panel("History of attempts", "", h("ol", { class: "decisions" },
    [...view.history].reverse().map((entry) => decisionLine(entry, view.now, true))));
}
