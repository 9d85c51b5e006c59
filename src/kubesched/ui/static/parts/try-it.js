// Try it: edit what a pod asks for, in a small form or as YAML, and see the verdict change as you type.

import { ApiError, post } from "../api.js";
import { fill, h } from "../dom.js";
import { milliseconds } from "../words.js";

const WAIT_MS = 60;
const EFFECTS = ["", "NoSchedule", "PreferNoSchedule", "NoExecute"];

/**
 * @param {Pick<import("../types").PodView, "pod" | "manifest" | "yaml">} view
 * @param {(verdict: import("../types").Verdict, edited: boolean) => void} show
 * @param {(stale: boolean) => void} stale whether what is shown is not the verdict on what is in the form
 */
export function tryIt(view, show, stale) {
  const manifest = structuredClone(view.manifest);
  const text = h("textarea", { spellcheck: "false", "aria-label": "The pod as YAML", rows: 18, value: view.yaml });
  const said = h("p", { class: "said dim", role: "status" });
  /** @type {AbortController | null} */
  let asking = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let soon;
  let asYaml = false;

  const complain = (/** @type {string[]} */ lines) => {
    fill(said, lines.map((line) => h("span", {}, line)));
    said.className = "said bad";
    stale(true);
  };
  const ask = () => {
    clearTimeout(soon);
    soon = setTimeout(async () => {
      asking?.abort();
      const mine = (asking = new AbortController());
      const began = performance.now();
      try {
        const body = { pod: view.pod, manifest: asYaml ? text.value : JSON.stringify(manifest) };
        /** @type {{ verdict: import("../types").Verdict, mistakes: string[] }} */
        const answer = await post("api/try", body, mine.signal);
        if (answer.mistakes.length) return complain(answer.mistakes);
        fill(said, `answered in ${milliseconds(performance.now() - began)}; nothing in the cluster has changed`);
        said.className = "said dim";
        stale(false);
        show(answer.verdict, true);
      } catch (error) {
        if (mine.signal.aborted) return;
        complain(error instanceof ApiError ? error.lines : [String(error)]);
      }
    }, WAIT_MS);
  };
  text.addEventListener("input", ask);

  const body = h("div", {});
  const modes = ["Form", "YAML"].map((name) => h("button", {
    type: "button", on: { click: () => choose(name) }, "aria-pressed": String(name === "Form"),
  }, name));
  const choose = (/** @type {string} */ name) => {
    asYaml = name === "YAML";
    modes.forEach((button) => button.setAttribute("aria-pressed", String(button.textContent === name)));
    if (asYaml) text.value = JSON.stringify(manifest) === JSON.stringify(view.manifest) ? view.yaml : yaml(manifest);
    fill(body, asYaml ? text : form(manifest, ask));
    ask();
  };
  fill(body, form(manifest, ask));
  return h("section", { class: "panel try" },
    h("h2", {}, "Try it"),
    h("div", { class: "modes", role: "group", "aria-label": "How to edit" }, modes,
      h("button", { type: "button", class: "reset", on: { click: () => dispatchEvent(new Event("hashchange")) } }, "Undo all")),
    body, said);
}

/** @param {any} manifest @param {() => void} ask */
function form(manifest, ask) {
  const spec = manifest.spec;
  const container = (spec.containers ??= [{}])[0] ?? (spec.containers[0] = {});
  const resources = (container.resources ??= {}), requests = (resources.requests ??= {});
  const limits = (resources.limits ??= {});
  const others = [...new Set([...Object.keys(requests), ...Object.keys(limits)])].filter((name) => name !== "cpu" && name !== "memory");
  const several = spec.containers.length > 1 ? ` of container ${container.name}` : "";
  const put = (/** @type {string} */ name, /** @type {string} */ value) => {
    if (value && !(isExtended(name) && Number(value) === 0)) requests[name] = value;
    else delete requests[name];
    if (isExtended(name)) { // what is not divided is limited to what is requested: Kubernetes has it no other way
      if (requests[name] === undefined) delete limits[name];
      else limits[name] = requests[name];
    } else if (limits[name] !== undefined && amount(value) > amount(String(limits[name]))) {
      limits[name] = value;
      const shown = form.querySelector(`[data-field="${name} limit"]`);
      if (shown instanceof HTMLInputElement) shown.value = value;
    }
  };
  const resource = (/** @type {string} */ name) => field(`${name}${several}`, String(requests[name] ?? ""), (value) => put(name, value),
    ask, name === "cpu" ? "500m" : name === "memory" ? "1Gi" : "1");
  const limit = (/** @type {string} */ name) => (limits[name] === undefined ? null : field(`${name} limit`, String(limits[name]), (value) => {
    if (value) limits[name] = value;
    else delete limits[name];
  }, ask, "none"));
  const form = h("div", { class: "form" },
    resource("cpu"), resource("memory"), limit("cpu"), limit("memory"), others.map(resource),
    field("more of a resource", "", (value) => {
      const [name, amount] = value.split("=");
      if (name?.includes("/") && amount) put(name.trim(), amount.trim());
    }, ask, "nvidia.com/gpu=1"),
    field("priority", spec.priority === undefined ? "" : String(spec.priority), (value) => {
      delete spec.priorityClassName;
      if (/^-?\d+$/.test(value)) spec.priority = Number(value);
      else delete spec.priority;
    }, ask, "1000"),
    lines("node selector, key=value per line", Object.entries(spec.nodeSelector ?? {}).map(([k, v]) => `${k}=${v}`), (given) => {
      spec.nodeSelector = Object.fromEntries(given.map((line) => [before(line, "="), after(line, "=")]));
    }, ask, "topology.kubernetes.io/zone=zone-a"),
    lines("tolerations, key=value:effect per line", (spec.tolerations ?? []).map(tolerationText), (given) => {
      spec.tolerations = given.map(toleration);
    }, ask, "dedicated=gpu:NoSchedule"),
    lines("affinity, as JSON", spec.affinity ? [JSON.stringify(spec.affinity)] : [], (given) => {
      try {
        if (given.length) spec.affinity = JSON.parse(given.join("\n"));
        else delete spec.affinity;
      } catch {
        // not whole yet: the last affinity that was stands
      }
    }, ask, '{"nodeAffinity": …}'));
  return form;
}

