// Bars: a share of something, with its number beside it.

import { h } from "../dom.js";
import { percent } from "../words.js";

/** @param {number} share @param {string} [name] class @param {number} [used] another share, as a mark on it */
export function bar(share, name = "", used) {
  return h("span", { class: `bar ${name}`, role: "img", "aria-label": used === undefined ? percent(share) : `${percent(share)} requested, ${percent(used)} used` },
    h("span", { style: { "--share": `${Math.min(share, 1) * 100}%` } }),
    used === undefined ? null : h("i", { style: { "--share": `${Math.min(used, 1) * 100}%` } }));
}

/**
 * Parts that add up, each in its own tint.
 * @param {{ name: string, value: number }[]} parts @param {number} most the sum that fills the whole width
 */
export function stacked(parts, most) {
  const words = parts.map((part) => `${part.name} ${part.value}`).join(", ");
  return h("span", { class: "stack", role: "img", "aria-label": words }, parts.map((part, i) =>
    h("span", {
      class: `tint tint-${i % 8}`, title: `${part.name}: ${part.value}`,
      style: { "--share": `${(Math.max(part.value, 0) / Math.max(most, 1)) * 100}%` },
    })));
}
