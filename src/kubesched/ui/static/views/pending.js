// Pending: pods that wait, by reason; the pods of one reason with age, priority, place in the queue and next try.

import { get, path } from "../api.js";
import { empty, fill, h, link, panel, podLink, workloadLink } from "../dom.js";
import { often } from "../often.js";
import { helpPanel, pendingHelp } from "../parts/help.js";
import { pager, table } from "../parts/table.js";
import { ago, amounts, count, counted, duration } from "../words.js";

/**
 * @param {import("../cluster.js").Cluster} cluster
 * @returns {import("../router.js").View}
 */
export const pending = (cluster) => async (root, route) => {
  const chosen = route.path[1] ?? "";
  const groups = h("div", { class: "cause-cards" }), pods = h("div", {});
  const place = { offset: 0 };
  const help = helpPanel("Look for changes that would help", "api/help/pending", pendingHelp);
  help.hidden = true;
  fill(root, h("div", { class: "pending" }, h("h1", {}, "Pending pods, by cause"), help, groups, pods));
  const show = async () => {
    /** @type {{ pods: number, groups: import("../types").CauseGroup[] }} */
    const found = await get("api/pending");
    help.hidden = !found.groups.length || !cluster.about.experiments;
    if (!found.groups.length) {
      return fill(groups, empty("No pod waits.", cluster.about.live ? "Pods that find no node show up here, with the reason." : ""));
    }
    fill(groups, found.groups.map((group) => card(group, group.id === chosen)));
    if (chosen) await showPods(pods, chosen, place);
  };
  await show();
  return { leave: often(1500, show, (again) => cluster.on("queue", again)) };
};

/** @param {import("../types").CauseGroup} group @param {boolean} chosen */
function card(group, chosen) {
  const places = Object.entries(group.places).map(([place, pods]) => `${count(pods)} ${place}`).join(", ");
  return h("article", { class: `card${chosen ? " chosen" : ""}` },
    h("p", { class: "big" }, count(group.pods), h("span", {}, group.pods === 1 ? " pod" : " pods")),
    h("h2", {}, link(["pending", group.id], group.title)),
    group.workload ? h("p", { class: "whose" }, `${group.workload[1]} `, workloadLink(group.workload)) : null,
    group.reasons.length ? h("ul", { class: "reasons" }, group.reasons.slice(0, 5).map(([text, nodes]) =>
      h("li", {}, nodes ? h("b", {}, text.startsWith("node(s)") ? `${count(nodes)} ` : `${counted(nodes, "node")} `) : null, text))) : null,
    h("dl", {},
      group.plugins.length ? pair("rejected by", group.plugins.join(", ")) : null,
      places ? pair("in the queue", places) : null,
      pair("highest priority", count(group.highestPriority)),
      group.longestWaitSeconds !== undefined ? pair("longest wait", duration(group.longestWaitSeconds)) : null,
      group.wakes.length ? pair("woken by", group.wakes.join(", ")) : null),
    h("p", { class: "dim small" }, "such as ", group.examples.slice(0, 3).map((key, i) => h("span", {}, i ? ", " : "", podLink(key)))));
}

/** @param {string} name @param {string} value */
function pair(name, value) {
  return h("div", {}, h("dt", {}, name), h("dd", {}, value));
}

/** @param {HTMLElement} root @param {string} id @param {{ offset: number }} place */
async function showPods(root, id, place) {
  /** @type {{ total: number, pods: import("../types").WaitingPod[] }} */
  const found = await get(`${path("pending", id)}?offset=${place.offset}`);
  if (!found.total) return fill(root, panel("Pods of this cause", "", empty("There are none any more.")));
  fill(root, panel("Pods of this cause", "",
    table(["Pod", { text: "Priority", right: true }, "Queue", { text: "Attempts", right: true }, { text: "Waits for", right: true },
      { text: "Last tried", right: true }, { text: "Next try in", right: true }, "Requests"],
    found.pods.map((pod) => [podLink(pod.pod), count(pod.priority), pod.place || "not scheduled here", count(pod.attempts),
      duration(pod.waitsSeconds), ago(pod.triedSeconds), duration(pod.nextTrySeconds), amounts(pod.requests)]), "Pods of this cause"),
    pager(place, found.pods.length, found.total, () => showPods(root, id, place))));
}
