// A verdict: the outcome in a sentence, the funnel of nodes, nearest misses, score bars, and whom preemption would take.

import { h, nodeLink, panel, podLink } from "../dom.js";
import { agreeing, count, counted } from "../words.js";
import { stacked } from "./bars.js";
import { table } from "./table.js";

/** @typedef {import("../types").Verdict} Verdict */
const MISSES = 4;

/** The outcome. @param {Verdict} verdict */
export function headline(verdict) {
  const fits = verdict.node !== "";
  const word = verdict.outcome === "gated" ? "held back" : fits ? "fits" : verdict.outcome === "error" ? "broken" : "fits nowhere";
  return h("p", { class: `headline ${fits && word === "fits" ? "good" : "bad"}` },
    h("span", { class: "verdict" }, word),
    fits ? h("span", {}, "goes to ", nodeLink(verdict.node), why(verdict)) : h("span", {}, verdict.message || "no node would do"),
    h("span", { class: "dim" }, ` ${count(verdict.fitting)} of ${counted(verdict.nodes, "node")} ${agreeing(verdict.fitting, "fit")}`),
    verdict.gate ? h("span", { class: "gate" }, ` Held back by ${verdict.gate}. Without that:`) : null);
}

/** @param {Verdict} verdict */
function why(verdict) {
  if (verdict.nominated) return ", where room was made for it";
  if (verdict.fitting === 1) return ", the only node that fits";
  const ties = verdict.ranking?.ties ?? 1;
  return ties > 1 ? `, drawn among ${count(ties)} equals` : ", the best of those that fit";
}

/** @param {Verdict} verdict */
export function funnel(verdict) {
  const most = Math.max(verdict.nodes, 1);
  const line = (/** @type {string} */ name, /** @type {number} */ nodes, /** @type {number} */ lost, /** @type {any} */ words) =>
    h("li", {},
      h("span", { class: "name" }, name),
      h("span", { class: "lane", role: "img", "aria-label": `${counted(nodes, "node")} left${lost ? `, ${count(lost)} rejected` : ""}` },
        h("span", { class: "kept", style: { "--share": `${(nodes / most) * 100}%` } }),
        h("span", { class: "lost", style: { "--share": `${(lost / most) * 100}%` } })),
      h("span", { class: "number" }, count(nodes)),
      words);
  return panel("Funnel of nodes", "funnel", h("ol", {},
    line("all nodes", verdict.nodes, 0, null),
    verdict.funnel.map((step) => line(step.plugin, step.passed, step.came - step.passed, reasons(step))),
    verdict.silent ? h("li", { class: "quiet" }, `${counted(verdict.silent, "other filter")} let every node pass`) : null));
}

/** @param {import("../types").Step} step */
function reasons(step) {
  return h("ul", { class: "reasons" }, step.reasons.map((reason) =>
    h("li", {}, h("b", {}, `−${count(reason.nodes)}`), ` ${reason.text}`,
      reason.examples.length ? h("span", { class: "dim" }, " such as ", reason.examples.map((name, i) =>
        h("span", {}, i ? ", " : "", nodeLink(name)))) : null)));
}

/** @param {Verdict} verdict */
export function misses(verdict) {
  if (!verdict.misses.length) return null;
  const rows = verdict.misses.map((miss) => [nodeLink(miss.node), h("span", {}, miss.text, h("span", { class: "by" }, ` · ${miss.plugins.join(", ")}`))]);
  const lines = (/** @type {typeof rows} */ some) => table(["Node", "In the way"], some, "Nodes that nearly fit");
  return panel("Nearest misses", "misses", lines(rows.slice(0, MISSES)),
    rows.length > MISSES ? h("details", {}, h("summary", {}, `${count(rows.length - MISSES)} more`), lines(rows.slice(MISSES))) : null);
}

/** @param {Verdict} verdict */
export function scores(verdict) {
  const ranking = verdict.ranking;
  if (!ranking || !ranking.nodes.length) return null;
  const most = Math.max(...ranking.nodes.map((node) => node.total), 1);
  const telling = ranking.plugins.map(([, ], i) => new Set(ranking.nodes.map((node) => node.parts[i])).size > 1);
  return panel("Scores of nodes that fit", "scores",
    lead(verdict),
    h("ol", {}, ranking.nodes.map((node) => h("li", { class: node.node === verdict.node ? "winner" : null },
      h("span", { class: "name" }, nodeLink(node.node)),
      stacked(node.parts.map((value, i) => ({ name: ranking.plugins[i]?.[0] ?? "", value })), most),
      h("span", { class: "number" }, count(node.total))))),
    h("p", { class: "legend" }, ranking.plugins.map(([name, weight], i) =>
      h("span", { class: telling[i] ? null : "dim", title: telling[i] ? "tells nodes apart" : "equal for all of these" },
        h("i", { class: `tint tint-${i % 8}` }), `${name} ×${weight}`))),
    ranking.scored > ranking.nodes.length
      ? h("p", { class: "dim" }, `${ranking.nodes.length} of ${counted(ranking.scored, "node")} that were scored.`) : null);
}

/** @param {Verdict} verdict */
function lead(verdict) {
  if (!verdict.lead) return null;
  const parts = verdict.lead.parts.map(([name, points]) => `${name} ${points > 0 ? "+" : "−"}${Math.abs(points)}`);
  return h("p", {}, "Ahead of ", nodeLink(verdict.lead.over), ` by ${counted(verdict.lead.points, "point")}: ${parts.join(", ")}.`);
}

/** @param {Verdict} verdict */
export function preemption(verdict) {
  const eviction = verdict.eviction;
  if (!eviction) return null;
  const words = eviction.budgetViolations
    ? h("p", { class: "bad" }, `${counted(eviction.budgetViolations, "victim")} may not be disrupted now: a budget would be broken.`) : null;
  return panel("Whom preemption would take", "preemption",
    h("p", {}, `${counted(eviction.victims.length, "pod")} would have to leave `, nodeLink(eviction.node), "."), words,
    table(["Victim", { text: "Priority", right: true }, "Guarded by"], eviction.victims.map((victim) => [
      podLink(victim.pod), count(victim.priority), victim.budgets.join(", ") || "no disruption budget",
    ]), "Victims"));
}

/** All of it. @param {Verdict} verdict */
export function verdictParts(verdict) {
  const right = [scores(verdict), preemption(verdict)].filter(Boolean);
  return [headline(verdict), right.length
    ? h("div", { class: "columns" }, h("div", {}, funnel(verdict), misses(verdict)), h("div", {}, right))
    : h("div", { class: "columns" }, funnel(verdict), misses(verdict))];
}
