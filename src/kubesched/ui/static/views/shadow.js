// Shadow: how often the scheduler in charge and this one agree, and where they do not: by cause, with both sides.

import { get } from "../api.js";
import { empty, fill, h, link, nodeLink, panel, podLink } from "../dom.js";
import { often } from "../often.js";
import { chart } from "../parts/chart.js";
import { stacked } from "../parts/bars.js";
import { count, counted, duration } from "../words.js";

/** @typedef {import("../types").ShadowView} ShadowView @typedef {import("../types").ShadowComparison} Comparison */

/** What a judgement means, in the order of how much they differ. */
const MEANING = /** @type {Record<string, [string, string]>} */ ({
  same: ["same node", "both chose this node"],
  tie: ["a tie", "another of the nodes that score best here"],
  lower: ["scores lower here", "their node fits here, but another has a higher score"],
  rejected: ["rejected here", "a plugin here would not have let the pod onto their node"],
  "no-node": ["no node fits here", "here the pod would have waited"],
  error: ["no decision here", "something broke while deciding"],
});

/**
 * @param {import("../cluster.js").Cluster} cluster
 * @returns {import("../router.js").View}
 */
export const shadow = (cluster) => async (root, route) => {
  const chosen = route.path[1] ?? "";
  const summary = h("div", {}), causes = h("div", { class: "cause-list" }), pods = h("div", { class: "differences" });
  fill(root, h("div", { class: "shadow" }, h("h1", {}, "Shadow: beside the scheduler in charge"), summary,
    h("div", { class: "shadow-columns" }, panel("Differences, by cause", "", causes), pods)));
  let seen = "";
  const show = async () => {
    /** @type {ShadowView} */
    const view = await get(`api/shadow?cause=${encodeURIComponent(chosen)}`);
    fill(summary, agreement(view));
    fill(causes, causeList(view, chosen));
    const now = view.differences.map(({ comparison }) => `${comparison.pod} ${comparison.theirNode.node}`).join();
    if (now !== seen || !view.pods) fill(pods, differences(view, chosen)); // what somebody reads stays as it is
    seen = now;
  };
  await show();
  return { leave: often(1000, show, (again) => cluster.on("decisions", again)) };
};

/** @param {ShadowView} view */
function agreement(view) {
  if (!view.pods) {
    return empty("No pod was bound since this page's scheduler started.", "As soon as the scheduler in charge binds one, it is judged here.");
  }
  const there = view.judgements.filter(([, pods]) => pods);
  const share = (view.agreeing / view.pods) * 100;
  const times = view.overTime.map(([at]) => at);
  return h("div", { class: "columns" },
    panel("Agreement", "agreement",
      h("p", { class: "big" }, `${share === 100 || share === 0 ? share : share.toFixed(share > 99 ? 2 : 1)} %`,
        h("span", {}, ` of ${counted(view.pods, "pod")} bound by the other scheduler`)),
      stackOf(there, view.pods),
      h("ul", { class: "judgements" }, there.map(([name, pods]) => h("li", {},
        h("i", { class: `judged-${name}` }), h("b", {}, count(pods)), h("span", {}, MEANING[name]?.[0] ?? name),
        h("span", { class: "dim small" }, MEANING[name]?.[1] ?? "")))),
    ),
    panel(`Over time, pods per ${duration(view.spanSeconds)}`, "", chart([
      { name: "agree", values: view.overTime.map((point) => point[1]) },
      { name: "differ", values: view.overTime.map((point) => point[2]) },
    ], times, "Pods on which both agree, and on which they differ, over time")));
}

/** @param {[string, number][]} judgements @param {number} all */
function stackOf(judgements, all) {
  const words = judgements.map(([name, pods]) => `${count(pods)} ${MEANING[name]?.[0] ?? name}`).join(", ");
  return h("span", { class: "stack", role: "img", "aria-label": words }, judgements.map(([name, pods]) =>
    h("span", { class: `tint judged-${name}`, title: MEANING[name]?.[1] ?? "", style: { "--share": `${(pods / all) * 100}%` } })));
}

