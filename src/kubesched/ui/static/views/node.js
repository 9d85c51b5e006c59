// A node: what is left in each resource and for whom, its pods, its devices one by one, and who would fit.

import { get, path } from "../api.js";
import { empty, fill, h, panel, podLink, workloadLink } from "../dom.js";
import { workloadColour } from "../colours.js";
import { CORDONED, NOT_READY, TAINTED } from "../map/columns.js";
import { often } from "../often.js";
import { bar } from "../parts/bars.js";
import { pager, table } from "../parts/table.js";
import { count, counted, more, percent } from "../words.js";
import { phase } from "./list.js";

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
  const used = view.resources.some((each) => each.used !== undefined);
  return panel("What is left", "", table(
    ["Resource", "", { text: "Requested", right: true }, ...(used ? [{ text: "Used", right: true }] : []), { text: "Allocatable", right: true }, { text: "Left", right: true }],
    view.resources.map((each) => [each.name, bar(each.share, "", each.usedShare), each.requested, ...(used ? [each.used ?? ""] : []), each.allocatable, each.left]), "Resources"),
  view.room.length ? h("h3", { class: "small dim" }, "More of these would fit here") : null,
  view.room.length ? h("ul", { class: "rooms-list" }, view.room.map((fit) =>
    h("li", {}, h("b", { class: fit.more ? null : "none" }, more(fit)), workloadLink(fit.workload, undefined, "name"),
      h("span", { class: "dim small" }, `${count(fit.count)} here now${fit.atLeast ? ", at least so many more" : ""}`)))) : null);
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
  return panel("Pods", "", table(
    ["Pod", "Phase", { text: "Priority", right: true }, ...names.map((name) => ({ text: name, right: true }))],
    view.pods.map((pod) => [
      h("span", { class: "with-dot", style: { "--dot": workloadColour(pod.workload) } }, podLink(pod.pod)), phase(pod.assumed ? "arriving" : pod.phase),
      count(pod.priority), ...names.map((name) => (pod.shares[name] === undefined ? "" : percent(pod.shares[name] ?? 0))),
    ]), "Pods on this node"), pager(place, view.pods.length, view.podCount, show));
}

/** @param {import("../types").NodeView} view */
function labels(view) {
  if (!Object.keys(view.labels).length) return panel("Labels", "", empty("It has none."));
  return panel("Labels", "", table(["Key", "Value"], Object.entries(view.labels).map(([key, value]) => [key, value]), "Labels"));
}
