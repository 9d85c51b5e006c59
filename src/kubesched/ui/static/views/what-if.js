// What if: drain, lose and add nodes by clicking them, change weights; two maps, and who moved, who waits and why.

import { post } from "../api.js";
import { fill, h } from "../dom.js";
import { CHOSEN, Columns } from "../map/columns.js";
import { legend } from "../map/legend.js";
import { NodeMapView } from "../map/map.js";
import { difference } from "../parts/difference.js";
import { planning } from "../parts/plan.js";
import { SlowAnswer } from "../parts/slow.js";
import { questionIn, questionText, isEmpty } from "../question.js";
import { short } from "../words.js";

const SOON_MS = 400;
const MODES = /** @type {[("drain" | "lose" | "gone" | "add"), string][]} */ ([
  ["drain", "drains it"], ["lose", "makes it fail"], ["gone", "deletes it"], ["add", "adds one like it"]]);

/**
 * @param {import("../cluster.js").Cluster} cluster
 * @returns {import("../router.js").View}
 */
export const whatIf = (cluster) => async (root, route) => {
  const question = questionIn(route.query);
  const sides = { before: side(), after: side() };
  let flags = new Uint8Array();
  let mode = MODES[0]?.[0] ?? "drain";
  let timer = 0;

  const choose = (/** @type {string} */ node) => {
    if (mode === "add") question.add[node] = (question.add[node] ?? 0) + 1;
    else toggle(question[mode], node);
    changed();
  };
  const before = new NodeMapView(sides.before, undefined, { label: "The cluster as it is: choose nodes", chosen: choose });
  const after = new NodeMapView(sides.after, undefined, { label: "The cluster as it would be", chosen: () => {} });
  const key = legend(cluster, before, () => (isEmpty(question) || !sides.after.columns.names.length ? cluster.columns : sides.after.columns));
  const chips = h("div", { class: "chips" }), result = h("div", { "aria-live": "polite" }), sliders = h("div", {});
  const answer = new SlowAnswer(result, "Both sides are being simulated.");
  const tools = h("div", { class: "map-controls" });

  const toolbar = () => {
    const clicking = h("select", { id: "mode" }, MODES.map(([value, text]) => h("option", { value, selected: value === mode }, text)));
    clicking.addEventListener("change", () => (mode = /** @type {typeof mode} */ (clicking.value)));
    const groups = [...new Set(cluster.columns.groups)].filter(Boolean).sort();
    const zone = h("select", { id: "zone" }, h("option", { value: "" }, "none chosen"), groups.map((name) => h("option", { value: name }, name)));
    zone.addEventListener("change", () => {
      if (zone.value && mode !== "add") toggle(question[mode], `${cluster.groupBy}=${zone.value}`);
      zone.value = "";
      changed();
    });
    fill(tools,
      h("span", {}, h("label", { for: "mode" }, "A click on a node"), clicking),
      groups.length ? h("span", {}, h("label", { for: "zone" }, `or on all nodes of one ${short(cluster.groupBy)}`), zone) : null,
      h("button", { type: "button", class: "link", on: { click: copyLink } }, "Copy link"),
      h("button", { type: "button", class: "download", on: { click: download } }, "Download as a page"));
  };
  const copyLink = async (/** @type {Event} */ event) => {
    await navigator.clipboard?.writeText(location.href).catch(() => {});
    /** @type {HTMLElement} */ (event.target).textContent = "Copied";
  };
  const download = async () => {
    const response = await fetch("api/what-if/page", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body(question, cluster.groupBy)),
    });
    if (!response.ok) return;
    const address = URL.createObjectURL(await response.blob());
    h("a", { href: address, download: "what-if.html" }).click();
    URL.revokeObjectURL(address);
  };

  const showChips = () => {
    const chip = (/** @type {string} */ text, /** @type {() => void} */ remove) => h("button", {
      type: "button", class: "chip", title: "Take it back", on: { click: () => { remove(); offerWeights(); changed(); } },
    }, text, h("span", { class: "dim" }, " ✕"));
    fill(chips,
      ...question.drain.map((name) => chip(`drain ${all(name)}`, () => toggle(question.drain, name))),
      ...question.lose.map((name) => chip(`fail ${all(name)}`, () => toggle(question.lose, name))),
      ...question.gone.map((name) => chip(`delete ${all(name)}`, () => toggle(question.gone, name))),
      ...Object.entries(question.add).map(([name, number]) => chip(`add ${number} like ${name}`, () => delete question.add[name])),
      ...Object.entries(question.weights).map(([name, weight]) => chip(`${name} weighs ${weight}`, () => delete question.weights[name])),
      isEmpty(question) ? h("span", { class: "dim" }, "Click nodes in the map, or choose all of a group: what would follow is simulated at once. Nothing in the cluster changes.") : null);
  };
  const offerWeights = () => fill(sliders, weights(cluster, question, changed));
  const markChosen = () => {
    const chosenNames = new Set([...question.drain, ...question.lose, ...question.gone]);
    sides.before.columns.names.forEach((name, row) => {
      const group = `${cluster.groupBy}=${sides.before.columns.groups[row]}`;
      const chosen = chosenNames.has(name) || chosenNames.has(group);
      const plain = flags[row] ?? 0;
      sides.before.columns.flags[row] = chosen ? plain | CHOSEN : plain;
    });
    before.renew();
  };
  const load = (/** @type {import("../types").NodeMap} */ was, /** @type {import("../types").NodeMap} */ would) => {
    sides.before.columns.load(was);
    sides.after.columns.load(would);
    flags = sides.before.columns.flags.slice();
    before.arrange(true);
    after.arrange(true);
    markChosen();
    key.tally();
  };
  const plan = planning(cluster, {
    load: (was, end) => {
      would.hidden = false;
      load(was, end);
    },
    change: (wave) => {
      if (sides.after.columns.change(wave)) after.arrange(true);
      else after.renew();
    },
  });
  /** Simulate soon, once nothing changes for a moment. */
  const changed = () => {
    history.replaceState(null, "", `#/what-if${questionText(question)}`);
    showChips();
    markChosen();
    would.hidden = isEmpty(question);
    key.tally();
    clearTimeout(timer);
    timer = setTimeout(ask, SOON_MS);
  };
  const ask = () => {
    if (!isEmpty(question)) return answer.ask((signal) => post("api/what-if", body(question, cluster.groupBy), signal), shown);
    answer.leave();
    fill(result);
  };
  const shown = (/** @type {import("../types").WhatIfView} */ view) => {
    load(view.before, view.after);
    return difference(view);
  };

  const would = h("section", { class: "map-panel", hidden: isEmpty(question) }, h("div", { class: "map-title" }, h("h2", {}, "As it would be"), after.buttons), after.element);
  fill(root, h("div", { class: "what-if" }, h("h1", {}, "What if"), tools, chips,
    h("div", { class: "two-maps" },
      h("section", { class: "map-panel" }, h("div", { class: "map-title" }, h("h2", {}, "As it is"), before.buttons), before.element),
      would),
    h("section", { class: "map-panel map-key" }, key.element), plan.element, result, sliders));
  toolbar();
  const asItIs = packed(cluster.columns);
  sides.before.columns = asItIs(), sides.after.columns = asItIs();
  flags = sides.before.columns.flags.slice();
  showChips();
  offerWeights();
  markChosen();
  ask();
  return { leave: () => { answer.leave(); clearTimeout(timer); key.stop(); plan.leave(); before.leave(); after.leave(); } };
};

