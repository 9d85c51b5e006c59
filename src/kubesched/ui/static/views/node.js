// A node: what is left in each resource and for whom, its pods, its devices one by one, and who would fit.

import { get, path } from "../api.js";
import { empty, fill, h, panel, podLink } from "../dom.js";
import { kindColour } from "../colours.js";
import { CORDONED, NOT_READY, TAINTED } from "../map/columns.js";
import { often } from "../often.js";
import { bar } from "../parts/bars.js";
import { table } from "../parts/table.js";
import { count, counted, percent, short } from "../words.js";

/**
 * @param {import("../cluster.js").Cluster} cluster
 * @returns {import("../router.js").View}
 */
export const node = (cluster) => async (root, route) => {
  const name = route.path[1] ?? "";
  const place = { offset: 0 };
  const show = async () => {
    /** @type {import("../types").NodeView} */
    const view = await get(`${path("nodes", name)}?offset=${place.offset}`);
    fill(root, h("div", { class: "node" },
      h("h1", {}, h("span", { class: "kind" }, "node"), view.name), h("div", { class: "facts" }, ...facts(view)),
      h("div", { class: "columns" },
        h("div", {}, resources(view), devices(view), waiting(view)),
        h("div", {}, pods(view, place, show), labels(view)))));
  };
  await show();
  const row = cluster.columns.names.indexOf(name);
  const mine = (/** @type {() => void} */ again) => cluster.on("map", (/** @type {number[]} */ rows) => rows.includes(row) && again());
  return { leave: often(1500, show, mine) };
};

/** @param {import("../types").NodeView} view */
function facts(view) {
  const states = [[NOT_READY, "not ready"], [CORDONED, "cordoned"], [TAINTED, "tainted"]];
  return [
    ...states.map(([bit, word]) => (view.flags & Number(bit) ? h("span", { class: "bad" }, String(word)) : null)),
    h("span", {}, counted(view.podCount, "pod")),
    view.taints.length ? h("span", {}, `taints ${view.taints.join(", ")}`) : null,
    view.nominated.length ? h("span", {}, "room is kept for ", view.nominated.map((key) => podLink(key))[0] ?? "") : null,
  ];
}

/** @param {import("../types").NodeView} view */
function resources(view) {
  return panel("What is left", "", table(
    ["Resource", "", { text: "Requested", right: true }, { text: "Allocatable", right: true }, { text: "Left", right: true }],
    view.resources.map((each) => [short(each.name), bar(each.share), each.requested, each.allocatable, each.left]), "Resources"),
  view.room.length ? h("ul", { class: "rooms-list" }, view.room.map((fit) =>
    h("li", {}, h("b", { class: fit.more ? null : "none" }, `+${count(fit.more)}`), podLink(fit.example, "name"),
      h("span", { class: "dim small" }, `${count(fit.count)} of ${fit.workload} here`)))) : null);
}

/** @param {import("../types").NodeView} view */
function devices(view) {
  if (!view.devices.length) return null;
  return panel("Devices", "", h("ul", { class: "devices" }, view.devices.map((device) =>
    h("li", { class: device.claims.length ? "held" : null, title: `${device.driver}/${device.pool}/${device.name}` },
      h("b", {}, device.name), h("span", { class: "dim small" }, device.claims.join(", ") || device.taints.join(", ") || "free")))));
}

/** @param {import("../types").NodeView} view */
function waiting(view) {
  return panel("Who would fit", "", view.waiting.length ? table(
    ["Pods that wait", { text: "Pods", right: true }, "Here"],
    view.waiting.map((fit) => [podLink(fit.example), count(fit.count),
      fit.fits ? h("span", { class: "good" }, "yes") : h("span", { class: "bad" }, fit.whyNot)]),
    "Pods that wait") : empty("No pod waits."));
}

/** @param {import("../types").NodeView} view @param {{ offset: number }} place @param {() => Promise<void>} show */
function pods(view, place, show) {
  if (!view.podCount) return panel("Pods", "", empty("No pod is here."));
  const names = [...new Set(view.pods.flatMap((pod) => Object.keys(pod.shares)))];
  const turn = (/** @type {number} */ by) => h("button", {
    type: "button", disabled: place.offset + by < 0 || place.offset + by >= view.podCount,
    on: { click: () => { place.offset += by; show(); } },
  }, by < 0 ? "Previous" : "Next");
  return panel("Pods", "", table(
    ["Pod", { text: "Priority", right: true }, ...names.map((name) => ({ text: short(name), right: true })), ""],
    view.pods.map((pod) => [
      h("span", { class: "with-dot", style: { "--dot": kindColour(pod.pod) } }, podLink(pod.pod)),
      count(pod.priority), ...names.map((name) => (pod.shares[name] === undefined ? "" : percent(pod.shares[name] ?? 0))),
      pod.terminating ? "leaving" : pod.assumed ? "arriving" : "",
    ]), "Pods on this node"),
  view.podCount > view.pods.length ? h("p", { class: "pager" }, turn(-100),
    `${count(place.offset + 1)} to ${count(place.offset + view.pods.length)} of ${count(view.podCount)}`, turn(100)) : null);
}

/** @param {import("../types").NodeView} view */
function labels(view) {
  if (!Object.keys(view.labels).length) return panel("Labels", "", empty("It has none."));
  return panel("Labels", "", table(["Key", "Value"], Object.entries(view.labels).map(([key, value]) => [key, value]), "Labels"));
}
