// Asks the server. What it refuses is an ApiError with the lines that say why.

export class ApiError extends Error {
  /** @param {number} status @param {string[]} lines @param {boolean} [signIn] */
  constructor(status, lines, signIn = false) {
    super(lines.join("\n"));
    this.status = status;
    this.lines = lines;
    /** Whether another token might help. */
    this.signIn = signIn;
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
  return `api/${parts.map(encodeURIComponent).join("/")}`;
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
  if (response.ok) return text ? JSON.parse(text) : null;
  let lines = [text.trim() || response.statusText], signIn = false;
  try {
    const said = JSON.parse(text);
    signIn = said.kind === "Status" && [401, 403].includes(response.status); // as the API server refuses
    lines = said.errors ?? [said.message];
  } catch {
    // a refusal in plain text
  }
  throw new ApiError(response.status, lines, signIn);
}
