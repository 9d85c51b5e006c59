// Time travel: a slider over a recording. Whatever view is shown, it is of the moment that the slider names.

import { ApiError, get, post } from "./api.js";
import { fill, h, svg } from "./dom.js";
import { current, note } from "./router.js";
import { count, counted } from "./words.js";

const SPEEDS = [0.1, 1, 10, 60, 600, 3600];
const FRAME_MS = 250, STEPS = 10_000;

/** @param {HTMLElement} root @param {import("./cluster.js").Cluster} cluster */
export async function travelBar(root, cluster) {
  /** @type {import("./types").Timeline} */
  let line = await get("api/timeline");
  let playing = false, busy = false, wanted = NaN, last = 0, going = Promise.resolve();
  const span = Math.max(line.end - line.begin, 1e-9);
  const slider = h("input", { type: "range", min: 0, max: STEPS, step: 1, "aria-label": "Moment of the recording" });
  const speed = h("select", { "aria-label": "Speed" }, SPEEDS.map((each) => h("option", { value: String(each), selected: each === 10 }, `${count(each)}×`)));
  const play = h("button", { type: "button", class: "play" });
  const said = h("span", { class: "moment" }), warning = h("span", { class: "bad small" });

  const show = () => {
    fill(play, playing ? "❚❚ Pause" : "▶ Play");
    fill(said, clock(line.now - line.begin), h("span", { class: "dim" }, ` of ${clock(span)}`));
    slider.setAttribute("aria-valuetext", clock(line.now - line.begin));
    fill(warning, line.differences ? `${counted(line.differences, "difference")} so far: this version decides otherwise than the recording` : "");
  };
  /** One request at a time; of those that come meanwhile, the last. @param {number} moment */
  const go = (moment) => {
    wanted = moment;
    if (!busy) going = travel();
    return going;
  };
  const travel = async () => {
    busy = true;
    try {
      while (!Number.isNaN(wanted)) {
        const next = wanted;
        wanted = NaN;
        line = await post("api/timeline", { moment: next });
        if (playing) slider.value = String(Math.round(((line.now - line.begin) / span) * STEPS));
        show();
      }
    } catch (error) {
      playing = false;
      fill(warning, error instanceof ApiError ? error.lines.join(" ") : String(error));
    } finally {
      busy = false;
    }
  };
  const settle = async () => {
    await cluster.look().catch(() => cluster.connection(false));
    note({ at: (line.now - line.begin).toFixed(3) });
    dispatchEvent(new Event("hashchange"));
  };
  slider.addEventListener("input", () => {
    playing = false;
    go(line.begin + (Number(slider.value) / STEPS) * span);
  });
  slider.addEventListener("change", async () => {
    await go(line.begin + (Number(slider.value) / STEPS) * span);
    settle();
  });
  play.addEventListener("click", () => {
    playing = !playing;
    last = performance.now();
    if (playing && line.now >= line.end) go(line.begin);
    show();
    if (!playing) settle();
  });
  setInterval(() => {
    const now = performance.now(), passed = (now - last) / 1000;
    last = now;
    if (!playing || busy) return;
    go(Math.min(line.now + passed * Number(speed.value), line.end));
    if (line.now >= line.end) {
      playing = false;
      show();
    }
  }, FRAME_MS);

  fill(root, play, speed, h("div", { class: "track" }, density(line.decisions), slider), said, warning);
  root.hidden = false;
  const at = Number(current().query.get("at") ?? NaN);
  await go(Number.isFinite(at) ? line.begin + at : line.now);
  slider.value = String(Math.round(((line.now - line.begin) / span) * STEPS));
  await cluster.look();
  await cluster.group(cluster.groupBy);
  show();
}

/** When decisions were made, as bars over the slider. @param {number[]} decisions */
function density(decisions) {
  const most = Math.max(1, ...decisions);
  return svg("svg", { viewBox: `0 0 ${decisions.length} 20`, preserveAspectRatio: "none", role: "img", "aria-label": "Decisions over time" },
    decisions.map((number, i) => (number ? svg("rect", {
      x: i, width: 0.8, y: 20 - Math.max((number / most) * 20, 1.5), height: Math.max((number / most) * 20, 1.5),
    }) : null)));
}

/** @param {number} seconds */
function clock(seconds) {
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const whole = Math.floor(seconds), pad = (/** @type {number} */ n) => String(n).padStart(2, "0");
  const hours = Math.floor(whole / 3600);
  return `${hours ? `${hours}:` : ""}${pad(Math.floor((whole % 3600) / 60))}:${pad(whole % 60)}`;
}
