// Upgrade: what another release of Kubernetes does differently with the pods, by the change of Kubernetes that causes it.

import { post } from "../api.js";
import { fill, h, panel, podLink, workloadLink } from "../dom.js";
import { SlowAnswer } from "../parts/slow.js";
import { table } from "../parts/table.js";
import { go } from "../router.js";
import { count, counted } from "../words.js";

const GOOD = ["fits"], BAD = ["no longer fits", "fails otherwise"];

/**
 * @param {import("../cluster.js").Cluster} cluster
 * @returns {import("../router.js").View}
 */
export const upgrade = (cluster) => (root, route) => {
  const [, before = "", after = ""] = route.path;
  const controls = h("p", { class: "map-controls" }), result = h("div", { "aria-live": "polite" });
  const choose = (/** @type {string} */ from, /** @type {string} */ to) => {
    const select = (/** @type {string} */ id, /** @type {string} */ chosen) => h("select", { id, on: { change: changed } },
      cluster.about.releases.map((name) => h("option", { value: name, selected: name === chosen }, name)));
    const changed = () => go(`#/upgrade/${[old.value, wanted.value].map(encodeURIComponent).join("/")}`);
    const old = select("from", from), wanted = select("to", to);
    fill(controls, h("span", {}, h("label", { for: "from" }, "From Kubernetes"), old), h("span", {}, h("label", { for: "to" }, "to"), wanted),
      h("span", { class: "dim" }, `This cluster is looked at as ${cluster.about.release}.`));
  };
  const answer = new SlowAnswer(result, "Each pod is being decided upon under both releases.");
  fill(root, h("div", { class: "upgrade" }, h("h1", {}, "What will change when I upgrade"), controls, result));
  if (after) choose(before, after);
  answer.ask((signal) => post("api/upgrade", after ? { before, after } : {}, signal), (/** @type {import("../types").UpgradeView} */ view) => {
    choose(view.before, view.after);
    return comparison(view);
  });
  return { leave: () => answer.leave() };
};

/** @param {import("../types").UpgradeView} view */
function comparison(view) {
  return [
    ...view.refused.map((line) => h("p", { class: "bad" }, `Refused by ${line}`)),
    view.summary ? h("p", { class: "headline" }, view.summary) : null,
    ...view.groups.map((group) => cause(group, view)),
    settings("Fields of the configuration", view.fields, view),
    settings("Feature gates", view.gates, view),
    view.method ? h("p", { class: "note" }, view.method, " Nothing in the cluster has changed.") : null,
  ];
}

/** @param {import("../types").UpgradeCause} group @param {import("../types").UpgradeView} view */
function cause(group, view) {
  return panel(group.title, "upgrade-cause",
    group.causes.map((each) => h("p", { class: "small" }, `${each.name}: `,
      h("a", { href: each.reference, rel: "noopener noreferrer", target: "_blank" }, each.reference))),
    table(["Workload", "What changes", { text: "Pods", right: true }, view.before, view.after],
      group.rows.map((each) => [workloadLink(each.workload), kind(each), pods(each), each.before, each.after]), group.title),
    group.leftOut ? h("p", { class: "note" }, `And ${counted(group.leftOut, "more row")}: \`kubesched compare\` has them all.`) : null);
}

/** @param {import("../types").UpgradedPods} each */
function kind(each) {
  const name = BAD.includes(each.kind) ? "bad" : GOOD.includes(each.kind) ? "good" : "";
  return h("span", {}, h("span", { class: `whole ${name}` }, each.kind), each.isPlaced ? h("span", { class: "dim small" }, " once made anew") : null);
}

/** How many, and which. @param {import("../types").UpgradedPods} each */
function pods(each) {
  if (each.workload[1] === "Pod") return count(each.count);
  return h("details", {}, h("summary", {}, count(each.count)), each.pods.map((pod) => h("span", { class: "reason" }, podLink(pod))),
    each.count > each.pods.length ? `and ${count(each.count - each.pods.length)} more` : null);
}

/** @param {string} title @param {import("../types").SettingChange[]} changes @param {import("../types").UpgradeView} view */
function settings(title, changes, view) {
  if (!changes.length) return null;
  const said = (/** @type {string} */ value) => (value ? value : h("span", { class: "dim" }, "none"));
  return panel(title, "settings", table(["", view.before, view.after],
    changes.map((each) => [each.setting, said(each.before), said(each.after)]), title));
}
