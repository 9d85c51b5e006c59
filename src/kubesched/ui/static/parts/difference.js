// The difference that changes make: who moves, who waits and why, who is evicted, which budgets break, how full it gets.

import { empty, h, nodeLink, panel, podLink, workloadLink } from "../dom.js";
import { count, percent } from "../words.js";
import { table } from "./table.js";

/** @param {import("../types").WhatIfView} view */
export function difference(view) {
  const it = view.difference;
  const numbers = /** @type {[string, number, boolean][]} */ ([
    ["pods move", view.pods.moved ?? 0, false], ["pods will wait", view.pods.waiting ?? 0, true], ["pods find a place", view.pods.placed ?? 0, false],
    ["pods are gone for good", view.pods.gone ?? 0, true], ["pods are evicted for others", view.pods.evicted ?? 0, true],
  ]);
  if (!numbers.some(([, number]) => number)) {
    return [panel("The difference", "difference", empty("No pod is treated otherwise.")), fullness(it)];
  }
  return [
    panel("The difference", "difference", h("dl", { class: "numbers" }, numbers.map(([text, number, bad]) =>
      h("div", {}, h("dt", {}, text), h("dd", { class: bad && number ? "bad" : number ? null : "dim" }, count(number))))),
    it.interrupted.length ? h("p", { class: "bad" }, "Jobs that are interrupted, and lose their work: ",
      it.interrupted.slice(0, 20).map((pod, i) => h("span", {}, i ? ", " : "", podLink(pod))), it.interrupted.length > 20 ? ` and ${count(it.interrupted.length - 20)} more` : "") : null),
    workloads(view),
    h("div", { class: "columns" }, fullness(it), budgets(it)),
    it.evictions.length ? panel("Who is evicted", "", table(["For", "Node", "Who has to go"],
      it.evictions.map((each) => [podLink(each.preemptor), nodeLink(each.node), each.victims.join(", ")]), "Evictions")) : null,
    details("Every pod that moves", it.moved, view.pods.moved), details("Every pod that finds a place", it.placed, view.pods.placed),
    waits(view),
    it.gone.length ? h("details", { class: "panel" }, h("summary", {}, `Every pod that is gone for good (${count(view.pods.gone ?? 0)})`), h("p", {}, it.gone.join(", "))) : null,
  ];
}

/** Whom it touches. @param {import("../types").WhatIfView} view */
function workloads(view) {
  const number = (/** @type {number | undefined} */ value, /** @type {boolean} */ bad) => (value ? h("span", { class: bad ? "bad" : null }, count(value)) : "");
  return panel("By workload", "by-workload", table(
    ["Workload", { text: "Wait", right: true }, { text: "Evicted", right: true }, { text: "Gone", right: true }, { text: "Move", right: true },
      { text: "Placed", right: true }, "Why they wait"],
    view.workloads.map((each) => [workloadLink(each.workload), number(each.pods.waiting, true), number(each.pods.evicted, true), number(each.pods.gone, true),
      number(each.pods.moved, false), number(each.pods.placed, false),
      each.reasons.length ? h("span", {}, each.reasons.map(([reason]) => h("span", { class: "reason" }, reason))) : ""]), "By workload"));
}

/** @param {import("../types").WhatIfView} view */
function waits(view) {
  const pods = view.difference.waiting;
  if (!pods.length) return null;
  return h("details", { class: "panel waits" }, h("summary", {}, `Every pod that waits${cut(pods.length, view.pods.waiting)}`),
    table(["Pod", "Was on", ""], pods.map((each) => [podLink(each.pod), each.fromNode ? nodeLink(each.fromNode) : "", owned(each)]), "Pods that wait"));
}

/** @param {string} title @param {import("../types").Moved[]} pods @param {number | undefined} all */
function details(title, pods, all) {
  if (!pods.length) return null;
  return h("details", { class: "panel moves" }, h("summary", {}, `${title}${cut(pods.length, all)}`), table(["Pod", "From", "To", ""],
    pods.map((each) => [podLink(each.pod), each.fromNode ? nodeLink(each.fromNode) : "", nodeLink(each.toNode), owned(each)]), title));
}

/** @param {{ unmanaged: boolean, isNew: boolean }} pod */
function owned(pod) {
  return pod.unmanaged ? h("span", { class: "bad", title: "It has no owner, so nobody makes it anew once it is gone." }, "no owner") : pod.isNew ? "new" : "";
}

/** @param {import("../types").WhatIf} it */
function budgets(it) {
  const kept = (/** @type {import("../types").WhatIf["budgets"][0]} */ each) =>
    each.short ? h("span", { class: "bad" }, "too few are up") : each.slows ? "slows a drain down" : "is kept";
  return it.budgets.length ? panel("Disruption budgets", "", table(
    ["Budget", { text: "Wanted", right: true }, { text: "Up before", right: true }, { text: "After", right: true }, { text: "Leave", right: true }, ""],
    it.budgets.map((each) => [each.budget, count(each.wanted), count(each.before), count(each.after), count(each.leaving), kept(each)]),
    "Disruption budgets")) : null;
}

/** @param {import("../types").WhatIf} it */
function fullness(it) {
  const names = Object.keys(it.total.resources).filter((name) => it.total.resources[name]?.before || it.total.resources[name]?.after);
  const rows = it.zones.length > 1 ? [...it.zones, it.total] : [it.total];
  const change = (/** @type {number | undefined} */ before, /** @type {number | undefined} */ after, /** @type {(n: number) => string} */ text) =>
    [...new Set([before, after].map((value) => (value === undefined ? "–" : text(value))))].join(" → ");
  return panel("How full it gets", "", table(
    ["Zone", { text: "Nodes", right: true }, { text: "Pods", right: true }, ...names.map((name) => ({ text: name, right: true }))],
    rows.map((zone) => [zone.name, change(zone.nodes.before, zone.nodes.after, count), change(zone.pods.before, zone.pods.after, count),
      ...names.map((name) => change(zone.resources[name]?.before, zone.resources[name]?.after, percent))]), "How full it gets"));
}

/** @param {number} shown @param {number} [all] */
function cut(shown, all = shown) {
  return shown < all ? ` (the first ${count(shown)} of ${count(all)})` : ` (${count(all)})`;
}
