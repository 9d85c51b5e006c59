// The question of "what if" in the address, so that it can be sent to somebody.

/** @typedef {{ drain: string[], lose: string[], gone: string[], add: Record<string, number>, weights: Record<string, number>, anew: boolean }} Question */

/** @param {URLSearchParams} query @returns {Question} */
export function questionIn(query) {
  return {
    drain: query.getAll("drain"), lose: query.getAll("lose"), gone: query.getAll("gone"),
    add: numbers(query.getAll("add")), weights: numbers(query.getAll("weight")), anew: query.has("anew"),
  };
}

/** @param {Question} question */
export function questionText(question) {
  const query = new URLSearchParams();
  for (const name of question.drain) query.append("drain", name);
  for (const name of question.lose) query.append("lose", name);
  for (const name of question.gone) query.append("gone", name);
  for (const [name, number] of Object.entries(question.add)) query.append("add", `${number}:${name}`);
  for (const [name, number] of Object.entries(question.weights)) query.append("weight", `${number}:${name}`);
  if (question.anew) query.set("anew", "yes");
  return query.size ? `?${query}` : "";
}

/** @param {Question} question */
export function isEmpty(question) {
  return !question.drain.length && !question.lose.length && !question.gone.length && !Object.keys(question.add).length && !Object.keys(question.weights).length;
}

/** `3:node-7`. @param {string[]} texts @returns {Record<string, number>} */
function numbers(texts) {
  return Object.fromEntries(texts.map((text) => [text.slice(text.indexOf(":") + 1), Number.parseInt(text, 10)])
    .filter(([name, number]) => name && Number.isInteger(number)));
}