/** What a map is drawn from, standing still. @returns {{ columns: Columns, on: () => () => void }} */
function side() {
  return { columns: new Columns(), on: () => () => {} };
}

/** Copies of columns. @param {Columns} columns */
function packed(columns) {
  return () => Object.assign(new Columns(), columns, {
    flags: columns.flags.slice(), shares: new Map([...columns.shares].map(([name, column]) => [name, column.slice()])),
  });
}

/** A node by its name, or all that have a label. @param {string} chosen */
function all(chosen) {
  return chosen.includes("=") ? `all of ${short(chosen).replace("=", " ")}` : chosen;
}

/** @param {string[]} list @param {string} name */
function toggle(list, name) {
  const at = list.indexOf(name);
  if (at < 0) list.push(name);
  else list.splice(at, 1);
}

/** @param {import("../question.js").Question} question @param {string} group */
function body(question, group) {
  const add = Object.entries(question.add).map(([like, count]) => ({ like, count }));
  return { ...question, add, group };
}

/**
 * Sliders for the weights of score plugins.
 * @param {import("../cluster.js").Cluster} cluster @param {import("../question.js").Question} question @param {() => void} changed
 */
function weights(cluster, question, changed) {
  const anew = h("input", { type: "checkbox", id: "anew", checked: question.anew });
  anew.addEventListener("change", () => {
    question.anew = anew.checked;
    changed();
  });
  return h("details", { class: "panel", open: !!Object.keys(question.weights).length || question.anew }, h("summary", {}, "Other weights of score plugins"),
    h("p", { class: "note" }, anew, h("label", { for: "anew" }, " Place all pods anew on both sides: weights matter only to pods that are being placed.")),
    h("div", { class: "weights" }, Object.entries(cluster.about.weights).map(([name, usual]) => {
      const said = h("output", {}, String(question.weights[name] ?? usual));
      const slider = h("input", { type: "range", min: 1, max: Math.max(10, usual * 3), value: question.weights[name] ?? usual, "data-plugin": name });
      slider.addEventListener("input", () => (said.textContent = slider.value));
      slider.addEventListener("change", () => {
        if (Number(slider.value) === usual) delete question.weights[name];
        else question.weights[name] = Number(slider.value);
        question.anew = question.anew || !!Object.keys(question.weights).length;
        changed();
      });
      return h("label", {}, h("span", {}, name), slider, said);
    })));
}
