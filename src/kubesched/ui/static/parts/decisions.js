// The decisions as they happen, the newest first.

import { fill, h, nodeLink, podLink } from "../dom.js";
import { count, counted, duration } from "../words.js";

const WORDS = /** @type {Record<string, string>} */ ({
  bound: "bound", preempts: "preempts", unschedulable: "waits", error: "error",
  "bind-error": "bind error", "bind-unschedulable": "refused",
});

/**
 * @param {import("../cluster.js").Cluster} cluster
 * @param {number} most
 */
export function decisionList(cluster, most) {
  const list = h("ol", { class: "decisions" });
  /** @type {import("../types").DecisionEntry[]} */
  let shown = [];
  const show = () => {
    if (!cluster.decisions.length) {
      fill(list, h("li", { class: "empty" }, cluster.about.live
        ? "No decision yet. Create a pod, and it shows up here."
        : "Nothing is scheduled here: this is a cluster that stands still."));
      return;
    }
    shown = cluster.decisions.slice(0, most);
    fill(list, shown.map((entry) => decisionLine(entry, cluster.time())));
  };
  const age = () => list.querySelectorAll(".when").forEach((element, i) => {
    const entry = shown[i];
    if (entry) element.textContent = when(entry, cluster.time());
  });
  show();
  const stop = cluster.on("decisions", show), timer = setInterval(age, 1000);
  return { list, stop: () => { stop(); clearInterval(timer); } };
}

/** @param {import("../types").DecisionEntry} entry @param {number} now @param {boolean} [own] without the pod's name */
export function decisionLine(entry, now, own = false) {
  const good = entry.outcome === "bound";
  return h("li", { class: good ? "good" : "bad" },
    h("span", { class: "what" }, WORDS[entry.outcome] ?? entry.outcome),
    h("span", { class: "who" },
      own ? attempts(entry) : podLink(entry.pod),
      entry.node ? " → " : null, entry.node ? nodeLink(entry.node) : null),
    h("span", { class: "when dim" }, when(entry, now)),
    h("span", { class: "why dim" }, entry.text));
}

/** Equal ones in a row are one line. @param {import("../types").DecisionEntry} entry */
function attempts(entry) {
  return entry.times > 1 ? `${counted(entry.times, "attempt")}, up to attempt ${count(entry.attempt)}` : `attempt ${count(entry.attempt)}`;
}

/** @param {import("../types").DecisionEntry} entry @param {number} now */
function when(entry, now) {
  const last = duration(Math.max(now - entry.at, 0));
  return entry.times > 1 && typeof entry.first === "number" ? `${duration(Math.max(now - entry.first, 0))} to ${last} ago` : `${last} ago`;
}
