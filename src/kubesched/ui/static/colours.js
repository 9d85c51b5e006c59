// Colours of the map: cividis, which people with and without colour blindness see alike, and Okabe and Ito's for kinds.

const CIVIDIS = [
  [0, 34, 78], [18, 53, 112], [59, 73, 108], [87, 93, 109], [112, 113, 115],
  [138, 134, 120], [165, 156, 116], [195, 179, 105], [225, 204, 85], [254, 232, 56],
];
/** On white, cividis would shout where nodes are empty: this goes from pale to its dark end. */
const ON_WHITE = [[234, 239, 245], [190, 206, 224], [131, 164, 200], [66, 112, 163], [20, 66, 118], [0, 34, 78]];
const KINDS = ["#56b4e9", "#e69f00", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7", "#999999"];
const STEPS = 201;

export const isDark = () => document.documentElement.dataset["theme"] !== "light";

/**
 * A colour for each share from 0 to 200 (all of it), and one for more: quiet where a node is empty, loud where full.
 * @param {boolean} dark
 * @returns {string[]}
 */
export function ramp(dark) {
  const stops = dark ? CIVIDIS : ON_WHITE;
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

/** @type {Map<string, string>} */
const given = new Map();

/** A colour for a kind of pod, by its name without what tells pods of one workload apart: the next, when it is new. */
export function kindColour(/** @type {string} */ pod) {
  const kind = pod.replace(/(-[a-z0-9]+){1,2}$/, "");
  const colour = given.get(kind) ?? KINDS[given.size % KINDS.length] ?? "#999";
  given.set(kind, colour);
  return colour;
}

/** A colour of the style sheet. @param {string} name */
export function token(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