/** @param {ShadowView} view @param {string} chosen */
function causeList(view, chosen) {
  if (!view.causes.length) return empty(view.pods ? "None: both agree on every pod so far." : "None yet.");
  const most = view.causes[0]?.pods ?? 1;
  return [
    h("ol", { class: "bars" }, view.causes.map((cause) => h("li", { class: cause.id === chosen ? "chosen" : null },
      link(["shadow", cause.id], cause.title || MEANING[cause.judgement]?.[0] || cause.judgement, "name"),
      h("span", { class: "number" }, count(cause.pods)),
      h("span", { class: "bar" }, h("span", { class: `judged-${cause.judgement}`, style: { "--share": `${(cause.pods / most) * 100}%` } })),
      h("span", { class: "dim small" }, MEANING[cause.judgement]?.[0] ?? cause.judgement)))),
    chosen ? h("p", { class: "small" }, link(["shadow"], "All causes")) : null,
  ];
}

/** @param {ShadowView} view @param {string} chosen */
function differences(view, chosen) {
  if (!view.differences.length) {
    return chosen ? panel("Pods", "", empty("The pods of this cause are too long ago to be remembered.")) : null;
  }
  return view.differences.map(({ comparison, agoSeconds }) => difference(comparison, agoSeconds));
}

/** One pod, with both sides. @param {Comparison} each @param {number} agoSeconds */
function difference(each, agoSeconds) {
  const most = Math.max(each.theirNode.total ?? 0, each.ourNode?.total ?? 0, 1);
  return h("article", { class: "panel difference" },
    h("h2", {}, podLink(each.pod), h("span", { class: "when dim" }, ` ${duration(agoSeconds)} ago`)),
    h("p", {}, sentence(each)),
    h("div", { class: "sides" },
      side("They chose", each.theirNode, most, each.said ? `They had said: ${each.said}` : ""),
      each.ourNode ? side("Here it would be", each.ourNode, most, each.fitting ? `best of ${counted(each.fitting, "node")} that ${each.fitting === 1 ? "fits" : "fit"}, of ${count(each.nodes)}` : "")
        : h("div", { class: "side" }, h("h3", {}, "Here it would wait"), h("p", {}, each.message || "no node fits"))),
    each.ourNode?.parts.length && each.theirNode.parts.length ? points(each.ourNode, each.theirNode) : null);
}

/** @param {Comparison} each */
function sentence(each) {
  switch (each.judgement) {
    case "lower": {
      const by = (each.ourNode?.total ?? 0) - (each.theirNode.total ?? 0);
      return by > 0 ? `Their node fits here, and scores ${counted(by, "point")} less than the best.` : each.why;
    }
    case "rejected": return "Their node would not have been taken here.";
    case "no-node": return "No node fits here, theirs included.";
    default: return each.why;
  }
}

/** @param {string} title @param {import("../types").Standing} standing @param {number} most @param {string} more */
function side(title, standing, most, more) {
  return h("div", { class: "side" },
    h("h3", {}, title, " ", nodeLink(standing.node)),
    standing.rejection ? h("p", { class: "bad" }, standing.rejection)
      : standing.total !== undefined ? h("p", { class: "scored" },
        stacked(standing.parts.map(([name, value]) => ({ name, value })), most), h("b", {}, counted(standing.total, "point")))
        : h("p", {}, "It was not scored."),
    more ? h("p", { class: "dim small" }, more) : null);
}

/** What made the difference. @param {import("../types").Standing} ours @param {import("../types").Standing} theirs */
function points(ours, theirs) {
  return h("ul", { class: "legend" }, ours.parts.map(([name, value], i) => {
    const by = value - (theirs.parts[i]?.[1] ?? 0);
    return h("li", { class: by ? null : "dim" }, h("i", { class: `tint tint-${i % 8}` }), `${name} `,
      h("b", {}, by > 0 ? `+${by}` : by < 0 ? `−${-by}` : "equal"));
  }));
}
