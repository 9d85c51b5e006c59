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

/** @param {number} ms */
export function milliseconds(ms) {
  return ms < 1 ? `${Math.round(ms * 1000)} µs` : ms < 1000 ? `${ms.toFixed(1)} ms` : `${(ms / 1000).toFixed(2)} s`;
}

/** @param {Record<string, string>} requests */
export function amounts(requests) {
  return Object.entries(requests).map(([name, amount]) => `${amount} ${short(name)}`).join(", ");
}

/** The last part of a qualified name: `nvidia.com/gpu` is `gpu`. @param {string} name */
export function short(name) {
  return name.slice(name.lastIndexOf("/") + 1);
}
