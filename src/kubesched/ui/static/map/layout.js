// Where each node is drawn: groups as blocks of square cells, as large as the place allows.

import { LIVE } from "./columns.js";

const LABEL = 18, GAP = 14, LARGEST = 220, SMALLEST = 1.5;
const ASPECTS = Array.from({ length: 28 }, (_, i) => 0.25 * 1.18 ** i);
const collator = new Intl.Collator("en", { numeric: true });

/** @typedef {{ name: string, rows: number[], x: number, y: number, columns: number, width: number }} Block */

export class Layout {
  /**
   * @param {import("./columns.js").Columns} columns
   * @param {number} width in pixels
   * @param {number} height
   */
  constructor(columns, width, height) {
    this.width = width;
    this.height = height;
    /** @type {Block[]} */
    this.blocks = grouped(columns);
    const best = fit(this.blocks.map((block) => block.rows.length), width, height);
    this.cell = best.cell;
    this.x = new Float32Array(columns.size);
    this.y = new Float32Array(columns.size);
    place(this.blocks, best.cell, best.aspect, width);
    for (const block of this.blocks) {
      block.rows.forEach((row, i) => {
        this.x[row] = block.x + (i % block.columns) * this.cell;
        this.y[row] = block.y + LABEL + Math.floor(i / block.columns) * this.cell;
      });
    }
    const last = this.blocks.map((b) => b.y + LABEL + Math.ceil(b.rows.length / b.columns) * this.cell);
    this.bottom = Math.max(0, ...last);
    this.right = Math.max(0, ...this.blocks.map((b) => b.x + b.columns * this.cell));
  }

  /** The row at a place; -1 for none. @param {number} x @param {number} y */
  at(x, y) {
    for (const block of this.blocks) {
      const column = Math.floor((x - block.x) / this.cell), line = Math.floor((y - block.y - LABEL) / this.cell);
      if (column < 0 || line < 0 || column >= block.columns) continue;
      const row = block.rows[line * block.columns + column];
      if (row !== undefined) return row;
    }
    return -1;
  }

  /**
   * The next row in a direction; the same row if there is none.
   * @param {number} row @param {number} dx @param {number} dy
   */
  next(row, dx, dy) {
    const x = this.x[row] ?? 0, y = this.y[row] ?? 0;
    let best = row, least = Infinity;
    for (const block of this.blocks) {
      for (const other of block.rows) {
        const along = ((this.x[other] ?? 0) - x) * dx + ((this.y[other] ?? 0) - y) * dy;
        const across = Math.abs(((this.x[other] ?? 0) - x) * dy) + Math.abs(((this.y[other] ?? 0) - y) * dx);
        const cost = along + 3 * across;
        if (along > this.cell / 2 && cost < least) [best, least] = [other, cost];
      }
    }
    return best;
  }
}

/** @param {import("./columns.js").Columns} columns @returns {Block[]} */
function grouped(columns) {
  /** @type {Map<string, number[]>} */
  const groups = new Map();
  for (let row = 0; row < columns.size; row++) {
    if (!((columns.flags[row] ?? 0) & LIVE)) continue;
    const name = columns.groups[row] ?? "";
    const rows = groups.get(name);
    if (rows) rows.push(row);
    else groups.set(name, [row]);
  }
  const names = [...groups.keys()].sort(collator.compare);
  return names.map((name) => {
    const rows = groups.get(name) ?? [];
    rows.sort((a, b) => collator.compare(columns.names[a] ?? "", columns.names[b] ?? ""));
    return { name, rows, x: 0, y: 0, columns: 1, width: 0 };
  });
}

/** The largest cell with which all groups find room, and the shape of the groups. */
function fit(/** @type {number[]} */ sizes, /** @type {number} */ width, /** @type {number} */ height) {
  let best = { cell: SMALLEST, aspect: 1.4 };
  for (const aspect of ASPECTS) {
    let low = best.cell, high = LARGEST;
    if (heightOf(sizes, low, aspect, width) > height) continue;
    for (let i = 0; i < 18; i++) {
      const middle = (low + high) / 2;
      if (heightOf(sizes, middle, aspect, width) <= height) low = middle;
      else high = middle;
    }
    if (low > best.cell) best = { cell: low, aspect };
  }
  return { cell: best.cell > 6 ? Math.floor(best.cell) : best.cell, aspect: best.aspect };
}

/** @param {number[]} sizes @param {number} cell @param {number} aspect @param {number} width */
function heightOf(sizes, cell, aspect, width) {
  const blocks = sizes.map((size) => ({ name: "", rows: { length: size }, x: 0, y: 0, columns: 1, width: 0 }));
  return place(/** @type {any} */ (blocks), cell, aspect, width);
}

/**
 * Put blocks on shelves from left to right; the height of all shelves.
 * @param {Block[]} blocks @param {number} cell @param {number} aspect @param {number} width
 */
function place(blocks, cell, aspect, width) {
  let x = 0, y = 0, shelf = 0;
  const most = Math.max(1, Math.floor(width / cell));
  const sizes = blocks.map((block) => block.rows.length);
  const largest = Math.max(...sizes), alike = largest < 2 * Math.min(...sizes);
  for (const block of blocks) {
    const size = alike ? largest : block.rows.length; // groups of about one size stand below each other
    block.columns = Math.min(most, Math.max(1, Math.ceil(Math.sqrt(size * aspect))));
    block.width = block.columns * cell;
    const height = LABEL + Math.ceil(block.rows.length / block.columns) * cell;
    if (x > 0 && x + block.width > width) {
      x = 0;
      y += shelf + GAP;
      shelf = 0;
    }
    block.x = x;
    block.y = y;
    x += block.width + GAP;
    shelf = Math.max(shelf, height);
  }
  return y + shelf;
}
