// Signing in at a scheduler's own page, and out again: a token of the cluster, which the server puts into a cookie.

import { ApiError, post } from "./api.js";
import { fill, h } from "./dom.js";

const COMMANDS = `kubectl create clusterrole kubesched-page --verb=get,post --non-resource-url='/ui/*'
kubectl create clusterrolebinding kubesched-page --clusterrole=kubesched-page --serviceaccount=NAMESPACE:NAME
kubectl create token --namespace NAMESPACE NAME`;

/** @param {HTMLElement} root @param {ApiError} refusal */
export function signIn(root, refusal) {
  const token = h("input", { type: "password", id: "token", autocomplete: "off", required: true, "aria-describedby": "refusal" });
  const said = h("p", { class: refusal.status === 403 ? "bad" : "dim", id: "refusal", role: "status" }, words(refusal));
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    try {
      await post("sign-in", { token: token.value });
      location.reload();
    } catch (error) {
      fill(said, error instanceof ApiError ? error.lines.join(" ") : String(error));
    }
  };
  fill(root, h("form", { class: "sign-in panel", on: { submit } },
    h("h1", {}, "Sign in"),
    h("p", {}, "This is the page of a scheduler at work. The cluster says who may see it."),
    said,
    h("label", { for: "token" }, "Bearer token"), token,
    h("button", { type: "submit" }, "Sign in"),
    h("details", {}, h("summary", {}, "How to get one"),
      h("p", {}, "Whoever may get and post /ui/* may look; a service account is allowed to, and gets a token, with:"),
      h("pre", { tabindex: 0 }, COMMANDS))));
  token.focus();
}

/** The server takes the token out of the cookie. */
export async function signOut() {
  await post("sign-in", { token: "" });
  location.reload();
}

/** @param {ApiError} refusal */
function words(refusal) {
  if (refusal.status === 401) return "The token is not valid, or no longer.";
  if (refusal.lines.some((line) => line.includes("system:anonymous"))) return "You are nobody yet.";
  return refusal.lines.join(" ");
}
