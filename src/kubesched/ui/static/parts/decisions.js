// The decisions as they happen, the newest first.

import { fill, h, nodeLink, podLink } from "../dom.js";
import { duration } from "../words.js";

const WORDS = /** @type {Record<string, string>} */ ({
  bound: "bound", preempts: "preempts", unschedulable: "waits", error: "error",
  "bind-error": "bind error", "bind-unschedulable": "refused",
});

/**
 * @param {import("../cluster.js").Cluster} cluster
 * @param {number} most
 */
export function decisionList(cluster, most) {
  const list = h("ol", { class: "decisions" });
  const show = () => {
    if (!cluster.decisions.length) {
      fill(list, h("li", { class: "empty" }, cluster.about.live
        ? "No decision yet. Create a pod, and it shows up here."
        : "Nothing is scheduled here: this is a cluster that stands still."));
      return;
    }
    fill(list, cluster.decisions.slice(0, most).map((entry) => decisionLine(entry, cluster.now)));
  };
  show();
  const stop = cluster.on("decisions", show);
  return { list, stop };
}

/** @param {import("../types").DecisionEntry} entry @param {number} now @param {boolean} [own] without the pod's name */
export function decisionLine(entry, now, own = false) {
  const good = entry.outcome === "bound";
  return h("li", { class: good ? "good" : "bad" },
    h("span", { class: "what" }, WORDS[entry.outcome] ?? entry.outcome),
    h("span", { class: "who" },
      own ? `attempt ${entry.attempt}` : podLink(entry.pod),
      entry.node ? " → " : null, entry.node ? nodeLink(entry.node) : null),
    h("span", { class: "when dim" }, `${duration(Math.max(now - entry.at, 0))} ago`),
    h("span", { class: "why dim" }, entry.text));
}