/** Whether a resource cannot be promised twice. @param {string} name */
function isExtended(name) {
  return name.includes("/") || name.startsWith("hugepages-");
}

/** A quantity as a number, to compare two of them. @param {string} text */
function amount(text) {
  const [, number = "", unit = ""] = /^([\d.]+)([a-zA-Z]*)$/.exec(text.trim()) ?? [];
  const units = /** @type {Record<string, number>} */ ({ m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40 });
  return Number(number) * (units[unit] ?? 1);
}

/** @param {string} name @param {string} value @param {(value: string) => void} set @param {() => void} ask
 * @param {string} example */
function field(name, value, set, ask, example) {
  const input = h("input", { value, placeholder: example, spellcheck: "false", autocomplete: "off", "data-field": name });
  input.addEventListener("input", () => {
    set(input.value.trim());
    ask();
  });
  return h("label", {}, h("span", {}, name), input);
}

/** @param {string} name @param {string[]} values @param {(lines: string[]) => void} set @param {() => void} ask
 * @param {string} example */
function lines(name, values, set, ask, example) {
  const area = h("textarea", { rows: Math.min(values.length + 1, 5), placeholder: example, spellcheck: "false", value: values.join("\n") });
  area.addEventListener("input", () => {
    set(area.value.split("\n").map((line) => line.trim()).filter(Boolean));
    ask();
  });
  return h("label", { class: "wide" }, h("span", {}, name), area);
}

/** @param {any} each */
function tolerationText(each) {
  return `${each.key ?? ""}${each.value ? `=${each.value}` : ""}${each.effect ? `:${each.effect}` : ""}`;
}

/** @param {string} line */
function toleration(line) {
  const effect = EFFECTS.find((each) => each && line.endsWith(`:${each}`)) ?? "";
  const rest = effect ? line.slice(0, -effect.length - 1) : line;
  const key = before(rest, "="), value = after(rest, "=");
  return { ...(key ? { key } : {}), operator: value ? "Equal" : "Exists", ...(value ? { value } : {}), ...(effect ? { effect } : {}) };
}

/** @param {string} text @param {string} mark */
function before(text, mark) {
  const at = text.indexOf(mark);
  return at < 0 ? text : text.slice(0, at);
}

/** @param {string} text @param {string} mark */
function after(text, mark) {
  const at = text.indexOf(mark);
  return at < 0 ? "" : text.slice(at + 1);
}

/** YAML of plain values: JSON is YAML too, so only mappings and lists get lines of their own.
 * @param {any} value @param {string} [indent] @returns {string} */
function yaml(value, indent = "") {
  if (Array.isArray(value) && value.length) {
    return value.map((/** @type {any} */ item) => `${indent}- ${yaml(item, `${indent}  `).trimStart()}`).join("\n");
  }
  if (value && typeof value === "object" && Object.keys(value).length) {
    return Object.entries(value).map(([key, item]) => {
      const nested = item && typeof item === "object" && Object.keys(item).length;
      return `${indent}${/^[\w.\/-]+$/.test(key) ? key : JSON.stringify(key)}:${nested ? `\n${yaml(item, `${indent}  `)}` : ` ${JSON.stringify(item)}`}`;
    }).join("\n");
  }
  return `${indent}${JSON.stringify(value)}`;
}
