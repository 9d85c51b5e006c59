// The columns of the node map, unpacked: names, groups, shares per resource and flags, a row per node.

export const LIVE = 1, CORDONED = 2, TAINTED = 4, NOT_READY = 8;
/** A node that somebody picked on this page. */
export const CHOSEN = 16;
export const NOT_OFFERED = 255, FULL = 200;
export const SCARCEST = "scarcest";

export class Columns {
  constructor() {
    /** @type {[number, number]} */
    this.version = [0, 0];
    /** @type {string[]} */
    this.names = [];
    /** @type {string[]} */
    this.groups = [];
    /** @type {Map<string, Uint8Array>} */
    this.shares = new Map();
    this.flags = new Uint8Array();
    this.pods = new Uint16Array();
    /** The largest share of any resource. */
    this.scarcest = new Uint8Array();
  }

  get size() {
    return this.names.length;
  }

  /** @param {import("../types").NodeMap} map */
  load(map) {
    this.version = map.version;
    this.names = map.names;
    this.groups = map.groups;
    this.shares = new Map(Object.entries(map.columns.shares).map(([name, text]) => [name, bytes(text)]));
    this.flags = bytes(map.columns.flags);
    this.pods = new Uint16Array(bytes(map.columns.pods).buffer);
    this.scarcest = new Uint8Array(this.size);
    for (let row = 0; row < this.size; row++) this.weigh(row);
  }

  /**
   * Take in what changed.
   * @param {import("../types").MapChanges} changes
   * @returns {boolean} whether nodes came, went or changed their group: then the map is laid out anew
   */
  change(changes) {
    this.version = changes.version;
    let moved = this.grow(Math.max(-1, ...changes.rows, ...Object.keys(changes.renamed).map(Number)) + 1);
    for (const [text, [name, group]] of Object.entries(changes.renamed)) {
      const row = Number(text);
      moved ||= this.names[row] !== name || this.groups[row] !== group;
      this.names[row] = name;
      this.groups[row] = group;
    }
    const flags = bytes(changes.columns.flags);
    const pods = new Uint16Array(bytes(changes.columns.pods).buffer);
    for (const [name, text] of Object.entries(changes.columns.shares)) {
      const column = this.column(name);
      const values = bytes(text);
      changes.rows.forEach((row, i) => (column[row] = values[i] ?? 0));
    }
    changes.rows.forEach((row, i) => {
      moved ||= ((this.flags[row] ?? 0) & LIVE) !== ((flags[i] ?? 0) & LIVE);
      this.flags[row] = flags[i] ?? 0;
      this.pods[row] = pods[i] ?? 0;
      this.weigh(row);
    });
    return moved;
  }

  /** @param {string} resource the name of one, or the scarcest */
  column(resource) {
    if (resource === SCARCEST) return this.scarcest;
    let column = this.shares.get(resource);
    if (!column) {
      column = new Uint8Array(this.size).fill(NOT_OFFERED);
      this.shares.set(resource, column);
    }
    return column;
  }

  /** The share of the resource that is scarcest on a row, and its name. @param {number} row */
  tightest(row) {
    let best = "", most = -1;
    for (const [name, column] of this.shares) {
      const share = column[row] ?? NOT_OFFERED;
      if (share !== NOT_OFFERED && share > most) [best, most] = [name, share];
    }
    return { name: best, share: Math.max(most, 0) / FULL };
  }

  /** @param {number} row */
  weigh(row) {
    let most = 0;
    for (const column of this.shares.values()) {
      const share = column[row] ?? NOT_OFFERED;
      if (share !== NOT_OFFERED && share > most) most = share;
    }
    this.scarcest[row] = most;
  }

  /** @param {number} size @returns {boolean} whether there are more rows than before */
  grow(size) {
    const before = this.size;
    if (size <= before) return false;
    for (let row = before; row < size; row++) {
      this.names.push("");
      this.groups.push("");
    }
    this.shares = new Map([...this.shares].map(([name, old]) => [name, longer(old, size, NOT_OFFERED)]));
    this.flags = longer(this.flags, size, 0);
    this.scarcest = longer(this.scarcest, size, 0);
    const pods = new Uint16Array(size);
    pods.set(this.pods);
    this.pods = pods;
    return true;
  }
}

/** @param {Uint8Array} old @param {number} size @param {number} fill */
function longer(old, size, fill) {
  const made = new Uint8Array(size).fill(fill);
  made.set(old);
  return made;
}

/** @param {string} text base64 */
export function bytes(text) {
  const binary = atob(text);
  const made = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) made[i] = binary.charCodeAt(i);
  return made;
}
