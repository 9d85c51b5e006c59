// The page: its header, what a story says, and the view that the address names.

import { ApiError } from "./api.js";
import { Cluster } from "./cluster.js";
import { empty, fill, h } from "./dom.js";
import { current, groupOf } from "./router.js";
import { searchBox } from "./search.js";
import { signIn, signOut } from "./sign-in.js";
import { travelBar } from "./travel.js";
import { startTheme, switchTheme } from "./theme.js";
import { listView } from "./views/list.js";
import { node } from "./views/node.js";
import { overview } from "./views/overview.js";
import { pending } from "./views/pending.js";
import { pod } from "./views/pod.js";
import { queue } from "./views/queue.js";
import { shadow } from "./views/shadow.js";
import { upgrade } from "./views/upgrade.js";
import { whatIf } from "./views/what-if.js";
import { workload } from "./views/workload.js";
import { count } from "./words.js";

const cluster = new Cluster();
/** A list, or one of its members if the path goes on. @param {string} name @param {import("./router.js").View} one
 * @returns {import("./router.js").View} */
const either = (name, one) => (root, route) => (route.path.length > 1 ? one : listView(cluster, name))(root, route);
/** Views by the first step of the path. */
const VIEWS = {
  overview: overview(cluster), pending: pending(cluster), queue: queue(cluster), shadow: shadow(cluster),
  "what-if": whatIf(cluster), upgrade: upgrade(cluster), pods: either("pods", pod(cluster)), nodes: either("nodes", node(cluster)),
  workloads: either("workloads", workload(cluster)),
};
/** What is named in the header, by what there is to see. @returns {[string, string][]} */
const tabs = () => [
  ["overview", "Overview"], ["pending", "Pending"], ["workloads", "Workloads"], ["pods", "Pods"], ["nodes", "Nodes"], ["queue", "Queue"],
  ...(cluster.about.shadow ? [/** @type {[string, string]} */ (["shadow", "Shadow"])] : []),
  ...(cluster.about.experiments ? [/** @type {[string, string]} */ (["what-if", "What if"]), /** @type {[string, string]} */ (["upgrade", "Upgrade"])] : []),
];

/** Sources to which people sign in. */
const SCHEDULERS = ["daemon", "shadow"];
const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const banner = /** @type {HTMLElement} */ (document.getElementById("banner"));
const saying = /** @type {HTMLElement} */ (document.getElementById("saying"));
/** @type {import("./types").Shown} */
let shown = {};
let turn = 0;

async function show() {
  const route = current();
  const name = route.path[0] ?? "overview";
  const mine = ++turn;
  shown.leave?.();
  shown = {};
  mark(name);
  const view = /** @type {Record<string, import("./router.js").View>} */ (VIEWS)[name];
  const root = h("div", { class: "view", "data-view": name });
  try {
    if (!view) throw new ApiError(404, [`There is no view called ${name}.`]);
    fill(main, root);
    const made = await view(root, route);
    if (mine !== turn) return made.leave?.();
    shown = made;
  } catch (error) {
    if (mine !== turn) return;
    const lines = error instanceof ApiError ? error.lines : ["This page has a mistake:", String(error)];
    if (!(error instanceof ApiError)) console.error(error);
    fill(main, h("div", { class: "view failed" }, h("h1", {}, "That cannot be shown"), lines.map((line) => empty(line)),
      h("p", {}, h("a", { href: "#/overview" }, "Back to the overview"))));
  }
  document.title = `${[...route.path].pop() ?? "overview"} · kubesched`;
}

function header() {
  const queued = h("span", { class: "badge" });
  const told = () => {
    const { active, backoff, unschedulable, gated } = cluster.queue;
    const all = active + backoff + unschedulable + gated;
    fill(queued, all ? count(all) : "");
    queued.hidden = !all;
  };
  cluster.on("queue", told);
  told();
  fill(/** @type {HTMLElement} */ (document.getElementById("header")),
    h("a", { class: "brand", href: "#/overview" }, h("img", { src: "icon.svg", alt: "", width: 18, height: 18 }), "kubesched"),
    h("nav", { "aria-label": "Views" }, tabs().map(([name, title]) =>
      h("a", { href: `#/${name}`, "data-tab": name }, title, name === "pending" ? queued : null))),
    searchBox(),
    h("span", { class: "where dim", title: cluster.about.title }, cluster.about.title),
    SCHEDULERS.includes(cluster.about.source)
      ? h("button", { type: "button", class: "sign-out", on: { click: signOut } }, "Sign out") : null,
    h("button", { type: "button", class: "theme", "aria-label": "Dark or light", title: "Dark or light", on: { click: switchTheme } }, "◐"));
}

/** @param {string} name */
function mark(name) {
  for (const tab of document.querySelectorAll("[data-tab]")) {
    if (tab.getAttribute("data-tab") === name) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
  }
}

async function start() {
  startTheme();
  try {
    await cluster.open(groupOf(current()));
  } catch (error) {
    if (error instanceof ApiError && error.signIn) return signIn(main, error);
    const lines = error instanceof ApiError ? error.lines : [String(error)];
    return fill(main, lines.map((line) => empty(line)));
  }
  header();
  cluster.on("saying", () => {
    fill(saying, cluster.saying);
    saying.hidden = !cluster.saying;
  });
  cluster.on("connection", () => {
    fill(banner, "The connection to kubesched is lost: what you see is not news. It is tried again every few seconds.");
    banner.hidden = cluster.connected;
  });
  cluster.on("refused", (error) => {
    shown.leave?.();
    shown = {};
    turn++;
    signIn(main, error);
  });
  if (cluster.about.source === "recording") await travelBar(/** @type {HTMLElement} */ (document.getElementById("travel")), cluster);
  addEventListener("hashchange", show);
  await show();
  document.documentElement.dataset["ready"] = "true";
}

start();
