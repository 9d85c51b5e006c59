// Deep links: the part of the address after # says which view is shown and of what, so that back and reload work.

/**
 * @typedef {{ path: string[], query: URLSearchParams }} Route
 * @typedef {(root: HTMLElement, route: Route) => import("./types").Shown | Promise<import("./types").Shown>} View
 */

/** @returns {Route} */
export function current() {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { path: path.split("/").filter(Boolean).map(decode), query: new URLSearchParams(query) };
}

/** The label that a route groups nodes by: empty for none, undefined if it does not say. @param {Route} route */
export function groupOf(route) {
  const said = route.query.get("group") ?? undefined;
  return said === "none" ? "" : said;
}

/**
 * Change what the address says about the view, without another step back.
 * @param {Record<string, string | null>} changes
 */
export function note(changes) {
  const [path = "", text = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const query = new URLSearchParams(text);
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  history.replaceState(null, "", `#/${path}${query.size ? `?${query}` : ""}`);
}

/** @param {string} address such as #/pending */
export function go(address) {
  location.hash = address;
}

/** @param {string} part */
function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
