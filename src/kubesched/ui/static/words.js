// Numbers, times and names as people read them.

const whole = new Intl.NumberFormat("en");

/** @param {number} value */
export function count(value) {
  return whole.format(value);
}

/** @param {number} value @param {string} noun */
export function counted(value, noun) {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

/** How many more fit: `+3`, or `at least 3` while nobody has counted further. @param {{ more: number, atLeast: boolean }} room */
export function more(room) {
  return `${room.atLeast ? "≥ " : "+"}${count(room.more)}`;
}

/** The verb of a number: `1 node fits`, `2 nodes fit`. @param {number} value @param {string} verb as it is for several */
export function agreeing(value, verb) {
  return value === 1 ? ({ are: "is", have: "has", do: "does" }[verb] ?? `${verb}s`) : verb;
}

/** @param {number} share */
export function percent(share) {
  return `${Math.round(share * 100)} %`;
}

/** @param {number | undefined} seconds */
export function duration(seconds) {
  if (seconds === undefined || seconds === null) return "";
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} d`;
}

/** @param {number | undefined} seconds */
export function ago(seconds) {
  return seconds === undefined ? "" : `${duration(seconds)} ago`;
}

/** @param {number} ms */
export function milliseconds(ms) {
  return ms < 1 ? `${Math.round(ms * 1000)} µs` : ms < 1000 ? `${ms.toFixed(1)} ms` : `${(ms / 1000).toFixed(2)} s`;
}

/** @param {Record<string, string>} requests */
export function amounts(requests) {
  return Object.entries(requests).map(([name, amount]) => `${amount} ${name}`).join(", ");
}

/** The last part of a label's name: `topology.kubernetes.io/zone` is `zone`. @param {string} name */
export function short(name) {
  return name.slice(name.lastIndexOf("/") + 1);
}

/** Names by what they end with, those of which that would be the same of two in full. @param {string[]} names @returns {Map<string, string>} */
export function titles(names) {
  const ends = names.map(short);
  return new Map(names.map((name, i) => [name, ends.filter((end) => end === ends[i]).length > 1 ? name : ends[i] ?? name]));
}
