// Draws nodes on a canvas: first into a buffer that is larger than what is seen, so that panning only copies it.

import { isDark, kindColour, ramp, token } from "../colours.js";
import { CORDONED, FULL, NOT_OFFERED, NOT_READY, TAINTED } from "./columns.js";

const MARGIN = 0.5;
const SLICED = 46;
const NAMED = 72;
const LEGIBLE = 120;

/** @typedef {{ x: number, y: number, k: number }} Camera */

export class Painter {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { alpha: false }));
    this.buffer = document.createElement("canvas");
    this.inside = /** @type {CanvasRenderingContext2D} */ (this.buffer.getContext("2d", { alpha: false }));
    /** @type {Camera | null} where the buffer was drawn */
    this.drawn = null;
    this.dress();
  }

  /** The colours of the theme. */
  dress() {
    this.ramp = ramp(isDark());
    this.back = token("--well");
    this.ground = token("--cell");
    this.text = token("--text");
    this.dim = token("--dim");
    this.bad = token("--bad");
    this.accent = token("--accent");
    this.line = token("--mark");
    this.drawn = null;
  }

  /** @param {number} width @param {number} height */
  resize(width, height) {
    this.scale = Math.min(devicePixelRatio || 1, 2);
    this.width = width;
    this.height = height;
    this.canvas.width = Math.round(width * this.scale);
    this.canvas.height = Math.round(height * this.scale);
    this.marginX = Math.round(width * MARGIN);
    this.marginY = Math.round(height * MARGIN);
    this.buffer.width = Math.round((width + 2 * this.marginX) * this.scale);
    this.buffer.height = Math.round((height + 2 * this.marginY) * this.scale);
    this.drawn = null;
  }

  /**
   * Show the map: from the buffer if it still covers what is seen.
   * @param {import("./layout.js").Layout} layout @param {import("./columns.js").Columns} columns
   * @param {Camera} camera @param {string} resource @param {Map<number, Slice[]>} slices @param {number} focus a row
   */
  paint(layout, columns, camera, resource, slices, focus) {
    const drawn = this.drawn;
    const covers = drawn && drawn.k === camera.k
      && Math.abs(camera.x - drawn.x) <= (this.marginX ?? 0) && Math.abs(camera.y - drawn.y) <= (this.marginY ?? 0);
    if (!covers) this.redraw(layout, columns, camera, resource, slices);
    const from = /** @type {Camera} */ (this.drawn), scale = this.scale ?? 1;
    const context = this.context;
    context.setTransform(1, 0, 0, 1, 0, 0);
    const x = (camera.x - from.x - (this.marginX ?? 0)) * scale, y = (camera.y - from.y - (this.marginY ?? 0)) * scale;
    context.drawImage(this.buffer, Math.round(x), Math.round(y));
    context.setTransform(scale, 0, 0, scale, 0, 0);
    this.labels(layout, camera);
    if (focus >= 0) this.ring(layout, camera, focus);
  }

  /** Only these rows, where the buffer is. */
  update(/** @type {import("./layout.js").Layout} */ layout, /** @type {import("./columns.js").Columns} */ columns,
    /** @type {Iterable<number>} */ rows, /** @type {string} */ resource, /** @type {Map<number, Slice[]>} */ slices) {
    if (!this.drawn) return;
    const shares = columns.column(resource);
    const size = layout.cell * this.drawn.k;
    for (const row of rows) {
      const [x, y] = this.corner(layout, row);
      this.inside.fillStyle = this.back ?? "";
      this.inside.fillRect(Math.round(x), Math.round(y), Math.ceil(size), Math.ceil(size));
      this.cell(columns, row, x, y, size, shares[row] ?? 0, slices.get(row));
    }
  }

  /** @param {import("./layout.js").Layout} layout @param {import("./columns.js").Columns} columns
   * @param {Camera} camera @param {string} resource @param {Map<number, Slice[]>} slices */
  redraw(layout, columns, camera, resource, slices) {
    this.drawn = { ...camera };
    const context = this.inside, scale = this.scale ?? 1;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.fillStyle = this.back ?? "";
    context.fillRect(0, 0, this.buffer.width, this.buffer.height);
    const shares = columns.column(resource), size = layout.cell * camera.k;
    const width = this.buffer.width / scale, height = this.buffer.height / scale;
    /** @type {number[][]} rows by colour: setting a colour costs more than a rectangle */
    const byColour = Array.from({ length: FULL + 2 }, () => []);
    /** @type {number[]} */
    const special = [];
    for (const block of layout.blocks) {
      for (const row of block.rows) {
        const [x, y] = this.corner(layout, row);
        if (x > width || y > height || x + size < 0 || y + size < 0) continue;
        if (size >= SLICED || (columns.flags[row] ?? 0) > 1) special.push(row);
        else byColour[colourOf(shares[row] ?? 0)]?.push(row);
      }
    }
    const inner = size > 4 ? size - 1 : size > 2 ? size - 0.6 : size;
    byColour.forEach((rows, colour) => {
      if (!rows.length) return;
      context.fillStyle = this.fillOf(colour);
      for (const row of rows) {
        const [x, y] = this.corner(layout, row);
        context.fillRect(x, y, inner, inner);
      }
    });
    for (const row of special) {
      const [x, y] = this.corner(layout, row);
      this.cell(columns, row, x, y, size, shares[row] ?? 0, slices.get(row));
    }
  }

  /** Where a row is in the buffer. @param {import("./layout.js").Layout} layout @param {number} row
   * @returns {[number, number]} */
  corner(layout, row) {
    const at = /** @type {Camera} */ (this.drawn);
    return [(layout.x[row] ?? 0) * at.k + at.x + (this.marginX ?? 0), (layout.y[row] ?? 0) * at.k + at.y + (this.marginY ?? 0)];
  }

  /** @param {number} colour */
  fillOf(colour) {
    return colour > FULL ? (this.line ?? "") : (this.ramp?.[colour] ?? "");
  }

  /** One node with its marks. @param {import("./columns.js").Columns} columns @param {number} row @param {number} x
   * @param {number} y @param {number} size @param {number} share @param {Slice[] | undefined} slices */
  cell(columns, row, x, y, size, share, slices) {
    const context = this.inside, flags = columns.flags[row] ?? 0;
    const inner = size > 4 ? size - 1 : size;
    context.fillStyle = this.fillOf(colourOf(share));
    context.globalAlpha = flags & NOT_READY ? 0.35 : 1;
    if (size >= SLICED) this.sliced(columns, row, x, y, size - 4, share, slices);
    else context.fillRect(x, y, inner, inner);
    context.globalAlpha = 1;
    if (flags > 1) this.marks(flags, x, y, size >= SLICED ? size - 4 : inner);
  }

  /** A node with room for its name and its pods. @param {import("./columns.js").Columns} columns @param {number} row
   * @param {number} x @param {number} y @param {number} size @param {number} share
   * @param {Slice[] | undefined} slices */
  sliced(columns, row, x, y, size, share, slices) {
    const context = this.inside;
    const head = size >= NAMED ? 15 : 0;
    context.fillStyle = this.ground ?? "";
    context.fillRect(x, y, size, size);
    context.fillStyle = this.fillOf(colourOf(share));
    context.fillRect(x, y, 4, size);
    if (head) {
      context.fillStyle = this.text ?? "";
      context.font = "11px system-ui, sans-serif";
      context.textBaseline = "top";
      context.fillText(columns.names[row] ?? "", x + 9, y + 4, size - 12);
    }
    context.font = "10px system-ui, sans-serif";
    let top = y + head + 4;
    const room = size - head - 8;
    for (const slice of slices ?? []) {
      const height = Math.max(slice.share * room, 2);
      if (top + height > y + size - 3) break;
      context.fillStyle = kindColour(slice.pod);
      context.fillRect(x + 9, top, size - 14, Math.max(height - 1, 1));
      if (size >= LEGIBLE && height >= 11) {
        context.fillStyle = "#0b0e12";
        context.textBaseline = "middle";
        context.save();
        context.beginPath();
        context.rect(x + 9, top, size - 18, height);
        context.clip();
        context.fillText(slice.pod.slice(slice.pod.indexOf("/") + 1), x + 14, top + height / 2);
        context.restore();
      }
      top += height;
    }
  }

  /** @param {number} flags @param {number} x @param {number} y @param {number} size */
  marks(flags, x, y, size) {
    const context = this.inside;
    const thin = Math.max(1, size / 14);
    if (flags & CORDONED) {
      context.strokeStyle = this.line ?? "";
      context.lineWidth = thin;
      context.beginPath();
      for (const at of size > 10 ? [0.35, 0.7, 1.05, 1.4] : [1]) {
        context.moveTo(x + Math.max(0, at - 1) * size, y + Math.min(1, at) * size);
        context.lineTo(x + Math.min(1, at) * size, y + Math.max(0, at - 1) * size);
      }
      context.stroke();
    }
    if (flags & TAINTED) {
      const side = Math.max(size * 0.34, 2.5);
      context.fillStyle = this.accent ?? "";
      context.beginPath();
      context.moveTo(x + size - side, y);
      context.lineTo(x + size, y);
      context.lineTo(x + size, y + side);
      context.fill();
    }
    if (flags & NOT_READY) {
      context.strokeStyle = this.bad ?? "";
      context.lineWidth = Math.max(1.4, Math.min(size / 9, 3));
      context.beginPath();
      context.rect(x + 0.8, y + 0.8, size - 1.6, size - 1.6);
      if (size > 7) {
        context.moveTo(x + size * 0.28, y + size * 0.28);
        context.lineTo(x + size * 0.72, y + size * 0.72);
        context.moveTo(x + size * 0.72, y + size * 0.28);
        context.lineTo(x + size * 0.28, y + size * 0.72);
      }
      context.stroke();
    }
  }

  /** Names of groups, which stay readable at any zoom. @param {import("./layout.js").Layout} layout @param {Camera} at */
  labels(layout, at) {
    const context = this.context;
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "bottom";
    for (const block of layout.blocks) {
      const x = block.x * at.k + at.x, y = (block.y + 16) * at.k + at.y;
      if (y < -20 || y > (this.height ?? 0) + 20 || x > (this.width ?? 0)) continue;
      const name = block.name || (layout.blocks.length > 1 ? "no such label" : "all nodes");
      const width = Math.max(block.width * at.k - 4, 40);
      const shown = `${name}  ${block.rows.length}`;
      context.fillStyle = this.back ?? "";
      context.fillRect(x, y - 16, Math.min(context.measureText(shown).width, width), 16);
      context.fillStyle = this.dim ?? "";
      context.fillText(shown, x, y, width);
    }
  }

  /** @param {import("./layout.js").Layout} layout @param {Camera} at @param {number} row */
  ring(layout, at, row) {
    const size = layout.cell * at.k, context = this.context;
    context.strokeStyle = this.text ?? "";
    context.lineWidth = 2;
    const around = size > 4 ? 1 : 2.5;
    const x = (layout.x[row] ?? 0) * at.k + at.x, y = (layout.y[row] ?? 0) * at.k + at.y;
    context.strokeRect(x - around, y - around, size - 1 + 2 * around, size - 1 + 2 * around);
  }
}

/** @typedef {{ pod: string, share: number }} Slice */

/** @param {number} share */
function colourOf(share) {
  return share === NOT_OFFERED ? FULL + 1 : Math.min(share, FULL);
}

export { SLICED };
