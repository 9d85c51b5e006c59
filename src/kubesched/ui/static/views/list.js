// Lists of nodes, pods and workloads: sorted by any column, filtered by text, namespace and state, a page at a time.

import { get } from "../api.js";
import { empty, fill, h, nodeLink, podLink, workloadLink } from "../dom.js";
import { workloadColour } from "../colours.js";
import { often } from "../often.js";
import { note } from "../router.js";
import { bar } from "../parts/bars.js";
import { pager, table } from "../parts/table.js";
import { amounts, count, duration, percent } from "../words.js";

/** @typedef {{ title: string, states: string, heads: (import("../parts/table.js").Head)[], cells: (row: any) => import("../dom.js").Child[] }} List */

const BAD = ["not ready", "failed", "waiting"];

/** @type {Record<string, List>} */
const LISTS = {
  nodes: {
    title: "Nodes", states: "State",
    heads: [{ text: "Node", sort: "name" }, { text: "Zone", sort: "zone" }, { text: "State", sort: "state" }, { text: "Pods", right: true, sort: "pods" },
      { text: "CPU requested", right: true, sort: "cpu" }, { text: "Memory requested", right: true, sort: "memory" }, { text: "Others" }],
    cells: (/** @type {import("../types").NodeLine} */ row) => [
      nodeLink(row.name), row.zone, h("span", { class: row.states.includes("not ready") ? "bad" : row.states.length ? "warn" : null }, row.states.join(", ") || "ready"), count(row.pods),
      share(row, "cpu"), share(row, "memory"),
      Object.entries(row.requested).filter(([name, part]) => !["cpu", "memory", "ephemeral-storage"].includes(name) && part)
        .map(([name, part]) => `${name} ${percent(part)}`).join(", ")],
  },
  pods: {
    title: "Pods", states: "Phase",
    heads: [{ text: "Pod", sort: "name" }, { text: "Workload", sort: "workload" }, { text: "Phase", sort: "phase" }, { text: "Node", sort: "node" },
      { text: "Priority", right: true, sort: "priority" }, { text: "Age", right: true, sort: "age" }, { text: "Requests" }, { text: "Uses" }],
    cells: (/** @type {import("../types").PodLine} */ row) => [
      podLink(row.pod),
      row.kind === "Pod" ? "" : workloadLink([row.pod.split("/")[0] ?? "", row.kind, row.workload], row.workload),
      phase(row.phase), row.node ? nodeLink(row.node) : "", count(row.priority), duration(row.ageSeconds), amounts(row.requests), amounts(row.used)],
  },
  workloads: {
    title: "Workloads", states: "Kind",
    heads: [{ text: "Workload", sort: "name" }, { text: "Kind", sort: "kind" }, { text: "Wanted", right: true }, { text: "Pods", right: true, sort: "pods" },
      { text: "Waiting", right: true, sort: "waiting" }, { text: "Phases" }, { text: "Nodes", right: true, sort: "nodes" },
      { text: "Priority", right: true, sort: "priority" }, { text: "Requests of a pod" }],
    cells: (/** @type {import("../types").WorkloadLine} */ row) => [
      h("span", { class: "with-dot", style: { "--dot": workloadColour(`${row.namespace}/${row.name}`) } }, workloadLink([row.namespace, row.kind, row.name])),
      row.kind, row.wanted === undefined ? "" : count(row.wanted), count(row.pods),
      row.phases["waiting"] ? h("span", { class: "bad" }, count(row.phases["waiting"])) : "0",
      phases(row.phases), count(row.nodes), count(row.priority), amounts(row.requests)],
  },
};

/** A list, by the first step of the path.
 * @param {import("../cluster.js").Cluster} cluster @param {string} name
 * @returns {import("../router.js").View} */
export const listView = (cluster, name) => async (root, route) => {
  const list = /** @type {List} */ (LISTS[name]);
  const asked = Object.fromEntries(["text", "namespace", "state", "sort"].map((key) => [key, route.query.get(key) ?? ""]));
  const place = { offset: 0 };
  const rows = h("section", { class: "panel list" }), total = h("span", { class: "dim" });
  const text = h("input", { type: "search", value: asked["text"], placeholder: "part of a name", "aria-label": "Filter by name" });
  const namespace = h("select", { "aria-label": "Namespace" }), state = h("select", { "aria-label": list.states });
  const show = async () => {
    const query = new URLSearchParams({ ...asked, offset: String(place.offset) });
    /** @type {import("../types").Listing<any>} */
    const found = await get(`api/lists/${name}?${query}`);
    choices(namespace, "all namespaces", found.namespaces.map((each) => [each, each]), asked["namespace"] ?? "");
    namespace.hidden = !found.namespaces.length;
    choices(state, `any ${list.states.toLowerCase()}`, found.states.map(([each, number]) => [each, `${each} (${count(number)})`]), asked["state"] ?? "");
    fill(total, `${count(found.total)} in all`);
    fill(rows, found.total ? table(list.heads, found.rows.map((row) => list.cells(row)), list.title,
      { by: asked["sort"] ?? "", choose: (by) => change("sort", by) }) : empty("Nothing matches.", "Take back part of the filter."),
    pager(place, found.rows.length, found.total, show));
  };
  const change = (/** @type {string} */ key, /** @type {string} */ value) => {
    asked[key] = value;
    place.offset = 0;
    note({ [key]: value || null });
    return show();
  };
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let soon;
  text.addEventListener("input", () => {
    clearTimeout(soon);
    soon = setTimeout(() => change("text", text.value.trim()), 120);
  });
  namespace.addEventListener("change", () => change("namespace", namespace.value));
  state.addEventListener("change", () => change("state", state.value));
  fill(root, h("div", { class: `listing ${name}` },
    h("div", { class: "list-head" }, h("h1", {}, list.title), h("span", { class: "filters" }, text, namespace, state), total), rows));
  await show();
  return { leave: often(4000, show, (again) => cluster.on("map", again)) };
};

/** @param {HTMLSelectElement} select @param {string} none @param {[string, string][]} values @param {string} chosen */
function choices(select, none, values, chosen) {
  if (document.activeElement === select) return; // it is open: options must not change under the hand
  fill(select, h("option", { value: "" }, none), values.map(([value, text]) => h("option", { value, selected: value === chosen }, text)),
    chosen && !values.some(([value]) => value === chosen) ? h("option", { value: chosen, selected: true }, chosen) : null);
}

/** Requested, and used where it is measured. @param {import("../types").NodeLine} row @param {string} name */
function share(row, name) {
  const part = row.requested[name];
  if (part === undefined) return "";
  const used = row.used[name];
  return h("span", { class: "share" }, bar(part, "", used), h("span", { class: "percent" }, percent(part)), used === undefined ? null : h("span", { class: "dim" }, ` · ${percent(used)} used`));
}

/** @param {string} text */
export function phase(text) {
  return h("span", { class: BAD.includes(text) ? "bad" : text === "running" ? "good" : null }, text);
}

/** @param {Record<string, number>} phases */
export function phases(phases) {
  return Object.entries(phases).filter(([name, number]) => number && name !== "waiting").map(([name, number]) => `${count(number)} ${name}`).join(", ");
}
