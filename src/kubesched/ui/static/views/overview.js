// Overview: the node map, and beside it who waits and why, how much room there is, and the decisions as they happen.

import { get } from "../api.js";
import { empty, fill, h, link, panel, workloadLink } from "../dom.js";
import { SCARCEST } from "../map/columns.js";
import { legend } from "../map/legend.js";
import { NodeMapView } from "../map/map.js";
import { decisionList } from "../parts/decisions.js";
import { groupOf, note } from "../router.js";
import { often } from "../often.js";
import { amounts, count, counted, duration, more, titles } from "../words.js";

const CAUSES = 6;

/**
 * @param {import("../cluster.js").Cluster} cluster
 * @returns {import("../router.js").View}
 */
export const overview = (cluster) => async (root, route) => {
  const colour = route.query.get("colour") ?? SCARCEST;
  const wanted = groupOf(route);
  if (wanted !== undefined && wanted !== cluster.groupBy) await cluster.group(wanted);
  if (!cluster.about.nodes.nodes && !cluster.columns.size) {
    fill(root, empty("There are no nodes.", "Add some: in a sandbox with kubectl apply, else with the manifests you give to -f."));
    return { leave: cluster.on("layout", () => dispatchEvent(new Event("hashchange"))) };
  }
  const map = new NodeMapView(cluster, colour);
  const key = legend(cluster, map);
  const causes = h("div", { class: "causes" }, empty("Being asked for.")), rooms = h("div", { class: "rooms" }, empty("Being counted."));
  const decisions = decisionList(cluster, 60);
  const tools = h("div", { class: "map-controls" }), offer = () => fill(tools, controls(cluster, map));
  offer();
  fill(root, h("div", { class: "overview" },
    h("section", { class: "map-panel", "aria-label": "Node map" }, tools, map.element, key.element),
    h("aside", {},
      panel("Pending, by cause", "", causes),
      panel("Headroom", "", rooms),
      cluster.about.live ? panel("Decisions", "grows", decisions.list) : null)));
  const stops = [
    often(1500, async () => showCauses(causes, await get("api/pending")), (again) => cluster.on("queue", again)),
    often(6000, async () => showRooms(rooms, (await get("api/headroom")).rooms), (again) => cluster.on("map", again)),
    decisions.stop, key.stop, cluster.on("about", offer),
  ];
  return { leave: () => [...stops, () => map.leave()].forEach((stop) => stop()) };
};

/** @param {import("../cluster.js").Cluster} cluster @param {NodeMapView} map */
function controls(cluster, map) {
  const option = (/** @type {string} */ value, /** @type {string} */ text, /** @type {string} */ chosen) =>
    h("option", { value, selected: value === chosen }, text);
  const names = titles(cluster.about.labels.map((label) => label.key));
  const group = h("select", { id: "group" },
    cluster.about.labels.map((label) => option(label.key, `${names.get(label.key)} (${count(label.values)})`, cluster.groupBy)),
    option("", "nothing", cluster.groupBy));
  group.addEventListener("change", async () => {
    note({ group: group.value || "none" });
    await cluster.group(group.value).catch(() => cluster.connection(false));
  });
  const resources = [SCARCEST, ...cluster.columns.shares.keys()];
  const colour = h("select", { id: "colour" }, resources.map((name) =>
    option(name, name === SCARCEST ? "what is scarcest" : name, map.resource)));
  colour.addEventListener("change", () => {
    note({ colour: colour.value === SCARCEST ? null : colour.value });
    map.colourBy(colour.value);
  });
  return [
    h("span", {}, h("label", { for: "group" }, "Group by"), group),
    h("span", {}, h("label", { for: "colour" }, "Colour by"), colour), map.buttons];
}

/** @param {HTMLElement} root @param {{ pods: number, groups: import("../types").CauseGroup[] }} pending */
function showCauses(root, pending) {
  if (!pending.groups.length) return fill(root, empty("No pod waits."));
  const most = pending.groups[0]?.pods ?? 1;
  fill(root,
    h("ol", { class: "bars" }, pending.groups.slice(0, CAUSES).map((group) =>
      h("li", {}, link(["pending", group.id], group.title, "name"),
        h("span", { class: "number" }, count(group.pods)),
        h("span", { class: "bar" }, h("span", { style: { "--share": `${(group.pods / most) * 100}%` } })),
        h("span", { class: "dim small" }, [
          group.workload ? `${group.workload[0]}/${group.workload[2]}` : group.examples[0] ?? "", group.plugins.join(", "),
          group.longestWaitSeconds !== undefined ? `for ${duration(group.longestWaitSeconds)}` : "",
        ].filter(Boolean).join(" · "))))),
    h("p", { class: "dim small" }, link(["pending"], `${counted(pending.pods, "pod")} in all`)));
}

/** @param {HTMLElement} root @param {import("../types").Room[]} rooms */
function showRooms(root, rooms) {
  if (!rooms.length) return fill(root, empty("No pod runs yet, so there is nothing to count more of."));
  fill(root, h("ul", { class: "rooms-list" }, rooms.map((room) =>
    h("li", {}, h("b", { class: room.more ? null : "none" }, more(room)), workloadLink(room.workload, undefined, "name"),
      h("span", { class: "dim small" }, `${amounts(room.requests) || "no requests"} · ${room.nodes ? `next fits ${counted(room.nodes, "node")}` : "no node takes one"}`)))),
  h("p", { class: "dim small" }, "More of these would fit, one after another, by every rule that they obey.",
    rooms.some((room) => room.atLeast) ? " ≥: at least so many; the rest is being counted." : ""));
}
