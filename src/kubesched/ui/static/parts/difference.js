// The difference that changes make: who moves, who waits and why, who is evicted, which budgets break, how full it gets.

import { empty, h, nodeLink, panel, podLink } from "../dom.js";
import { count, counted, percent, short } from "../words.js";
import { table } from "./table.js";

/** @param {import("../types").WhatIfView} view */
export function difference(view) {
  const it = view.difference;
  const numbers = /** @type {[string, number, boolean][]} */ ([
    ["move", view.moved, false], ["wait because of it", view.waiting, true], ["find a place", view.placed, false],
    ["are gone", view.gone, true], ["are evicted by others", view.evicted, true],
  ]);
  if (!numbers.some(([, number]) => number)) {
    return [panel("The difference", "difference", empty("No pod is treated otherwise.")), fullness(it)];
  }
  return [
    panel("The difference", "difference", h("dl", { class: "numbers" }, numbers.map(([text, number, bad]) =>
      h("div", {}, h("dt", {}, text), h("dd", { class: bad && number ? "bad" : null }, count(number)))))),
    waits(view),
    h("div", { class: "columns" }, moves("Who moves", it.moved, view.moved), moves("Who finds a place", it.placed, view.placed)),
    it.evictions.length ? panel("Who is evicted", "", table(["For", "Node", "Who has to go"],
      it.evictions.map((each) => [each.preemptor, nodeLink(each.node), each.victims.join(", ")]), "Evictions")) : null,
    it.gone.length ? panel(`Who is gone for good (${count(view.gone)})`, "", h("p", {}, it.gone.join(", "))) : null,
    budgets(it), fullness(it),
  ];
}

/** By reason. @param {import("../types").WhatIfView} view */
function waits(view) {
  /** @type {Map<string, import("../types").WhatIf["waiting"]>} */
  const reasons = new Map();
  for (const each of view.difference.waiting) reasons.set(each.reason, [...(reasons.get(each.reason) ?? []), each]);
  if (!reasons.size) return null;
  return panel(`Who waits${cut(view.difference.waiting.length, view.waiting)}`, "waits", ...[...reasons].map(([reason, pods]) => h("div", { class: "help-group" },
    h("h3", {}, `${counted(pods.length, "pod")}: ${reason}`),
    table(["Pod", "Was on", ""], pods.map((each) => [podLink(each.pod), each.fromNode ? nodeLink(each.fromNode) : "", owned(each)]), "Pods that wait"))));
}

/** @param {string} title @param {import("../types").Moved[]} pods @param {number} all */
function moves(title, pods, all) {
  if (!pods.length) return null;
  return panel(`${title}${cut(pods.length, all)}`, "moves", table(["Pod", "From", "To", ""],
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
  const names = Object.keys(it.total.resources);
  const rows = it.zones.length > 1 ? [...it.zones, it.total] : [it.total];
  const change = (/** @type {number | undefined} */ before, /** @type {number | undefined} */ after, /** @type {(n: number) => string} */ text) =>
    `${before === undefined ? "–" : text(before)} → ${after === undefined ? "–" : text(after)}`;
  return panel("How full it gets", "", table(
    ["Zone", { text: "Nodes", right: true }, { text: "Pods", right: true }, ...names.map((name) => ({ text: short(name), right: true }))],
    rows.map((zone) => [zone.name, change(zone.nodes.before, zone.nodes.after, count), change(zone.pods.before, zone.pods.after, count),
      ...names.map((name) => change(zone.resources[name]?.before, zone.resources[name]?.after, percent))]), "How full it gets"));
}

/** @param {number} shown @param {number} all */
function cut(shown, all) {
  return shown < all ? ` (the first ${count(shown)} of ${count(all)})` : ` (${count(all)})`;
}
