// Queue and time: who was where over time, attempts and how long they took, costly plugins, and the ledger of preemptions.

import { get } from "../api.js";
import { empty, fill, h, nodeLink, panel, podLink } from "../dom.js";
import { often } from "../often.js";
import { chart } from "../parts/chart.js";
import { table } from "../parts/table.js";
import { count, duration, milliseconds } from "../words.js";

/**
 * @param {import("../cluster.js").Cluster} cluster
 * @returns {import("../router.js").View}
 */
export const queue = (cluster) => async (root) => {
  const show = async () => {
    /** @type {import("../types").QueueView} */
    const view = await get("api/queue");
    fill(root, h("div", { class: "queue" }, h("h1", {}, "Queue and time"), ...(cluster.about.schedules ? parts(view) : seen(view))));
  };
  if (!cluster.about.live) {
    fill(root, h("div", { class: "queue" }, h("h1", {}, "Queue and time"),
      empty("Nothing is scheduled here, so there is no queue.", "kubesched sandbox has one to watch.")));
    return {};
  }
  await show();
  const timer = (/** @type {() => void} */ again) => {
    const id = setInterval(again, 1000);
    return () => clearInterval(id);
  };
  return { leave: often(900, show, timer) };
};

/** @param {import("../types").QueueView} view @param {string} name @param {number} i */
const line = (view, name, i) => ({ name, values: view.samples.map((sample) => sample[i] ?? 0) });

/** @param {import("../types").QueueView} view @param {string} name @param {number} i */
const rates = (view, name, i) => ({
  name: `${name} per second`,
  values: view.samples.map((sample, at) => rate(sample, view.samples[at - 1], i)),
});

/** Where another scheduler decides: what a watch shows. @param {import("../types").QueueView} view */
function seen(view) {
  const times = view.samples.map((sample) => sample[0]);
  return [
    h("p", { class: "note" }, "Another scheduler decides here. Its queue is its own: this is what its cluster shows."),
    h("div", { class: "columns" },
      panel("Pods without a node", "", chart([line(view, "waiting", 3)], times, "Pods without a node over time")),
      panel("Bindings", "", chart([rates(view, "bound", 6)], times, "Bindings per second over time"))),
  ];
}

/** @param {import("../types").QueueView} view */
function parts(view) {
  const times = view.samples.map((sample) => sample[0]);
  const places = ["active", "backoff", "unschedulable", "gated"].map((name, i) => line(view, name, i + 1));
  return [
    h("div", { class: "columns" },
      panel("Pods in the queue", "", chart(places, times, "Pods in the queue over time")),
      panel("Attempts", "", chart([rates(view, "attempts", 5), rates(view, "bound", 6)], times, "Attempts per second over time"))),
    h("div", { class: "columns" }, panel("How long attempts take", "", latency(view)), panel("Slowest plugins and extenders", "", plugins(view))),
    panel("Preemptions", "", ledger(view)),
  ];
}

/** How many more per second. @param {number[]} sample @param {number[] | undefined} before @param {number} i */
function rate(sample, before, i) {
  const seconds = (sample[0] ?? 0) - (before?.[0] ?? 0);
  return before && seconds > 0 ? Math.max((sample[i] ?? 0) - (before[i] ?? 0), 0) / seconds : 0;
}

/** @param {import("../types").QueueView} view */
function latency(view) {
  const outcomes = Object.entries(view.outcomes).map(([name, number]) => `${count(number)} ${name}`).join(", ");
  if (!view.latency) return empty("Nothing was measured.", "Attempts are measured while they happen and a page is open.");
  const { p50, p90, p99, slowest, attempts } = view.latency;
  const cells = /** @type {[string, number][]} */ ([["half within", p50], ["90 % within", p90], ["99 % within", p99], ["slowest", slowest]]);
  return h("div", {}, h("dl", { class: "numbers" }, cells.map(([name, value]) =>
    h("div", {}, h("dt", {}, name), h("dd", {}, milliseconds(value))))),
  h("p", { class: "dim small" }, `of the last ${count(attempts)} attempts, from their turn to the end of the writing. So far: ${outcomes}.`));
}

/** @param {import("../types").QueueView} view */
function plugins(view) {
  if (!view.plugins.length) return empty("No attempt was measured plugin by plugin yet.");
  const most = view.plugins[0]?.microseconds ?? 1;
  return h("ol", { class: "bars compact" }, view.plugins.map((each) => h("li", {},
    h("span", { class: "name" }, each.plugin), h("span", { class: "number" }, milliseconds(each.microseconds / 1000)),
    h("span", { class: "bar" }, h("span", { style: { "--share": `${(each.microseconds / most) * 100}%` } })),
    h("span", { class: "dim small" }, each.questions ? asked(each) : each.point))));
}

/** An extender. @param {import("../types").QueueView["plugins"][number]} each */
function asked(each) {
  return `${each.point}, asked ${count(each.questions ?? 0)} times${each.failures ? `, ${count(each.failures)} failed` : ""}`;
}

/** @param {import("../types").QueueView} view */
function ledger(view) {
  if (!view.preemptions.length) return empty("No pod had to make room for another.");
  return table(["When", "For", { text: "Priority", right: true }, "Node", "Who had to go", "Why"], view.preemptions.map((each) => [
    `${duration(view.now - each.at)} ago`, podLink(each.pod), count(each.priority), nodeLink(each.node),
    h("span", {}, each.victims.map(([key, priority], i) => h("span", {}, i ? ", " : "", podLink(key), ` (${count(priority)})`))), each.why,
  ]), "Preemptions");
}
