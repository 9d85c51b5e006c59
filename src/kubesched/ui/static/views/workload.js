// A workload: how many pods it wants and has, where they are, why the next one waits, how many more fit, what would help.

import { get, path } from "../api.js";
import { empty, fill, h, nodeLink, panel, podLink } from "../dom.js";
import { often } from "../often.js";
import { bar } from "../parts/bars.js";
import { helpPanel, podHelp } from "../parts/help.js";
import { pager, table } from "../parts/table.js";
import { tryIt } from "../parts/try-it.js";
import { verdictParts } from "../parts/verdict.js";
import { amounts, count, counted } from "../words.js";
import { phase } from "./list.js";

/** @typedef {import("../types").WorkloadView} WorkloadView */

/**
 * @param {import("../cluster.js").Cluster} cluster
 * @returns {import("../router.js").View}
 */
export const workload = (cluster) => async (root, route) => {
  const address = path("workloads", ...route.path.slice(1));
  /** @type {WorkloadView} */
  let view = await get(address);
  const summary = h("div", {}), verdict = h("div", { class: "verdict-parts", "aria-live": "polite" }), pods = h("div", {});
  let edited = false;
  const place = { offset: 0 };
  const judge = (/** @type {import("../types").Verdict | undefined} */ found, /** @type {string} */ words) => fill(verdict,
    found ? [h("h2", { class: "part" }, words), ...verdictParts(found)] : null);
  const show = () => {
    fill(summary, numbers(view), where(view));
    if (!edited) judge(view.verdict, view.line.phases["waiting"] ? `The next pod that waits: ${view.example}` : "Where one more would go");
    fill(pods, members(view, place, show));
  };
  show();
  const waits = !!view.line.phases["waiting"] && !!view.verdict && !view.verdict.node;
  fill(root, h("div", { class: "workload" },
    h("h1", {}, h("span", { class: "kind" }, view.line.kind), `${view.line.namespace}/${view.line.name}`),
    summary,
    view.example ? h("div", { class: "pod-columns" }, h("div", {}, verdict, pods),
      h("aside", {}, waits && cluster.about.experiments ? helpPanel("Look for changes", path("help", "pods", ...view.example.split("/")), podHelp) : null,
        tryIt({ pod: view.example, manifest: view.manifest, yaml: view.yaml }, (found) => {
          edited = true;
          judge(found, "As you edited it");
        }, (stale) => verdict.classList.toggle("stale", stale))))
      : empty("It has no pods.", "Nothing is known of what they would be like.")));
  const renew = async () => {
    view = await get(address);
    show();
  };
  return { leave: often(2000, renew, (again) => cluster.on("map", again)) };
};

/** @param {WorkloadView} view */
function numbers(view) {
  const { wanted, pods, phases, priority } = view.line, waiting = phases["waiting"] ?? 0;
  const cells = /** @type {[string, import("../dom.js").Child, string | null][]} */ ([
    wanted === undefined ? null : [view.line.kind === "PodGroup" ? "needs" : "wants", count(wanted), null],
    ["has", count(pods), wanted !== undefined && pods < wanted ? "bad" : null],
    ...Object.entries(phases).filter(([name, number]) => number && name !== "waiting").map(([name, number]) => [name, count(number), null]),
    ["waiting", count(waiting), waiting ? "bad" : null],
    view.room ? ["more would fit", `${view.room.atLeast ? "at least " : ""}${count(view.room.more)}`, view.room.more ? "good" : "bad"] : null,
  ].filter(Boolean));
  return h("section", { class: "panel" },
    h("dl", { class: "numbers" }, cells.map(([text, number, tone]) => h("div", {}, h("dt", {}, text), h("dd", { class: tone }, number)))),
    view.causes.length ? h("ul", { class: "reasons" }, view.causes.map(([cause, number]) =>
      h("li", { class: "bad" }, h("b", {}, `${counted(number, "pod")} waiting: `), cause))) : null,
    view.refusal ? h("p", { class: "bad" }, h("b", {}, "More of its pods are not created: "), view.refusal,
      view.refusal.includes("exceeded quota") ? ". A larger ResourceQuota, or pods that request less, would help." : null) : null,
    h("p", { class: "dim small" }, [
      `priority ${count(priority)}`, `each requests ${amounts(view.line.requests) || "nothing"}`,
      Object.keys(view.usage).length ? `all together use ${amounts(view.usage)} of ${amounts(view.requested)} requested` : "",
    ].filter(Boolean).join(" · ")),
    view.budgets.map((budget) => h("p", { class: "small" }, `Budget ${budget.name}: ${budget.says}, `,
      h("span", { class: budget.allowed ? null : "bad" }, `${counted(budget.allowed, "pod")} may leave now`))));
}

/** @param {WorkloadView} view */
function where(view) {
  if (!view.nodes.length) return null;
  const most = Math.max(...view.nodes.map(([, number]) => number)), top = Math.max(1, ...view.zones.map(([, number]) => number));
  const lines = (/** @type {[import("../dom.js").Child, number][]} */ rows, /** @type {number} */ all) => h("ol", { class: "spread" }, rows.map(([name, number]) =>
    h("li", {}, h("span", { class: "name" }, name), bar(number / all), h("span", { class: "number" }, count(number)))));
  return h("div", { class: "columns" },
    view.zones.length > 1 ? panel("Pods by zone", "", lines(view.zones.map(([name, number]) => [name || "no zone", number]), top)) : null,
    panel(`Pods by node (${counted(view.line.nodes, "node")})`, "", lines(view.nodes.slice(0, 12).map(([name, number]) => [nodeLink(name), number]), most),
      view.line.nodes > 12 ? h("p", { class: "dim small" }, `and ${counted(view.line.nodes - 12, "node")} more`) : null));
}

/** @param {WorkloadView} view @param {{ offset: number }} place @param {() => void} show */
function members(view, place, show) {
  const shown = view.members.slice(place.offset, place.offset + 100);
  return panel("Pods", "", table(["Pod", "Phase", "Node"],
    shown.map(([pod, state, node]) => [podLink(pod), phase(state), node ? nodeLink(node) : ""]), "Pods of this workload"),
  pager(place, shown.length, view.members.length, show));
}
