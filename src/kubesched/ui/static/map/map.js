// The node map: a canvas to look at, to pan and zoom, to hover over, to click into and to walk through with arrows.

import { get } from "../api.js";
import { fill, h } from "../dom.js";
import { go } from "../router.js";
import { counted, percent, short } from "../words.js";
import { CORDONED, FULL, NOT_OFFERED, NOT_READY, SCARCEST, TAINTED, bytes } from "./columns.js";
import { Layout } from "./layout.js";
import { commonEnding } from "./names.js";
import { Painter, SLICED } from "./painter.js";

const ARROWS = /** @type {Record<string, [number, number]>} */ ({
  ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1],
});
const FARTHEST = 60;
const MOST_SLICED = 250;
let maps = 0;

export class NodeMapView {
  /**
   * @param {Pick<import("../cluster.js").Cluster, "columns" | "on">} cluster
   * @param {string} resource what colours say
   * @param {{ label?: string, chosen?: (node: string) => void }} how what a click does, if it opens no node
   */
  constructor(cluster, resource = SCARCEST, how = {}) {
    this.cluster = cluster;
    this.how = how;
    this.resource = resource;
    const help = `map-help-${++maps}`;
    this.canvas = h("canvas", {
      tabindex: 0, role: "application", "aria-label": how.label ?? "Map of the nodes", "aria-describedby": help,
    });
    this.tip = h("div", { class: "tip", role: "status", "aria-live": "polite", hidden: true });
    this.buttons = this.zoomButtons();
    this.element = h("div", { class: "map" }, this.canvas, this.tip,
      h("p", { id: help, class: "unseen" }, `Arrow keys move from node to node, Enter ${how.chosen ? "chooses" : "opens"} one, + and - zoom.`));
    this.painter = new Painter(this.canvas);
    this.painter.slices = !how.label;
    this.camera = { x: 0, y: 0, k: 1 };
    this.focus = -1;
    this.pending = 0;
    /** @type {Map<number, import("./painter.js").Slice[]>} */
    this.slices = new Map();
    /** @type {Set<number>} rows whose slices are to be asked for again */
    this.outdated = new Set();
    /** Called when pods come into sight or go. @type {() => void} */
    this.onSlices = () => {};
    /** @type {Map<number, PointerEvent>} */
    this.pointers = new Map();
    this.dragged = 0;
    this.frames = 0;
    this.wire();
  }

  leave() {
    this.observer?.disconnect();
    for (const stop of this.stops ?? []) stop();
    cancelAnimationFrame(this.pending);
    clearTimeout(this.slicing);
  }

  /** @param {string} resource */
  colourBy(resource) {
    this.resource = resource;
    this.slices.clear(); // the shares that pods have are those of one resource
    this.renew();
  }

  // -- what changes ---------------------------------------------------------------------------------------------------

