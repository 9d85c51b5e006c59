// A chart of numbers over time, as SVG: lines, round ticks, labels that say what they are.

import { h, svg } from "../dom.js";
import { count } from "../words.js";

const HEIGHT = 170, LEFT = 44, RIGHT = 8, TOP = 8, BOTTOM = 22;

/**
 * @param {{ name: string, values: number[] }[]} lines
 * @param {number[]} times in seconds, ascending
 * @param {string} label what the chart shows
 */
export function chart(lines, times, label) {
  const WIDTH = innerWidth < 760 ? 350 : 640; // as wide as it is shown, so that words keep their size
  const last = times[times.length - 1] ?? 0, first = Math.min(times[0] ?? 0, last - 10);
  const top = round(Math.max(1, ...lines.flatMap((line) => line.values)));
  const x = (/** @type {number} */ time) => LEFT + ((time - first) / (last - first || 1)) * (WIDTH - LEFT - RIGHT);
  const y = (/** @type {number} */ value) => HEIGHT - BOTTOM - (value / top) * (HEIGHT - TOP - BOTTOM);
  const ticks = [0, top / 2, top].filter((tick) => Number.isInteger(tick));
  return h("figure", { class: "chart" },
    svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label },
      ticks.map((tick) => [
        svg("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y(tick), y2: y(tick), class: "grid" }),
        svg("text", { x: LEFT - 6, y: y(tick) + 4, class: "tick end" }, count(tick)),
      ]).flat(),
      moments(last - first, WIDTH / 100).map((ago) =>
        svg("text", { x: x(last - ago), y: HEIGHT - 6, class: `tick ${ago ? "middle" : "end"}` }, ago ? `−${words(ago)}` : "now")),
      lines.map((line, i) => svg("polyline", {
        class: `line line-${i}`,
        points: line.values.map((value, at) => `${x(times[at] ?? 0).toFixed(1)},${y(value).toFixed(1)}`).join(" "),
      }))),
    h("figcaption", {}, lines.map((line, i) =>
      h("span", {}, h("i", { class: `line-${i}` }), `${line.name} ${count(line.values[line.values.length - 1] ?? 0)}`))));
}

/** The next larger of 1, 2, 5 times a power of ten; even, so that its half is a number too. @param {number} value */
function round(value) {
  for (let unit = 1; ; unit *= 10) for (const step of [2, 4, 10]) if (value <= step * unit) return step * unit;
}

/** @param {number} span seconds @param {number} most */
function moments(span, most) {
  const step = [5, 10, 30, 60, 120, 300, 600, 1800, 3600].find((each) => span / each <= most) ?? 7200;
  return Array.from({ length: Math.floor(span / step) + 1 }, (_, i) => i * step);
}

/** @param {number} seconds */
function words(seconds) {
  return seconds < 60 ? `${seconds} s` : seconds < 3600 ? `${seconds / 60} min` : `${seconds / 3600} h`;
}
