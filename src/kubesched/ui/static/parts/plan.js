// "Find me a plan": what is wanted, the plan with its bound, and its waves, played on the map one after another.

import { post } from "../api.js";
import { h, nodeLink, panel, podLink } from "../dom.js";
import { counted } from "../words.js";
import { SlowAnswer } from "./slow.js";
import { table } from "./table.js";

const WAVE_MS = 900;
const GOALS = /** @type {[string, string][]} */ ([
  ["free", "empty nodes"], ["domain", "empty a whole group of nodes"], ["fit", "make room for all pods that wait"], ["queue", "place the queue as a whole"]]);

/**
 * @param {import("../cluster.js").Cluster} cluster
 * @param {{ load: (was: import("../types").NodeMap, would: import("../types").NodeMap) => void,
 *   change: (wave: import("../types").MapChanges) => void }} maps where the plan is drawn
 */
export function planning(cluster, maps) {
  const goal = h("select", { id: "goal" }, GOALS.map(([value, text]) => h("option", { value }, text)));
  const number = h("input", { id: "plan-nodes", type: "number", min: 1, value: 1 });
  const find = h("button", { type: "button" }, "Find me a plan");
  const found = h("div", { "aria-live": "polite" });
  let timer = 0;

  const play = (/** @type {import("../types").PlanView} */ view) => {
    clearTimeout(timer);
    maps.load(view.before, view.before);
    const said = /** @type {HTMLElement} */ (found.querySelector("output"));
    const step = (/** @type {number} */ i) => {
      const wave = view.waves[i];
      if (!wave) return maps.load(view.before, view.after);
      maps.change(wave);
      said.textContent = `Wave ${i + 1} of ${view.waves.length}`;
      timer = setTimeout(() => step(i + 1), WAVE_MS);
    };
    step(0);
  };
  const answer = new SlowAnswer(found, "A plan is being looked for, and checked by the scheduler.");
  const ask = async () => {
    find.disabled = true;
    const question = { goal: goal.value === "domain" ? "free" : goal.value, nodes: Number(number.value) || 1, domain: goal.value === "domain" ? cluster.groupBy : "" };
    await answer.ask((signal) => post(`api/plan?group=${encodeURIComponent(cluster.groupBy)}`, question, signal), (/** @type {import("../types").PlanView} */ view) => {
      maps.load(view.before, view.after);
      const again = view.waves.length ? h("button", { type: "button", class: "play", on: { click: () => play(view) } }, "Play the waves") : null;
      return [...plan(view.plan), h("p", { class: "note" }, again, " ", h("output", {}))];
    });
    find.disabled = false;
  };
  find.addEventListener("click", ask);
  const element = h("details", { class: "panel plan" }, h("summary", {}, "Find me a plan"),
    h("p", { class: "map-controls" }, h("label", { for: "goal" }, "I want to"), goal, h("label", { for: "plan-nodes" }, "how many"), number, find), found);
  return { element, leave: () => { clearTimeout(timer); answer.leave(); } };
}

/** @param {import("../types").Plan} plan */
function plan(plan) {
  const parts = [
    plan.nodes.length ? counted(plan.nodes.length, "node") + " freed" : "",
    plan.moves.length ? `${counted(plan.moves.length, "move")} in ${counted(Math.max(...plan.moves.map((move) => move.wave)), "wave")}` : "",
    plan.placements.length ? counted(plan.placements.length, "pod") + " placed" : "",
    plan.waiting.length ? `${plan.waiting.length} left waiting` : "",
  ].filter(Boolean);
  const { bound, check } = plan;
  return [
    h("h3", {}, `${plan.goal}: ${plan.outcome}`),
    h("p", { class: plan.outcome === "found" ? "good" : "bad" }, [parts.join(", "), plan.reason].filter(Boolean).join(". ") || "Nothing to do", "."),
    bound ? h("p", {}, `${format(plan.value)} ${bound.unit}; no plan does better than ${format(bound.value)}.`) : null,
    bound?.scarce.length ? h("p", { class: "dim" }, `What sets that limit: ${bound.scarce.map((each) => `${each.what} (${Math.round(each.share * 100)} %)`).join(", ")}.`) : null,
    check?.needsNominations ? h("p", { class: "bad" }, "Each pod has to be nominated to its node: left to itself, the scheduler may choose others.") : null,
    plan.moves.length ? panel("Moves", "", table([{ text: "Wave", right: true }, "Pod", "From", "To"],
      plan.moves.slice(0, 500).map((move) => [move.wave, podLink(move.pod), nodeLink(move.fromNode), nodeLink(move.toNode)]), "Moves")) : null,
    plan.placements.length ? panel("Placed", "", table(["Pod", "Node"], plan.placements.slice(0, 500).map((each) => [podLink(each.pod), nodeLink(each.node)]), "Placed")) : null,
    check ? h("p", { class: "dim" }, `Checked: ${check.how.join("; ")}.`) : null,
  ];
}

/** @param {number} value */
function format(value) {
  return Number.isInteger(value) ? String(value) : value.toFixed(2);
}