  wire() {
    this.observer = new ResizeObserver(() => this.arrange());
    this.observer.observe(this.element);
    const theme = () => {
      this.painter.dress();
      this.renew();
    };
    addEventListener("theme", theme);
    this.stops = [
      this.cluster.on("layout", () => this.arrange(true)),
      this.cluster.on("map", (/** @type {number[]} */ rows) => this.changed(rows)),
      () => removeEventListener("theme", theme),
    ];
    const canvas = this.canvas;
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.release(event));
    canvas.addEventListener("pointercancel", (event) => this.pointers.delete(event.pointerId));
    canvas.addEventListener("pointerleave", () => this.point(-1));
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("blur", () => this.point(-1));
  }

  /** Lay everything out anew. @param {boolean} [keep] whether the camera stays */
  arrange(keep = false) {
    const { clientWidth: width, clientHeight: height } = this.element;
    if (!width || !height) return;
    if (width !== this.painter.width || height !== this.painter.height) this.painter.resize(width, height);
    const before = this.camera;
    this.layout = new Layout(this.cluster.columns, width - 16, height - 12);
    this.painter.ending = commonEnding(this.cluster.columns.names);
    if (keep) this.slices.clear(); // rows may be other nodes
    this.fit();
    if (before.k > 1.01) this.camera = before; // what somebody looks at stays in sight
    this.renew();
  }

  fit() {
    this.camera = { x: 8, y: 4, k: 1 };
  }

  /** @param {number[]} rows */
  changed(rows) {
    if (!this.layout) return;
    for (const row of rows) this.outdated.add(row); // their pods are shown until the news of them has come
    this.painter.update(this.layout, this.cluster.columns, rows, this.resource, this.slices);
    this.draw();
    this.slice();
  }

  renew() {
    this.painter.drawn = null;
    this.draw();
    this.slice();
  }

  /** Whether cells are large enough to show pods. */
  get isSliced() {
    return !this.how.label && !!this.layout && this.layout.side * this.camera.k >= SLICED;
  }

  /** Whether they nearly are: the legend of pods must not come and go with the height that it takes from the map. */
  get isNearlySliced() {
    return !this.how.label && !!this.layout && this.layout.side * this.camera.k >= SLICED * 0.75;
  }

  draw() {
    this.pending ||= requestAnimationFrame(() => {
      this.pending = 0;
      this.frames++;
      if (this.layout) {
        const { columns } = this.cluster;
        this.painter.paint(this.layout, columns, this.camera, this.resource, this.slices, this.focus);
      }
    });
  }

  /** Ask for the pods of nodes that are large enough to show them. */
  slice() {
    clearTimeout(this.slicing);
    this.onSlices();
    if (!this.isSliced) return; // and only of the cluster as it is the server knows the pods of a row
    this.slicing = setTimeout(async () => {
      const rows = this.visible().filter((row) => !this.slices.has(row) || this.outdated.has(row)).slice(0, MOST_SLICED);
      if (!rows.length) return;
      /** @type {import("../types").Slices | null} */
      const found = await get(`api/slices?rows=${rows.join(",")}`).catch(() => null); // the page says so elsewhere
      if (!found) return;
      for (const row of rows) {
        this.outdated.delete(row);
        this.slices.set(row, this.cut(found, row));
      }
      if (this.layout) this.painter.update(this.layout, this.cluster.columns, rows, this.resource, this.slices);
      this.draw();
      this.onSlices();
    }, 90);
  }

  /** Pods of a row by workload, the largest first. @param {import("../types").Slices} found @param {number} row */
  cut(found, row) {
    const tightest = this.resource === SCARCEST ? this.cluster.columns.tightest(row).name : this.resource;
    const at = found.resources.indexOf(tightest);
    /** @type {Map<string, import("./painter.js").Slice>} */
    const slices = new Map();
    for (const [, workload, phase, text] of found.rows[row] ?? []) {
      const share = (bytes(text)[at] ?? 2) / FULL;
      const slice = slices.get(workload) ?? { workload, pods: [], share: 0 };
      slice.pods.push({ share, phase });
      slice.share += share;
      slices.set(workload, slice);
    }
    const order = (/** @type {string} */ phase) => Number(phase === "starting") + 2 * Number(phase === "leaving");
    for (const slice of slices.values()) slice.pods.sort((a, b) => order(a.phase) - order(b.phase) || b.share - a.share);
    return [...slices.values()].sort((a, b) => b.share - a.share || (a.workload < b.workload ? -1 : 1));
  }

  /** The workloads in sight, those with most pods first. */
  workloads() {
    /** @type {Map<string, number>} */
    const found = new Map();
    if (!this.isSliced) return [];
    for (const row of this.visible()) {
      for (const slice of this.slices.get(row) ?? []) found.set(slice.workload, (found.get(slice.workload) ?? 0) + slice.pods.length);
    }
    return [...found].sort(([a, most], [b, fewer]) => fewer - most || (a < b ? -1 : 1));
  }

  visible() {
    const { layout, camera } = this;
    if (!layout) return [];
    const width = layout.cell.width * camera.k, height = layout.cell.height * camera.k;
    return layout.blocks.flatMap((block) => block.rows).filter((row) => {
      const x = (layout.x[row] ?? 0) * camera.k + camera.x, y = (layout.y[row] ?? 0) * camera.k + camera.y;
      return x + width > 0 && y + height > 0 && x < (this.painter.width ?? 0) && y < (this.painter.height ?? 0);
    });
  }

  // -- the camera -----------------------------------------------------------------------------------------------------

  /** @param {number} factor @param {number} [x] @param {number} [y] the place that stays where it is */
  zoom(factor, x = (this.painter.width ?? 0) / 2, y = (this.painter.height ?? 0) / 2) {
    const k = Math.min(Math.max(this.camera.k * factor, 1), FARTHEST);
    const ratio = k / this.camera.k;
    this.camera = { x: x - (x - this.camera.x) * ratio, y: y - (y - this.camera.y) * ratio, k };
    if (k === 1) this.fit();
    this.draw();
    this.slice();
  }

  /** @param {number} dx @param {number} dy */
  pan(dx, dy) {
    this.camera = { ...this.camera, x: this.camera.x + dx, y: this.camera.y + dy };
    this.draw();
    this.slice();
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    event.preventDefault();
    this.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0018)), event.offsetX, event.offsetY);
  }

  // -- pointers -------------------------------------------------------------------------------------------------------

  /** @param {PointerEvent} event */
  press(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, event);
    this.dragged = 0;
  }

  /** @param {PointerEvent} event */
  move(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return this.point(this.rowAt(event), event);
    const dx = event.clientX - before.clientX, dy = event.clientY - before.clientY;
    this.dragged += Math.abs(dx) + Math.abs(dy);
    const other = [...this.pointers.values()].find((each) => each.pointerId !== event.pointerId);
    if (other) {
      const distance = (/** @type {PointerEvent} */ a) => Math.hypot(a.clientX - other.clientX, a.clientY - other.clientY);
      const box = this.canvas.getBoundingClientRect();
      this.zoom(distance(event) / Math.max(distance(before), 1), other.clientX - box.left, other.clientY - box.top);
    } else if (this.dragged > 4) {
      this.point(-1);
      this.pan(dx, dy);
    }
    this.pointers.set(event.pointerId, event);
  }

  /** @param {PointerEvent} event */
  release(event) {
    const pressed = this.pointers.delete(event.pointerId);
    if (pressed && this.dragged <= 4) this.open(this.rowAt(event));
  }

  /** @param {PointerEvent} event */
  rowAt(event) {
    const { x, y, k } = this.camera;
    return this.layout?.at((event.offsetX - x) / k, (event.offsetY - y) / k) ?? -1;
  }

  /** @param {number} row */
  open(row) {
    const name = this.cluster.columns.names[row];
    if (name && this.how.chosen) this.how.chosen(name);
    else if (name) go(`#/nodes/${encodeURIComponent(name)}`);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const arrow = ARROWS[event.key];
    if (arrow && this.layout) {
      const first = this.layout.blocks[0]?.rows[0] ?? -1;
      this.point(this.focus < 0 ? first : this.layout.next(this.focus, ...arrow));
      this.follow();
    } else if (event.key === "Enter") this.open(this.focus);
    else if (event.key === "+" || event.key === "=") this.zoom(1.5);
    else if (event.key === "-") this.zoom(1 / 1.5);
    else if (event.key === "0" || event.key === "Escape") this.zoom(0);
    else return;
    event.preventDefault();
  }

  /** Keep the row that has the focus in sight. */
  follow() {
    const { layout, camera } = this;
    if (!layout || this.focus < 0) return;
    const x = (layout.x[this.focus] ?? 0) * camera.k + camera.x, y = (layout.y[this.focus] ?? 0) * camera.k + camera.y;
    const width = layout.cell.width * camera.k, height = layout.cell.height * camera.k;
    if (camera.k === 1) return;
    const dx = x < 0 ? 20 - x : Math.min((this.painter.width ?? 0) - x - width - 20, 0);
    const dy = y < 0 ? 20 - y : Math.min((this.painter.height ?? 0) - y - height - 20, 0);
    if (dx || dy) this.pan(dx, dy);
  }

  // -- words ----------------------------------------------------------------------------------------------------------

  /** Name a row. @param {number} row @param {PointerEvent} [event] */
  point(row, event) {
    if (row !== this.focus) {
      this.focus = row;
      this.draw();
      this.tip.hidden = row < 0;
      if (row >= 0) fill(this.tip, ...this.describe(row));
    }
    if (row < 0 || !this.layout) return;
    const { x, y, k } = this.camera;
    const left = event ? event.offsetX : ((this.layout.x[row] ?? 0) + this.layout.cell.width / 2) * k + x;
    const top = event ? event.offsetY : ((this.layout.y[row] ?? 0) + this.layout.cell.height / 2) * k + y;
    const width = this.painter.width ?? 0, height = this.painter.height ?? 0;
    this.tip.style.setProperty("--x", `${Math.max(4, Math.min(left + 12, width - this.tip.offsetWidth - 8))}px`);
    this.tip.style.setProperty("--y", `${Math.max(4, Math.min(top + 12, height - this.tip.offsetHeight - 8))}px`);
  }

  /** @param {number} row */
  describe(row) {
    const { columns } = this.cluster;
    const flags = columns.flags[row] ?? 0;
    const states = [flags & NOT_READY && "not ready", flags & CORDONED && "cordoned", flags & TAINTED && "tainted"];
    const shares = [...columns.shares].filter(([, column]) => (column[row] ?? NOT_OFFERED) !== NOT_OFFERED);
    shares.sort(([, a], [, b]) => (b[row] ?? 0) - (a[row] ?? 0));
    return [
      h("strong", {}, columns.names[row] ?? ""),
      h("span", { class: "dim" }, ` ${counted(columns.pods[row] ?? 0, "pod")}`),
      ...states.filter(Boolean).map((state) => h("span", { class: "bad" }, ` ${state}`)),
      h("div", { class: "tip-shares" }, ...shares.slice(0, 5).map(([name, column]) =>
        h("div", {}, h("span", { class: "dim" }, short(name)), h("span", {}, percent((column[row] ?? 0) / FULL))))),
    ];
  }

  zoomButtons() {
    const button = (/** @type {string} */ text, /** @type {string} */ label, /** @type {() => void} */ act) =>
      h("button", { type: "button", "aria-label": label, title: label, on: { click: act } }, text);
    return h("span", { class: "map-buttons" },
      button("+", "Zoom in", () => this.zoom(1.6)),
      button("−", "Zoom out", () => this.zoom(1 / 1.6)),
      button("⤢", "Show all nodes", () => this.zoom(0)));
  }
}
