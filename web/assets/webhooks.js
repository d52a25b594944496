// Webhooks: other systems that post here, or are told what happens here.

import { bdi, h } from "./dom.js";
import { full } from "./time.js";
import { attempting, confirm, copyField } from "./ui.js";

/** @import { WebhookView, WebhookCreated, WebhookDelivery } from "../types.js" */
/** @import { Room } from "./room.js" */

/** @param {Room} room */
export async function webhooksTab(room) {
  const made = h("div", { role: "status" });
  const list = h("ul", { class: "plain-list" });
  const load = async () => {
    const { webhooks } = await room.manage("/webhooks");
    list.replaceChildren(...webhooks.map(line));
    if (webhooks.length === 0) list.append(h("li", { class: "note" }, "There is none yet."));
  };
  const attempt = attempting(load);
  const path = (/** @type {WebhookView} */ hook) => `/webhooks/${encodeURIComponent(hook.id)}`;
  const tell = (/** @type {WebhookCreated} */ { webhook, url, secret }) => made.replaceChildren(
    ...(url ? [copyField("the address to post to", url)] : []),
    ...(secret ? [copyField(webhook.kind === "in" ? "the secret to sign with" : "the secret to check signatures with", secret)] : []),
    h("p", { class: "note" }, "Shown this once. Whoever has it can ", webhook.kind === "in" ? "post here." : "sign as this room."));
  const remove = async (/** @type {WebhookView} */ hook) => {
    if (await confirm("Remove this webhook?", "What it posted stays. Its address is of no more use.", "Remove")) await attempt(() => room.manage(path(hook), { method: "DELETE" }), "The webhook is removed");
  };
  /** @param {WebhookView} hook */
  const line = (hook) => h("li", { class: "row webhook" },
    h("span", { class: "grow" }, bdi(hook.name), ` ${state(hook)}`),
    hook.kind === "out" ? h("button", { type: "button", click: () => attempt(async () => made.replaceChildren(deliveries(await room.manage(`${path(hook)}/deliveries`))), "") }, "Deliveries") : "",
    hook.enabled ? "" : h("button", { type: "button", click: () => attempt(() => room.manage(path(hook), { method: "PATCH", body: { enabled: true } }), "The webhook is on") }, "Switch on"),
    h("button", { type: "button", click: () => attempt(async () => tell(await room.manage(`${path(hook)}/rotate`, { method: "POST" })), "") }, hook.kind === "in" ? "New address" : "New secret"),
    h("button", { type: "button", class: "danger", click: () => remove(hook) }, "Remove"));
  const kind = h("select", { id: "webhook-kind" }, h("option", { value: "in" }, "posts here"), h("option", { value: "out" }, "is told what happens here"));
  const name = h("input", { type: "text", id: "webhook-name", maxLength: 64, required: true, placeholder: "CI" });
  const url = h("input", { type: "url", id: "webhook-url", maxLength: 2048, placeholder: "https://…", hidden: true, "aria-label": "Its address" });
  const signed = h("input", { type: "checkbox", id: "webhook-signed" });
  const signedField = h("label", { class: "row", for: "webhook-signed" }, signed, "What it sends is signed, as GitHub signs");
  kind.onchange = () => {
    url.hidden = kind.value === "in";
    url.required = kind.value === "out";
    signedField.hidden = kind.value === "out";
  };
  const make = async (/** @type {Event} */ event) => {
    event.preventDefault();
    await attempt(async () => {
      const more = kind.value === "in" ? { signed: signed.checked } : { url: url.value };
      tell(await room.manage("/webhooks", { method: "POST", body: { kind: kind.value, name: name.value, ...more } }));
      name.value = "";
    }, "");
  };
  await load();
  return h("div", {},
    h("form", { class: "grid", submit: make },
      h("label", { for: "webhook-kind" }, "Another system that"), kind,
      h("label", { for: "webhook-name" }, "Its name here"), name,
      url, signedField,
      h("button", { class: "primary" }, "Make a webhook")),
    made,
    h("h3", {}, "Webhooks of this room"), list);
}

/** @param {WebhookView} hook */
function state(hook) {
  const what = hook.kind === "in" ? "posts here" : `is told at ${hook.target}`;
  if (!hook.enabled) return `${what}; off${hook.disabled_reason ? `: ${hook.disabled_reason}` : ""}`;
  return hook.failing_since ? `${what}; fails since ${full(hook.failing_since)}` : what;
}

/** @param {{deliveries: WebhookDelivery[]}} log */
function deliveries({ deliveries }) {
  const rows = deliveries.map((sent) => h("tr", {},
    h("td", {}, full(sent.last_at)), h("td", {}, sent.event.replaceAll("_", " ")),
    h("td", {}, sent.state), h("td", {}, String(sent.attempts)), h("td", {}, bdi(sent.error ?? String(sent.status ?? "")))));
  const heads = ["When", "What", "State", "Attempts", "Answer"].map((title) => h("th", { scope: "col" }, title));
  return h("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": "Deliveries" },
    rows.length > 0 ? h("table", {}, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, rows)) : h("p", { class: "note" }, "Nothing was sent yet."));
}
