// What the colours and marks of the map mean, and how many nodes have each; of pods, which workload has which colour.

import { isDark, ramp, workloadColour } from "../colours.js";
import { fill, h } from "../dom.js";
import { count, counted, titles } from "../words.js";
import { CORDONED, LIVE, NOT_READY, TAINTED } from "./columns.js";

const MARKS = /** @type {[string, string, number][]} */ ([
  ["not ready", "notready", NOT_READY], ["cordoned", "cordoned", CORDONED], ["tainted", "tainted", TAINTED],
]);
const NAMED = 10;

/**
 * @param {import("../cluster.js").Cluster} cluster @param {import("./map.js").NodeMapView} map
 * @param {() => import("./columns.js").Columns} [shown] the nodes whose marks are counted
 */
export function legend(cluster, map, shown = () => cluster.columns) {
  const scale = h("canvas", { width: 120, height: 8, role: "img", "aria-label": "from empty to full" });
  const marks = h("span", { class: "marks" }), pods = h("div", { class: "legend-pods", hidden: true }, " ");
  const paint = () => {
    const context = scale.getContext("2d");
    ramp(isDark()).forEach((colour, i) => {
      if (!context) return;
      context.fillStyle = colour;
      context.fillRect((i / 201) * 120, 0, 2, 8);
    });
  };
  const tally = () => {
    const numbers = MARKS.map(() => 0);
    let live = 0;
    for (const flags of shown().flags) {
      if (flags & LIVE) live++;
      if (flags > LIVE) MARKS.forEach(([, , bit], i) => (numbers[i] = (numbers[i] ?? 0) + (flags & bit ? 1 : 0)));
    }
    fill(marks, h("span", {}, counted(live, "node")), MARKS.map(([name, css], i) =>
      (numbers[i] ? h("span", {}, h("i", { class: `mark ${css}` }), `${count(numbers[i] ?? 0)} ${name}`) : null)));
  };
  const name = () => {
    const found = map.workloads();
    pods.hidden = !(pods.hidden ? map.isSliced : map.isNearlySliced);
    if (!found.length) return; // it stays as high as it was: the map is as high as the legend leaves it
    const names = titles(found.map(([workload]) => workload));
    const key = (/** @type {string} */ css, /** @type {string} */ text) => h("span", {}, h("i", { class: `mark ${css}` }), text);
    fill(pods, h("span", { class: "dim" }, "A slice is the pods of a workload, as tall as their share of the node; the rest is free."),
      found.slice(0, NAMED).map(([workload, number]) =>
        h("span", { title: `${workload}: ${counted(number, "pod")} in sight` },
          h("i", { class: "mark pods", style: { "--dot": workloadColour(workload) } }), names.get(workload) ?? workload)),
      found.length > NAMED ? h("span", { class: "dim" }, `and ${count(found.length - NAMED)} more`) : null,
      key("starting", "starting"), key("leaving", "leaving"));
  };
  paint();
  tally();
  map.onSlices = name;
  addEventListener("theme", paint);
  const stops = [cluster.on("map", tally), cluster.on("layout", tally), () => removeEventListener("theme", paint)];
  const element = h("div", { class: "map-legend" }, pods, h("div", { class: "legend-line" },
    h("span", { class: "scale" }, "empty", scale, "full"), marks));
  return { element, tally, stop: () => stops.forEach((stop) => stop()) };
}
