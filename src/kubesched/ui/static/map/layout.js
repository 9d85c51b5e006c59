// Where each node is drawn: groups as blocks of cells, which together fill the place there is.

import { LIVE } from "./columns.js";

const LABEL = 20, GAP = 14, LARGEST = 900, SMALLEST = 1.5;
const ASPECTS = Array.from({ length: 28 }, (_, i) => 0.25 * 1.18 ** i);
/** Heights of cells, as shares of their widths: only large cells may be no squares. */
const RATIOS = [1, 0.8, 0.62, 0.48, 0.36, 1.3, 1.7];
const ROOMY = 40, STRETCH = 1.5;
const collator = new Intl.Collator("en", { numeric: true });

/** @typedef {{ name: string, rows: number[], x: number, y: number, columns: number, width: number }} Block */
/** @typedef {{ width: number, height: number }} Cell */

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
    /** The smaller side of a cell. */
    this.side = Math.min(best.cell.width, best.cell.height);
    this.x = new Float32Array(columns.size);
    this.y = new Float32Array(columns.size);
    place(this.blocks, best.cell, best.aspect, width);
    for (const block of this.blocks) {
      block.rows.forEach((row, i) => {
        this.x[row] = block.x + (i % block.columns) * this.cell.width;
        this.y[row] = block.y + LABEL + Math.floor(i / block.columns) * this.cell.height;
      });
    }
    const last = this.blocks.map((b) => b.y + LABEL + Math.ceil(b.rows.length / b.columns) * this.cell.height);
    this.bottom = Math.max(0, ...last);
    this.right = Math.max(0, ...this.blocks.map((b) => b.x + b.columns * this.cell.width));
  }

  /** The row at a place; -1 for none. @param {number} x @param {number} y */
  at(x, y) {
    for (const block of this.blocks) {
      const column = Math.floor((x - block.x) / this.cell.width), line = Math.floor((y - block.y - LABEL) / this.cell.height);
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
        if (along > this.side / 2 && cost < least) [best, least] = [other, cost];
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

/**
 * The cells with which all groups find room and cover most of it, and the shape of the groups.
 * @param {number[]} sizes @param {number} width @param {number} height
 */
function fit(sizes, width, height) {
  let best = { cell: { width: SMALLEST, height: SMALLEST }, aspect: 1.4 }, most = 0;
  for (const ratio of RATIOS) {
    const cell = (/** @type {number} */ side) => ({ width: side, height: side * ratio });
    for (const aspect of ASPECTS) {
      let low = SMALLEST, high = LARGEST;
      if (sizeOf(sizes, cell(low), aspect, width).height > height) continue;
      for (let i = 0; i < 18; i++) {
        const middle = (low + high) / 2, size = sizeOf(sizes, cell(middle), aspect, width);
        if (size.height <= height && size.width <= width) low = middle;
        else high = middle;
      }
      if (ratio !== 1 && low < ROOMY) continue;
      const covered = low * low * ratio * (ratio === 1 ? 1.08 : 1);
      if (covered > most) [best, most] = [{ cell: cell(low), aspect }, covered];
    }
  }
  return { cell: stretched(sizes, best.cell, best.aspect, width, height), aspect: best.aspect };
}

/** Larger in one direction, where there is place to spare. @param {number[]} sizes @param {Cell} cell
 * @param {number} aspect @param {number} width @param {number} height @returns {Cell} */
function stretched(sizes, cell, aspect, width, height) {
  const limit = Math.min(cell.width, cell.height) < ROOMY ? 1.25 : STRETCH;
  const columns = blocksOf(sizes, cell, aspect, width).map((block) => block.columns);
  const grown = { ...cell };
  for (const side of /** @type {const} */ (["width", "height"])) {
    let low = 1, high = limit;
    for (let i = 0; i < 14; i++) {
      const middle = (low + high) / 2, tried = { ...grown, [side]: cell[side] * middle };
      const blocks = blocksOf(sizes, tried, aspect, width);
      const size = extent(blocks, tried);
      const same = blocks.every((block, at) => block.columns === columns[at]);
      if (same && size.height <= height && size.width <= width) low = middle;
      else high = middle;
    }
    grown[side] = cell[side] * low;
  }
  const whole = (/** @type {number} */ value) => (value > 16 ? Math.floor(value) : Math.floor(value * 8) / 8);
  return { width: whole(grown.width), height: whole(grown.height) };
}

/** @param {number[]} sizes @param {Cell} cell @param {number} aspect @param {number} width */
function sizeOf(sizes, cell, aspect, width) {
  return extent(blocksOf(sizes, cell, aspect, width), cell);
}

/** @param {number[]} sizes @param {Cell} cell @param {number} aspect @param {number} width @returns {Block[]} */
function blocksOf(sizes, cell, aspect, width) {
  const blocks = sizes.map((size) => ({ name: "", rows: /** @type {any} */ ({ length: size }), x: 0, y: 0, columns: 1, width: 0 }));
  place(blocks, cell, aspect, width);
  return blocks;
}

/** @param {Block[]} blocks @param {Cell} cell */
function extent(blocks, cell) {
  let width = 0, height = 0;
  for (const block of blocks) {
    width = Math.max(width, block.x + block.width);
    height = Math.max(height, block.y + LABEL + Math.ceil(block.rows.length / block.columns) * cell.height);
  }
  return { width, height };
}

/**
 * Put blocks on shelves from left to right.
 * @param {Block[]} blocks @param {Cell} cell @param {number} aspect @param {number} width
 */
function place(blocks, cell, aspect, width) {
  let x = 0, y = 0, shelf = 0;
  const most = Math.max(1, Math.floor(width / cell.width));
  const sizes = blocks.map((block) => block.rows.length);
  const largest = Math.max(...sizes), alike = largest < 2 * Math.min(...sizes);
  for (const block of blocks) {
    const size = alike ? largest : block.rows.length; // groups of about one size stand below each other
    block.columns = Math.min(most, size, Math.max(1, Math.ceil(Math.sqrt(size * aspect))));
    block.width = block.columns * cell.width;
    const height = LABEL + Math.ceil(block.rows.length / block.columns) * cell.height;
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
}
