// Builds elements. What comes from the cluster goes in as text or as an attribute, never as markup.

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, any>} [props] attributes; `class`, `style` (custom properties), `on` (listeners)
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  dress(element, props);
  fill(element, ...children);
  return element;
}

/**
 * @param {string} tag
 * @param {Record<string, any>} [props]
 * @param {...(Child | Child[])} children
 */
export function svg(tag, props = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  dress(element, props);
  fill(element, ...children);
  return element;
}

/**
 * The element with these children and no others.
 * @param {Element} element
 * @param {...(Child | Child[])} children
 */
export function fill(element, ...children) {
  const made = children.flat().filter((child) => child !== null && child !== undefined && child !== false);
  element.replaceChildren(...made.map((child) => (child instanceof Node ? child : String(child))));
}

/** @param {HTMLElement | SVGElement} element @param {Record<string, any>} props */
function dress(element, props) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (name === "style") {
      for (const [property, content] of Object.entries(value)) element.style.setProperty(property, String(content));
    } else if (name === "value") {
      /** @type {any} */ (element).value = value;
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
}

/**
 * A link to a view. Names are escaped: a slash in one is not a step of the path.
 * @param {string[]} path @param {Child} text @param {string} [name] class
 */
export function link(path, text, name = "") {
  return h("a", { href: `#/${path.map(encodeURIComponent).join("/")}`, class: name || null }, text);
}

/** @param {string} key `namespace/name` @param {string} [name] class */
export function podLink(key, name) {
  const [namespace = "", pod = ""] = key.split("/");
  return link(["pods", namespace, pod], key, name);
}

/** Short names stay in one line, long ones break at the edge. @param {string} node @param {string} [name] class */
export function nodeLink(node, name = node.length <= 24 ? "whole" : "") {
  return link(["nodes", node], node, name);
}

/**
 * @param {[string, string, string]} workload namespace, kind and name; a pod without an owner is its own
 * @param {string} [text] @param {string} [name] class
 */
export function workloadLink([namespace, kind, own], text, name) {
  return link(kind === "Pod" ? ["pods", namespace, own] : ["workloads", namespace, kind, own], text ?? `${namespace}/${own}`, name);
}

/**
 * A panel with a heading.
 * @param {string} title @param {string} name class @param {...(Child | Child[])} children
 */
export function panel(title, name, ...children) {
  return h("section", { class: `panel ${name}` }, h("h2", {}, title), ...children);
}

/** @param {string} text @param {string} [hint] what to do about it */
export function empty(text, hint) {
  return h("p", { class: "empty" }, text, hint ? h("span", { class: "hint" }, ` ${hint}`) : null);
}
