// What would help: changes of pods, nodes and the cluster that were tried on a copy. Looked for when somebody asks.

import { get } from "../api.js";
import { empty, h, nodeLink, panel, podLink } from "../dom.js";
import { count, counted } from "../words.js";
import { SlowAnswer } from "./slow.js";

const SHOWN = 4;
const EXAMPLES = 3;

/**
 * A panel with a button that asks.
 * @template T
 * @param {string} text of the button @param {string} address @param {(found: T) => import("../dom.js").Child[]} show
 */
export function helpPanel(text, address, show) {
  const found = h("div", { "aria-live": "polite" });
  const answer = new SlowAnswer(found, "Changes are being tried on a copy of the cluster.");
  const button = h("button", { type: "button", class: "ask" }, text);
  button.addEventListener("click", async () => {
    button.hidden = true;
    await answer.ask((signal) => get(address, signal), (/** @type {T} */ help) => {
      button.textContent = "Look again";
      return show(help);
    });
    button.hidden = false;
  });
  addEventListener("hashchange", () => answer.leave(), { once: true });
  return panel("What would help", "help", found, button);
}

/** @param {import("../types").Remedies} help */
export function podHelp(help) {
  if (!help.found.length) {
    return [empty(help.exhaustive ? `No single change helps, and no pair: ${count(help.tried)} were tried.`
      : `Nothing was found that helps: ${count(help.tried)} changes were tried.`)];
  }
  return [h("ol", { class: "remedies" }, help.found.map((each) => remedy(each))),
    h("p", { class: "dim small" }, `${counted(help.tried, "change")} tried, on a copy. Nothing in the cluster has changed.`)];
}

/** @param {import("../types").PendingHelp} help */
export function pendingHelp(help) {
  return [
    h("p", { class: "note" }, [
      help.placed.length ? `${counted(help.placed.length, "pod")} would be placed as things are.` : "",
      help.leftOut ? `Only the first pods of the queue were asked about, ${count(help.leftOut)} more wait.` : "",
    ].filter(Boolean).join(" ")),
    ...(help.groups.length ? help.groups.map(group) : [empty("Every pod that waits would be placed as things are.")]),
  ];
}

/** @param {import("../types").PendingGroup} group */
function group(group) {
  const others = (group.remedies?.found ?? []).filter((help) => !group.pools.length || !help.steps.some((step) => step.sort === "addNode"));
  const examples = group.pods.slice(0, EXAMPLES);
  const ways = group.pools.length + others.length;
  return h("section", { class: "help-group" },
    h("h3", {}, `${counted(group.pods.length, "pod")} of ${group.workload}: ${group.why}`),
    h("p", { class: "dim small" }, ways ? null : "Nothing was found that helps: ", examples.map((key, i) => h("span", {}, i ? ", " : "", podLink(key))), group.pods.length > examples.length ? ", …" : null),
    h("ol", { class: "remedies" },
      group.pools.map((pool) => h("li", {}, h("b", {}, `${counted(pool.nodes, "more node")} of pool ${pool.pool}`),
        ` would place ${pool.places < group.pods.length ? `${count(pool.places)} of them` : pool.places === 1 ? "it" : "all of them"}.`)),
      others.slice(0, SHOWN).map((help) => remedy(help, group.pods[0]))));
}

/** @param {import("../types").Remedy} help @param {string} [pod] named, if the view is about others too */
function remedy(help, pod) {
  const text = help.steps.map((step, i) => (i ? `; and ${step.text.charAt(0).toLowerCase()}${step.text.slice(1)}` : step.text)).join("");
  return h("li", {}, pod ? h("span", { class: "dim" }, "For ", podLink(pod), ": ") : null, `${text}. `,
    text.includes(help.node) ? null : h("span", { class: "dim" }, "It would go to ", nodeLink(help.node), "."),
    help.cost || help.touches?.length ? h("dl", { class: "harm" }, pair("costs", help.cost), pair("touches", touched(help.touches ?? []))) : null,
    help.changes.length ? h("details", {}, h("summary", {}, "as a change of objects"),
      h("pre", {}, help.changes.map(change).join("\n"))) : null);
}

/** @param {string} name @param {import("../dom.js").Child | undefined} value */
function pair(name, value) {
  return value ? h("div", {}, h("dt", {}, `${name}: `), h("dd", {}, value)) : null;
}

/** Whom it touches: `Node n1` and `Pod shop/db-0` have a page. @param {string[]} names */
function touched(names) {
  if (!names.length) return undefined;
  return h("span", {}, names.map((name, i) => {
    const [kind = "", own = ""] = name.split(" ");
    const shown = kind === "Node" ? nodeLink(own) : kind === "Pod" ? podLink(own) : own;
    return h("span", {}, i ? ", " : "", `${kind} `, shown);
  }));
}

/** @param {import("../types").ObjectChange} change */
function change(change) {
  const name = [change.namespace, change.name].filter(Boolean).join("/");
  const content = change.patch ?? change.object;
  return `${change.verb} ${change.kind} ${name}${content ? ` ${JSON.stringify(content, null, 1)}` : ""}`;
}
