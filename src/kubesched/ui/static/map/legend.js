// What the colours and marks of the map mean, and how many nodes have each.

import { isDark, ramp } from "../colours.js";
import { fill, h } from "../dom.js";
import { count } from "../words.js";
import { CORDONED, LIVE, NOT_READY, TAINTED } from "./columns.js";

const MARKS = /** @type {[string, string, number][]} */ ([
  ["not ready", "notready", NOT_READY], ["cordoned", "cordoned", CORDONED], ["tainted", "tainted", TAINTED],
]);

/** @param {import("../cluster.js").Cluster} cluster */
export function legend(cluster) {
  const scale = h("canvas", { width: 160, height: 8, role: "img", "aria-label": "from empty to full" });
  const marks = h("span", { class: "marks" });
  const paint = () => {
    const context = scale.getContext("2d");
    ramp(isDark()).forEach((colour, i) => {
      if (!context) return;
      context.fillStyle = colour;
      context.fillRect((i / 201) * 160, 0, 2, 8);
    });
  };
  const tally = () => {
    const numbers = MARKS.map(() => 0);
    let live = 0;
    for (const flags of cluster.columns.flags) {
      if (flags & LIVE) live++;
      if (flags > LIVE) MARKS.forEach(([, , bit], i) => (numbers[i] = (numbers[i] ?? 0) + (flags & bit ? 1 : 0)));
    }
    fill(marks, h("span", {}, `${count(live)} nodes`), MARKS.map(([name, css], i) =>
      h("span", { class: numbers[i] ? null : "dim" }, h("i", { class: `mark ${css}` }), `${name} ${count(numbers[i] ?? 0)}`)));
  };
  paint();
  tally();
  addEventListener("theme", paint);
  const stops = [cluster.on("map", tally), cluster.on("layout", tally), () => removeEventListener("theme", paint)];
  const element = h("div", { class: "legend-line" },
    h("span", { class: "scale" }, "empty", scale, "full"), marks);
  return { element, stop: () => stops.forEach((stop) => stop()) };
}
