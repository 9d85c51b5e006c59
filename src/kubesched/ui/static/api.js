// Asks the server. What it refuses is an ApiError with the lines that say why.

export class ApiError extends Error {
  /** @param {number} status @param {string[]} lines */
  constructor(status, lines) {
    super(lines.join("\n"));
    this.status = status;
    this.lines = lines;
  }
}

/**
 * @template T
 * @param {string} path
 * @param {AbortSignal} [signal]
 * @returns {Promise<T>}
 */
export async function get(path, signal) {
  return answer(await reach(path, { signal }));
}

/**
 * @template T
 * @param {string} path
 * @param {unknown} body
 * @param {AbortSignal} [signal]
 * @returns {Promise<T>}
 */
export async function post(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  return answer(await reach(path, { method: "POST", headers, body: JSON.stringify(body), signal }));
}

/** The path of names that may have any characters in them. @param {...string} parts */
export function path(...parts) {
  return `/api/${parts.map(encodeURIComponent).join("/")}`;
}

/** @param {string} address @param {RequestInit} options */
async function reach(address, options) {
  try {
    return await fetch(address, options);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ApiError(0, ["The server does not answer. Is kubesched still running?"]);
  }
}

/** @param {Response} response */
async function answer(response) {
  const text = await response.text();
  if (response.ok) return JSON.parse(text);
  let lines = [text.trim() || response.statusText];
  try {
    lines = JSON.parse(text).errors;
  } catch {
    // a refusal in plain text
  }
  throw new ApiError(response.status, lines);
}
