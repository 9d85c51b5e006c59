// Colours: one scale for how full nodes are, and a set for workloads, of which none is on that scale.

const ON_DARK = [[31, 41, 55], [38, 70, 94], [35, 110, 117], [66, 152, 112], [150, 190, 72], [253, 224, 71]];
const ON_LIGHT = [[229, 236, 240], [187, 217, 213], [120, 182, 184], [56, 138, 160], [36, 90, 135], [22, 44, 88]];
/** Light enough for dark text, in both themes. */
const WORKLOADS = [
  "#f4a259", "#bc9ed9", "#e58fb1", "#9aa9e6", "#d98c7a", "#7fc8f8", "#c9a27e", "#d7b4f3", "#f2b5a7", "#a9c1d9", "#e6c35c", "#c4c9a8",
  "#ffd7e2", "#b3bac6", "#a8d5c8", "#dde58c",
];
const STEPS = 201, KEY = "kubesched-colours", MOST = 400;

export const isDark = () => document.documentElement.dataset["theme"] !== "light";

/**
 * A colour for each share from 0 to 200 (all of it), and one for more: quiet where a node is empty, loud where full.
 * @param {boolean} dark
 * @returns {string[]}
 */
export function ramp(dark) {
  const stops = dark ? ON_DARK : ON_LIGHT;
  /** @type {string[]} */
  const colours = [];
  for (let i = 0; i < STEPS; i++) {
    const at = (i / (STEPS - 1)) * (stops.length - 1);
    const low = stops[Math.floor(at)] ?? [0, 0, 0];
    const high = stops[Math.min(Math.floor(at) + 1, stops.length - 1)] ?? low;
    const mixed = low.map((value, c) => Math.round(value + ((high[c] ?? value) - value) * (at % 1)));
    colours.push(`rgb(${mixed.join(",")})`);
  }
  return colours;
}

/** @type {Map<string, number>} */
let given = new Map();
try {
  given = new Map(JSON.parse(localStorage.getItem(KEY) ?? "[]"));
} catch {
  // colours that were kept cannot be read: they are given anew
}

/**
 * The colour of a workload, the same whenever and wherever it is shown: by its name, or the next that fewer have.
 * @param {string} workload `namespace/name`
 */
export function workloadColour(workload) {
  let at = given.get(workload);
  if (at === undefined) {
    const uses = new Array(WORKLOADS.length).fill(0);
    for (const used of given.values()) uses[used]++;
    const first = hash(workload) % WORKLOADS.length, least = Math.min(...uses);
    at = first;
    while (uses[at] > least) at = (at + 1) % WORKLOADS.length;
    given.set(workload, at);
    if (given.size > MOST) given.delete(given.keys().next().value ?? "");
    localStorage.setItem(KEY, JSON.stringify([...given]));
  }
  return WORKLOADS[at] ?? "#999";
}

/** @param {string} text */
function hash(text) {
  let found = 2166136261;
  for (let i = 0; i < text.length; i++) found = Math.imul(found ^ text.charCodeAt(i), 16777619);
  return found >>> 0;
}

/** A colour of the style sheet. @param {string} name */
export function token(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
