// Telling of mentions while the page is not looked at, outside of the quiet hours.

import { h } from "./dom.js";
import { readJson, writeJson } from "./store.js";
import { notify } from "./ui.js";

/** @import { InboxMention } from "../types.js" */

const KEY = "notifications";
/** @typedef {{on: boolean, quiet: boolean, from: string, to: string}} Settings times as 22:00, in the reader's own time */

/** @returns {Settings} */
const settings = () => ({ on: false, quiet: false, from: "22:00", to: "07:00", ...readJson(KEY) });

const possible = () => "Notification" in globalThis;

/** Whether it is quiet now. @param {Settings} chosen @param {Date} now */
export function isQuiet({ quiet, from, to }, now) {
  if (!quiet || from === to) return false;
  const time = `${String(now.getHours()).padStart(2, "0")}:${String(now.getMinutes()).padStart(2, "0")}`;
  return from < to ? time >= from && time < to : time >= from || time < to;
}

/** @param {InboxMention} mention @param {() => void} open */
export function tellOf(mention, open) {
  const chosen = settings();
  if (!chosen.on || !possible() || Notification.permission !== "granted" || isQuiet(chosen, new Date())) return;
  if (document.visibilityState === "visible" && document.hasFocus()) return;
  const shown = new Notification(`${mention.sender_user_name ?? mention.sender_user_id} in ${mention.room_name}`, { body: mention.preview, tag: `${mention.room_id}-${mention.seq}` });
  shown.onclick = () => {
    window.focus();
    shown.close();
    open();
  };
}

/** The form in which they are chosen. */
export function notificationForm() {
  const chosen = settings();
  const keep = () => writeJson(KEY, { on: on.checked, quiet: quiet.checked, from: from.value, to: to.value });
  const on = h("input", {
    type: "checkbox", id: "notify-on", checked: chosen.on && possible() && Notification.permission === "granted",
    change: async () => {
      if (on.checked && (await Notification.requestPermission()) !== "granted") {
        on.checked = false;
        notify("The browser does not allow notifications of this page. Its settings say so; change it there.", "error");
      }
      keep();
    },
  });
  const quiet = h("input", { type: "checkbox", id: "quiet-on", checked: chosen.quiet, change: keep });
  const from = h("input", { type: "time", value: chosen.from, "aria-label": "Quiet from", change: keep });
  const to = h("input", { type: "time", value: chosen.to, "aria-label": "Quiet until", change: keep });
  if (!possible()) return h("p", { class: "note" }, "This browser shows no notifications here; it needs https for them.");
  return h("div", { class: "notify-form" },
    h("div", { class: "row" }, on, h("label", { for: "notify-on" }, "Notify me when I am mentioned")),
    h("div", { class: "row" }, quiet, h("label", { for: "quiet-on" }, "but not from"), from, "to", to));
}
