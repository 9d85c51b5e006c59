// Tables. On narrow screens, where rows would be cut, each row is a record of its own with the headings before the values.

import { h } from "../dom.js";
import { count } from "../words.js";

/**
 * @typedef {{ text: string, right?: boolean, sort?: string }} Head
 * @param {(string | Head)[]} heads
 * @param {import("../dom.js").Child[][]} rows
 * @param {string} [label] what the table is about
 * @param {{ by: string, choose: (by: string) => void }} [sorting] by which column, and what a click on another does
 */
export function table(heads, rows, label, sorting) {
  const given = heads.map((head) => (typeof head === "string" ? /** @type {Head} */ ({ text: head }) : head));
  const kept = given.map((_, i) => !rows.length || rows.some((cells) => !isEmpty(cells[i]))); // a column of nothing says nothing
  const all = given.filter((_, i) => kept[i]);
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label ?? "table" },
    h("table", {},
      h("thead", {}, h("tr", {}, all.map((head) => heading(head, sorting)))),
      h("tbody", {}, rows.map((cells) =>
        h("tr", {}, cells.filter((_, i) => kept[i]).map((cell, i) => h("td", {
          class: all[i]?.right ? "right" : null, "data-head": all[i]?.text || null, "data-empty": isEmpty(cell),
        }, cell)))))));
}

/** @param {import("../dom.js").Child | undefined} cell */
function isEmpty(cell) {
  return cell === "" || cell === null || cell === undefined || cell === false;
}

/** @param {Head} head @param {{ by: string, choose: (by: string) => void }} [sorting] */
function heading(head, sorting) {
  const name = head.right ? "right" : null;
  if (!head.sort || !sorting) return h("th", { scope: "col", class: name }, head.text);
  const down = sorting.by === `-${head.sort}`, up = sorting.by === head.sort;
  const next = head.right ? (down ? head.sort : `-${head.sort}`) : up ? `-${head.sort}` : head.sort;
  return h("th", { scope: "col", class: name, "aria-sort": up ? "ascending" : down ? "descending" : null },
    h("button", { type: "button", class: "sort", on: { click: () => sorting.choose(next) } }, head.text, up ? " ↑" : down ? " ↓" : ""));
}

/**
 * Previous and next page of a long list; nothing where all is on one.
 * @param {{ offset: number }} place @param {number} shown @param {number} total @param {() => void} show
 */
export function pager(place, shown, total, show) {
  if (total <= shown) return null;
  const turn = (/** @type {number} */ by) => h("button", {
    type: "button", disabled: place.offset + by < 0 || place.offset + by >= total,
    on: { click: () => { place.offset += by; show(); } },
  }, by < 0 ? "Previous" : "Next");
  return h("p", { class: "pager" }, turn(-100), `${count(place.offset + 1)} to ${count(place.offset + shown)} of ${count(total)}`, turn(100));
}
