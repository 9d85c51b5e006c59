// Search, with / from anywhere: workloads, pods and nodes by name, those that wait first; arrows and Enter to choose.

import { get } from "./api.js";
import { fill, h } from "./dom.js";
import { go } from "./router.js";
import { count } from "./words.js";

const WAIT_MS = 80;

export function searchBox() {
  const list = h("ul", { id: "found", role: "listbox", "aria-label": "Found", hidden: true });
  const input = h("input", {
    type: "search", placeholder: "Search   /", "aria-label": "Search workloads, pods and nodes", role: "combobox",
    "aria-expanded": "false", "aria-controls": "found", "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false",
  });
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let soon;
  let chosen = 0;
  const options = () => /** @type {HTMLElement[]} */ ([...list.querySelectorAll("[role=option]")]);
  const choose = (/** @type {number} */ i) => {
    const all = options();
    chosen = Math.min(Math.max(i, 0), all.length - 1);
    all.forEach((each, at) => each.setAttribute("aria-selected", String(at === chosen)));
    const now = all[chosen];
    now?.scrollIntoView({ block: "nearest" });
    if (now) input.setAttribute("aria-activedescendant", now.id);
  };
  const close = () => {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
  };
  const open = (/** @type {string} */ address) => {
    close();
    input.value = "";
    input.blur();
    go(address);
  };
  const option = (/** @type {string} */ kind, /** @type {string} */ text, /** @type {string} */ address, /** @type {string} */ more, /** @type {number} */ i) =>
    h("li", { role: "option", id: `found-${i}`, "data-address": address, on: { pointerdown: (/** @type {Event} */ event) => { event.preventDefault(); open(address); } } },
      h("span", { class: "dim" }, kind), h("span", {}, text), h("span", { class: "dim" }, more));
  input.addEventListener("input", () => {
    clearTimeout(soon);
    soon = setTimeout(async () => {
      const text = input.value.trim();
      if (!text) return close();
      /** @type {import("./types").Found | null} */
      const found = await get(`api/search?q=${encodeURIComponent(text)}`).catch(() => null);
      if (!found) return close();
      const nodes = found.nodes.map((name) => ({ kind: "node", name, address: `#/nodes/${encodeURIComponent(name)}`, more: "" }));
      const workloads = found.workloads.map(([namespace, kind, name]) =>
        ({ kind: "workload", name: `${namespace}/${name}`, address: `#/workloads/${[namespace, kind, name].map(encodeURIComponent).join("/")}`, more: kind }));
      const pods = found.pods.map(([name, on, phase]) =>
        ({ kind: "pod", name, address: `#/pods/${name.split("/").map(encodeURIComponent).join("/")}`, more: on || phase }));
      const more = /** @type {[number, string][]} */ ([[found.moreWorkloads, "workloads"], [found.morePods, "pods"], [found.moreNodes, "nodes"]]);
      const all = [...workloads, ...pods, ...nodes];
      fill(list, all.map((each, i) => option(each.kind, each.name, each.address, each.more, i)),
        all.length ? null : h("li", { class: "empty" }, `No workload, pod or node has “${text}” in its name.`),
        more.map(([number, name]) => (number ? h("li", { class: "empty" },
          h("a", { href: `#/${name}?text=${encodeURIComponent(text)}`, tabindex: -1, on: { pointerdown: (/** @type {Event} */ event) => {
            event.preventDefault();
            open(`#/${name}?text=${encodeURIComponent(text)}`);
          } } }, `${count(number)} more ${name}`)) : null)));
      list.hidden = false;
      input.setAttribute("aria-expanded", "true");
      choose(0);
    }, WAIT_MS);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") choose(chosen + 1);
    else if (event.key === "ArrowUp") choose(chosen - 1);
    else if (event.key === "Enter") {
      const address = options()[chosen]?.dataset["address"];
      if (address) open(address);
    } else if (event.key === "Escape") {
      close();
      input.blur();
    } else return;
    event.preventDefault();
  });
  input.addEventListener("blur", close);
  addEventListener("hashchange", close);
  addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLElement && event.target.matches("input, textarea, select");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      input.focus();
      input.select();
    }
  });
  return h("div", { class: "search" }, input, list);
}
