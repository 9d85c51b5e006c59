// Names of nodes as short as they can be and still be told apart: without what all of them end with.

/** @param {string[]} names */
export function commonEnding(names) {
  const first = names.find(Boolean) ?? "";
  for (let at = first.indexOf("."); at >= 0; at = first.indexOf(".", at + 1)) {
    const ending = first.slice(at);
    if (names.length > 1 && names.every((name) => !name || name.endsWith(ending))) return ending;
  }
  return "";
}

/** As much of a text as there is room for. Of nodes the end tells more, of workloads the beginning.
 * @param {CanvasRenderingContext2D} context @param {string} text @param {number} room @param {boolean} [beginning] whether that is kept */
export function shortened(context, text, room, beginning = false) {
  if (context.measureText(text).width <= room) return text;
  const part = (/** @type {number} */ length) => (beginning ? `${text.slice(0, length)}…` : `…${text.slice(text.length - length)}`);
  let low = 0, high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(part(middle)).width <= room) low = middle;
    else high = middle - 1;
  }
  return low > 1 ? part(low) : "";
}
