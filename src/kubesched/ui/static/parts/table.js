// Tables that scroll sideways on narrow screens.

import { h } from "../dom.js";

/**
 * @param {(string | { text: string, right?: boolean })[]} heads
 * @param {import("../dom.js").Child[][]} rows
 * @param {string} [label] what the table is about
 */
export function table(heads, rows, label) {
  const right = heads.map((head) => typeof head !== "string" && !!head.right);
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label ?? "table" },
    h("table", {},
      h("thead", {}, h("tr", {}, heads.map((head, i) =>
        h("th", { scope: "col", class: right[i] ? "right" : null }, typeof head === "string" ? head : head.text)))),
      h("tbody", {}, rows.map((cells) =>
        h("tr", {}, cells.map((cell, i) => h("td", { class: right[i] ? "right" : null }, cell)))))));
}
