// Answers that take seconds: for how long one is being worked on, and a way to give it up.

import { ApiError } from "../api.js";
import { empty, fill, h } from "../dom.js";

const CLOCK_MS = 1000, LONG = 5;
const AT_MOST = "5 min at most";

/** A place for such answers. Another question gives up the last, and so does leaving: the server stops working on it. */
export class SlowAnswer {
  /** @param {HTMLElement} place @param {string} text what is being done */
  constructor(place, text) {
    this.place = place;
    this.text = text;
    /** @type {AbortController | undefined} */
    this.asking = undefined;
  }

  /**
   * @template T
   * @param {(signal: AbortSignal) => Promise<T>} question
   * @param {(answer: T) => import("../dom.js").Child[]} show
   */
  async ask(question, show) {
    this.leave();
    const asking = (this.asking = new AbortController()), began = performance.now();
    const clock = h("span", { "aria-hidden": "true" });
    const stop = h("button", { type: "button", hidden: true, on: { click: () => asking.abort() } }, "Give up");
    const timer = setInterval(() => {
      const seconds = Math.round((performance.now() - began) / 1000);
      clock.textContent = ` ${seconds} s so far${seconds > LONG ? `, ${AT_MOST}` : ""}. `;
      stop.hidden = false;
    }, CLOCK_MS);
    fill(this.place, h("p", { class: "empty working" }, this.text, clock, stop));
    try {
      const answer = await question(asking.signal);
      if (this.asking === asking) fill(this.place, show(answer));
    } catch (error) {
      if (this.asking !== asking) return;
      const lines = asking.signal.aborted ? ["Given up."] : error instanceof ApiError ? error.lines : [String(error)];
      fill(this.place, lines.map((line) => empty(line)));
    } finally {
      clearInterval(timer);
    }
  }

  leave() {
    this.asking?.abort();
    this.asking = undefined;
  }
}
