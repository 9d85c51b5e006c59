// Draws nodes on a canvas: first into a buffer that is larger than what is seen, so that panning only copies it.

import { isDark, ramp, token, workloadColour } from "../colours.js";
import { CHOSEN, CORDONED, FULL, NOT_OFFERED, NOT_READY, TAINTED } from "./columns.js";
import { count } from "../words.js";
import { shortened } from "./names.js";

const MARGIN = 0.5;
/** Sides of cells, in pixels, from which on they show pods, their name, what is in a slice. */
const SLICED = 40, NAMED = 62, LEGIBLE = 84;
const BAR = 4, ROOMY = 300, INK = "#0b0e12";
const FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";

/** @typedef {{ x: number, y: number, k: number }} Camera */
/** Pods of one workload on a node: shares of each, and the phases of those that are not running.
 * @typedef {{ workload: string, pods: { share: number, phase: string }[], share: number }} Slice */

export class Painter {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { alpha: false }));
    this.buffer = document.createElement("canvas");
    this.inside = /** @type {CanvasRenderingContext2D} */ (this.buffer.getContext("2d", { alpha: false }));
    /** @type {Camera | null} where the buffer was drawn */
    this.drawn = null;
    /** Whether large cells show pods as slices, rather than a colour. */
    this.slices = true;
    /** What all names end with, and which is left out. */
    this.ending = "";
    this.type = 1;
    this.head = 18;
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
    this.chosen = token("--chosen");
    this.line = token("--mark");
    this.drawn = null;
  }

  /** @param {number} width @param {number} height */
  resize(width, height) {
    this.scale = Math.min(devicePixelRatio || 1, 2);
    /** How much larger type is than usual, as on the rest of the page, and how high that makes the line of a name. */
    this.type = parseFloat(token("--type")) / 13 || 1;
    this.head = Math.round(18 * this.type);
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
    const shares = columns.column(resource), { width, height } = this.sides(layout);
    for (const row of rows) {
      const [x, y] = this.corner(layout, row);
      this.inside.fillStyle = this.back ?? "";
      this.inside.fillRect(Math.round(x), Math.round(y), Math.ceil(width), Math.ceil(height));
      this.cell(columns, row, { x, y, width, height }, shares[row] ?? 0, slices.get(row));
    }
  }

  /** Of a cell, as it is drawn. @param {import("./layout.js").Layout} layout */
  sides(layout) {
    const k = this.drawn?.k ?? 1;
    return { width: layout.cell.width * k, height: layout.cell.height * k };
  }

  /** @param {import("./layout.js").Layout} layout @param {import("./columns.js").Columns} columns
   * @param {Camera} camera @param {string} resource @param {Map<number, Slice[]>} slices */
  redraw(layout, columns, camera, resource, slices) {
    this.drawn = { ...camera };
    const context = this.inside, scale = this.scale ?? 1;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.fillStyle = this.back ?? "";
    context.fillRect(0, 0, this.buffer.width, this.buffer.height);
    const shares = columns.column(resource), { width: across, height: down } = this.sides(layout);
    const width = this.buffer.width / scale, height = this.buffer.height / scale, side = Math.min(across, down);
    /** @type {number[][]} rows by colour: setting a colour costs more than a rectangle */
    const byColour = Array.from({ length: FULL + 2 }, () => []);
    /** @type {number[]} */
    const special = [];
    for (const block of layout.blocks) {
      for (const row of block.rows) {
        const [x, y] = this.corner(layout, row);
        if (x > width || y > height || x + across < 0 || y + down < 0) continue;
        if (side >= SLICED || (columns.flags[row] ?? 0) > 1) special.push(row);
        else byColour[colourOf(shares[row] ?? 0)]?.push(row);
      }
    }
    const gap = side > 4 ? 1 : side > 2 ? 0.6 : 0;
    byColour.forEach((rows, colour) => {
      if (!rows.length) return;
      context.fillStyle = this.fillOf(colour);
      for (const row of rows) {
        const [x, y] = this.corner(layout, row);
        context.fillRect(x, y, across - gap, down - gap);
      }
    });
    for (const row of special) {
      const [x, y] = this.corner(layout, row);
      this.cell(columns, row, { x, y, width: across, height: down }, shares[row] ?? 0, slices.get(row));
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

  /** One node with its marks. @param {import("./columns.js").Columns} columns @param {number} row
   * @param {Box} box @param {number} share @param {Slice[] | undefined} slices */
  cell(columns, row, box, share, slices) {
    const context = this.inside, flags = columns.flags[row] ?? 0, side = Math.min(box.width, box.height);
    const gap = side >= SLICED ? 4 : side > 4 ? 1 : 0;
    const inner = { ...box, width: box.width - gap, height: box.height - gap };
    const faint = flags & NOT_READY ? 0.45 : 1, named = side >= NAMED;
    if (side >= SLICED && this.slices) this.sliced(columns, row, inner, share, slices, faint);
    else {
      context.fillStyle = named ? this.ground ?? "" : this.fillOf(colourOf(share));
      context.globalAlpha = named ? 1 : faint;
      context.fillRect(inner.x, inner.y, inner.width, inner.height);
      context.globalAlpha = faint;
      if (named) this.filled(inner, share);
    }
    context.globalAlpha = 1;
    if (named && !this.slices) this.named(columns, row, inner, share, this.text ?? "");
    if (flags > 1) this.marks(flags, inner, named ? this.head : 0);
  }

  /** A large node without its pods: filled from below, as a glass. @param {Box} box @param {number} share */
  filled(box, share) {
    const part = share === NOT_OFFERED ? 0 : Math.min(share / FULL, 1), room = box.height - this.head;
    this.inside.fillStyle = this.fillOf(colourOf(share));
    this.inside.fillRect(box.x, box.y + this.head + room * (1 - part), box.width, room * part);
  }

  /** The name of a node, and how full it is. @param {import("./columns.js").Columns} columns @param {number} row
   * @param {Box} box @param {number} share @param {string} colour */
  named(columns, row, box, share, colour) {
    const context = this.inside, full = share === NOT_OFFERED ? "" : `${Math.round((share / FULL) * 100)} %`;
    context.font = `${12 * this.type}px ${FONT}`;
    context.textBaseline = "middle";
    context.fillStyle = colour;
    const corner = (columns.flags[row] ?? 0) & TAINTED ? 8 : 0;
    const wide = box.width >= 2 * NAMED ? context.measureText(full).width + 10 + corner : 0;
    const name = columns.names[row] ?? "";
    const short = this.ending && name.endsWith(this.ending) ? name.slice(0, -this.ending.length) : name;
    context.fillText(shortened(context, short, box.width - 12 - wide), box.x + 6, box.y + this.head / 2 + 1);
    if (wide) {
      context.textAlign = "right";
      context.fillText(full, box.x + box.width - 6 - corner, box.y + this.head / 2 + 1);
      context.textAlign = "left";
    }
  }

  /** A node with room for its name and its pods, which stand on each other as they fill it. @param {import("./columns.js").Columns} columns
   * @param {number} row @param {Box} box @param {number} share @param {Slice[] | undefined} slices @param {number} alpha */
  sliced(columns, row, box, share, slices, alpha) {
    const context = this.inside, named = Math.min(box.width, box.height) >= NAMED - 4, head = named ? this.head : 2;
    context.fillStyle = this.ground ?? "";
    context.fillRect(box.x, box.y, box.width, box.height);
    if (named) this.named(columns, row, box, share, this.text ?? "");
    context.fillStyle = this.back ?? "";
    context.fillRect(box.x + 6, box.y + head, box.width - 12, BAR);
    context.fillStyle = this.fillOf(colourOf(share));
    context.fillRect(box.x + 6, box.y + head, (box.width - 12) * Math.min(share === NOT_OFFERED ? 0 : share / FULL, 1), BAR);
    const top = box.y + head + BAR + 4, bottom = box.y + box.height - 4;
    const sum = (slices ?? []).reduce((all, slice) => all + slice.share, 0), room = (bottom - top) / Math.max(sum, 1); // some promise more than they have
    let low = bottom;
    context.globalAlpha = alpha;
    for (const slice of slices ?? []) {
      const height = Math.max(slice.share * room, 2);
      if (low - height < top - 2) break;
      low -= height;
      this.slice(slice, { x: box.x + 6, y: low, width: box.width - 12, height: Math.max(height - 1, 1) });
    }
  }

  /** The pods of a workload: a line between two, hollow while one starts, hatched while it leaves. @param {Slice} slice @param {Box} box */
  slice(slice, box) {
    const context = this.inside, colour = workloadColour(slice.workload);
    let y = box.y;
    const all = slice.pods.reduce((sum, pod) => sum + pod.share, 0) || 1;
    for (const pod of slice.pods) {
      const height = (pod.share / all) * box.height, gap = height > 5 ? 1 : 0;
      const hollow = pod.phase === "starting", leaving = pod.phase === "leaving";
      context.fillStyle = colour;
      context.globalAlpha *= hollow || leaving ? 0.4 : 1;
      context.fillRect(box.x, y, box.width, Math.max(height - gap, 0.6));
      context.globalAlpha /= hollow || leaving ? 0.4 : 1;
      if (leaving && height > 5) this.hatch({ ...box, y, height: height - gap }, colour);
      if (hollow && height > 5) {
        context.strokeStyle = colour;
        context.lineWidth = 1.2;
        context.strokeRect(box.x + 0.6, y + 0.6, box.width - 1.2, height - gap - 1.2);
      }
      y += height;
    }
    if (box.width < LEGIBLE - 20 || box.height < 14) return;
    const pale = slice.pods.every((pod) => pod.phase === "starting" || pod.phase === "leaving");
    const name = slice.workload.slice(slice.workload.indexOf("/") + 1);
    const size = box.height > 60 && box.width > ROOMY ? 17 : box.height > 26 && box.width > 150 ? 13 : 11;
    context.font = `${Math.min(size * this.type, box.height - 2)}px ${FONT}`;
    context.fillStyle = pale ? this.text ?? "" : INK;
    context.textBaseline = "middle";
    const times = slice.pods.length > 1 ? ` ×${slice.pods.length}` : "";
    const percent = box.width > ROOMY ? `${Math.round(all * 100)} %` : "";
    const room = box.width - 10 - context.measureText(times).width - (percent ? context.measureText(percent).width + 10 : 0);
    const first = slice.pods[0] ? (slice.pods[0].share / all) * box.height : box.height;
    const middle = box.y + (first >= 14 ? first / 2 : box.height / 2);
    if (first < 14 && slice.pods.length > 1) { // lines between pods would go through the words
      context.fillStyle = colour;
      context.fillRect(box.x + 3, middle - 8, Math.min(context.measureText(name + times).width + 6, box.width - 6), 16);
      context.fillStyle = INK;
    }
    const shown = shortened(context, name, room, true);
    context.fillText(shown ? shown + times : times.trim(), box.x + 5, middle);
    if (!percent) return;
    context.textAlign = "right";
    context.fillText(percent, box.x + box.width - 5, middle);
    context.textAlign = "left";
  }

  /** @param {Box} box @param {string} colour */
  hatch(box, colour) {
    const context = this.inside;
    context.save();
    context.beginPath();
    context.rect(box.x, box.y, box.width, box.height);
    context.clip();
    context.strokeStyle = colour;
    context.lineWidth = 1.2;
    context.beginPath();
    const step = Math.max(6, Math.min(box.width, box.height) / 16);
    for (let at = -box.height; at < box.width; at += step) {
      context.moveTo(box.x + at, box.y + box.height);
      context.lineTo(box.x + at + box.height, box.y);
    }
    context.stroke();
    context.restore();
  }

  /** @param {number} flags @param {Box} box @param {number} head how high the name is, which stays free of lines */
  marks(flags, box, head) {
    const context = this.inside, side = Math.min(box.width, box.height), { x, y, width, height } = box;
    if (flags & CORDONED) {
      context.globalAlpha = side > 12 ? 0.5 : 0.9;
      if (side > 12) this.hatch({ ...box, y: y + head, height: height - head }, this.line ?? "");
      else {
        context.strokeStyle = this.line ?? "";
        context.lineWidth = 1;
        context.beginPath();
        context.moveTo(x, y + height);
        context.lineTo(x + width, y);
        context.stroke();
      }
      context.globalAlpha = 1;
    }
    if (flags & TAINTED) {
      const corner = Math.min(Math.max(side * 0.3, 2), 9);
      context.fillStyle = this.line ?? "";
      context.globalAlpha = side > 12 ? 1 : 0.75;
      context.beginPath();
      context.moveTo(x + width - corner, y);
      context.lineTo(x + width, y);
      context.lineTo(x + width, y + corner);
      context.fill();
      context.globalAlpha = 1;
    }
    if (flags & NOT_READY) {
      context.strokeStyle = this.bad ?? "";
      context.lineWidth = Math.max(1.2, Math.min(side / 12, 2.5));
      context.beginPath();
      context.rect(x + 0.8, y + 0.8, width - 1.6, height - 1.6);
      if (side > 7 && side < SLICED) {
        context.moveTo(x + width * 0.28, y + height * 0.28);
        context.lineTo(x + width * 0.72, y + height * 0.72);
        context.moveTo(x + width * 0.72, y + height * 0.28);
        context.lineTo(x + width * 0.28, y + height * 0.72);
      }
      context.stroke();
    }
    if (flags & CHOSEN) {
      context.strokeStyle = this.chosen ?? "";
      context.lineWidth = Math.max(1.5, Math.min(side / 10, 3.5));
      context.strokeRect(x + 1, y + 1, width - 2, height - 2);
    }
  }

  /** Names of groups, which stay readable at any zoom. @param {import("./layout.js").Layout} layout @param {Camera} at */
  labels(layout, at) {
    const context = this.context;
    context.font = `600 ${12 * this.type}px ${FONT}`;
    context.textBaseline = "bottom";
    for (const block of layout.blocks) {
      const x = block.x * at.k + at.x, y = (block.y + 17) * at.k + at.y;
      if (y < -20 || y > (this.height ?? 0) + 20 || x > (this.width ?? 0)) continue;
      const name = block.name || (layout.blocks.length > 1 ? "no such label" : "all nodes");
      const width = Math.max(block.width * at.k - 4, 40), said = `  ${count(block.rows.length)}`;
      const number = context.measureText(name + said).width <= width ? said : ""; // the name goes first
      const shown = shortened(context, name, width - context.measureText(number).width);
      context.fillStyle = this.back ?? "";
      context.fillRect(x, y - 16 * this.type, Math.min(context.measureText(shown + number).width, width), 16 * this.type);
      context.fillStyle = this.text ?? "";
      context.fillText(shown, x, y);
      context.fillStyle = this.dim ?? "";
      context.fillText(number, x + context.measureText(shown).width, y);
    }
  }

  /** @param {import("./layout.js").Layout} layout @param {Camera} at @param {number} row */
  ring(layout, at, row) {
    const width = layout.cell.width * at.k, height = layout.cell.height * at.k, context = this.context;
    context.strokeStyle = this.text ?? "";
    context.lineWidth = 2;
    const small = Math.min(width, height) <= 4, around = small ? 2.5 : 1, gap = Math.min(width, height) >= SLICED ? 4 : 1;
    const x = (layout.x[row] ?? 0) * at.k + at.x, y = (layout.y[row] ?? 0) * at.k + at.y;
    context.strokeRect(x - around, y - around, width - gap + 2 * around, height - gap + 2 * around);
  }
}

/** @typedef {{ x: number, y: number, width: number, height: number }} Box */

/** @param {number} share */
function colourOf(share) {
  return share === NOT_OFFERED ? FULL + 1 : Math.min(share, FULL);
}

export { SLICED };
