// What the page knows of the cluster: the map, the last decisions, the queue; kept up to date by the stream.

import { get } from "./api.js";
import { Columns } from "./map/columns.js";

const REMEMBERED = 200;
const AGAIN_MS = 1500;

/** @typedef {"about" | "map" | "layout" | "decisions" | "queue" | "saying" | "connection" | "refused"} Topic */

export class Cluster {
  constructor() {
    /** @type {import("./types").About} */
    this.about = /** @type {any} */ (null);
    this.columns = new Columns();
    /** @type {import("./types").DecisionEntry[]} newest first */
    this.decisions = [];
    /** @type {import("./types").QueueCounts} */
    this.queue = { active: 0, backoff: 0, unschedulable: 0, gated: 0 };
    this.saying = "";
    this.connected = true;
    this.groupBy = "";
    this.now = 0;
    /** When `now` was heard, in milliseconds. */
    this.heard = 0;
    this.latest = 0;
    /** @type {Map<Topic, Set<(detail: any) => void>>} */
    this.listeners = new Map();
    /** @type {EventSource | null} */
    this.source = null;
  }

  /** @param {string} [groupBy] */
  async open(groupBy) {
    this.about = await get("api/about");
    await this.group(groupBy ?? this.about.groupBy);
    document.addEventListener("visibilitychange", () => (document.hidden ? this.close() : this.follow()));
  }

  /** Load the map grouped by a label, and follow it. @param {string} groupBy */
  async group(groupBy) {
    this.groupBy = groupBy;
    this.columns.load(await get(`api/map?group=${encodeURIComponent(groupBy)}`));
    this.tell("layout");
    this.follow();
  }

  follow() {
    this.close();
    if (document.hidden) return;
    const version = this.columns.version.join(",");
    const query = new URLSearchParams({ version, decision: String(this.latest), group: this.groupBy });
    const source = (this.source = new EventSource(`api/stream?${query}`));
    source.onopen = () => this.connection(true);
    source.onmessage = (event) => this.learn(JSON.parse(event.data));
    source.onerror = () => {
      source.close();
      if (this.source !== source) return;
      this.connection(false);
      setTimeout(() => this.source === source && this.again(), AGAIN_MS);
    };
  }

  /** The stream broke. An event source does not say why, but a question does: the token may have expired. */
  async again() {
    const refusal = await get("api/about").then(() => null, (error) => error);
    if (refusal?.signIn) {
      this.close();
      this.connection(true);
      this.tell("refused", refusal);
    } else {
      this.follow();
    }
  }

  close() {
    this.source?.close();
    this.source = null;
  }

  /** @param {Topic} topic @param {(detail: any) => void} listener @returns {() => void} stops it */
  on(topic, listener) {
    const known = this.listeners.get(topic) ?? new Set();
    this.listeners.set(topic, known.add(listener));
    return () => known.delete(listener);
  }

  /** @param {Topic} topic @param {unknown} [detail] */
  tell(topic, detail) {
    for (const listener of this.listeners.get(topic) ?? []) listener(detail);
  }

  /** The moment that is shown. Of a recording it is the one that was chosen; elsewhere time goes on. */
  time() {
    return this.about.source === "recording" ? this.now : this.now + (performance.now() - this.heard) / 1000;
  }

  /** Labels may have come with nodes: grouped as is usual, unless somebody chose otherwise. */
  async look() {
    const before = this.about;
    this.about = await get("api/about");
    if (this.groupBy === before.groupBy && this.about.groupBy !== before.groupBy) await this.group(this.about.groupBy);
    this.tell("about");
  }

  /** @param {import("./types").News} news */
  learn(news) {
    this.now = news.now;
    this.heard = performance.now();
    if (news.again) {
      this.latest = 0;
      this.decisions = [];
      this.tell("decisions", []);
    }
    if (news.map?.reload) {
      this.group(this.groupBy).then(() => this.look()).catch(() => this.connection(false));
    } else if (news.map) {
      const moved = this.columns.change(news.map);
      this.tell(moved ? "layout" : "map", news.map.rows);
      if (moved && !this.about.labels.length) this.look().catch(() => this.connection(false));
    }
    if (news.decisions?.length) {
      this.latest = news.decisions[news.decisions.length - 1]?.number ?? this.latest;
      this.decisions = [...news.decisions.reverse(), ...this.decisions].slice(0, REMEMBERED);
      this.tell("decisions", news.decisions);
    }
    if (news.queue) {
      this.queue = news.queue;
      this.tell("queue", news.queue);
    }
    if (news.saying !== undefined) {
      this.saying = news.saying;
      this.tell("saying");
    }
  }

  /** @param {boolean} connected */
  connection(connected) {
    if (this.connected === connected) return;
    this.connected = connected;
    this.tell("connection");
  }
}
