// The room's own page: rules and data for everybody, and what its owner can change.

import { words } from "./api.js";
import { bdi, h } from "./dom.js";
import { invitesTab } from "./invites.js";
import { linksTab } from "./links.js";
import { textTab } from "./texts.js";
import { full } from "./time.js";
import { confirm, dialog, notify, tabbed } from "./ui.js";
import { webhooksTab } from "./webhooks.js";

/** @import { AuditEntry } from "../types.js" */
/** @import { Room } from "./room.js" */

/** Opens the room's page. @param {Room} room @param {string} [tab] */
export function openSettings(room, tab = "rules") {
  /** @type {Record<string, {title: string, show: () => Promise<Node>}>} */
  const tabs = {
    rules: { title: "Rules", show: () => textTab(room, "rules") },
    data: { title: "Data", show: () => textTab(room, "data") },
  };
  if (room.identity && room.key) tabs.links = { title: "Links", show: () => linksTab(room) };
  if (room.isOwner) {
    tabs.invites = { title: "Invites", show: () => invitesTab(room) };
    tabs.webhooks = { title: "Webhooks", show: () => webhooksTab(room) };
    tabs.room = { title: "Room", show: async () => roomForm(room, () => page.close()) };
    tabs.audit = { title: "Audit log", show: () => audit(room) };
  }
  const shown = tabbed("Room", tabs);
  const page = dialog(room.name, [shown.element], { wide: true });
  page.classList.add("settings");
  void shown.select(tabs[tab] ? tab : "rules");
}

/** @param {Room} room @param {() => void} close */
function roomForm(room, close) {
  const name = h("input", { type: "text", value: room.name, maxLength: 200, required: true, id: "new-room-name" });
  const topic = h("input", { type: "text", value: room.topic, maxLength: 250, id: "topic", placeholder: "What it is about" });
  const visibility = h("select", { id: "visibility" }, [["private", "Private: members only"], ["public", "Public: anybody may read"]].map(([value, label]) => h("option", { value, selected: value === room.visibility }, label)));
  const depth = h("input", { type: "number", min: 1, max: 50, value: String(room.me?.room.max_reply_chain_depth ?? 5), id: "depth" });
  const allowed = String(room.me?.room.agent_exchanges_without_person ?? 60);
  const exchanges = h("input", { type: "number", min: 0, max: 10_000, value: allowed, id: "exchanges" });
  const change = async (/** @type {unknown} */ body, /** @type {string} */ told) => {
    try {
      await room.manage("", { method: "PATCH", body });
      notify(told);
      close();
      await room.loadMe();
    } catch (error) {
      notify(words(error), "error");
    }
  };
  const archive = async () => {
    const text = "Nobody can write any more. It can be read, and you can open it again.";
    if (room.archived || (await confirm("Archive this room?", text, "Archive"))) {
      await change({ archived: !room.archived }, room.archived ? "The room is open again" : "The room is archived");
    }
  };
  return h("form", {
    class: "grid",
    submit: (/** @type {Event} */ event) => {
      event.preventDefault();
      // Setting it lets the agents begin anew, so it is not set by the way.
      const budget = exchanges.value === allowed ? {} : { agent_exchanges_without_person: Number(exchanges.value) };
      void change({ name: name.value, topic: topic.value, visibility: visibility.value, max_reply_chain_depth: Number(depth.value), ...budget }, "Saved");
    },
  },
    h("label", { for: "new-room-name" }, "Name"), name,
    h("label", { for: "topic" }, "Topic"), topic,
    h("label", { for: "visibility" }, "Who may read"), visibility,
    h("label", { for: "depth" }, "Agents may answer each other so many times in a row"), depth,
    h("label", { for: "exchanges" }, "Messages that agents may exchange until a person writes (0: any number)"), exchanges,
    h("button", { class: "primary" }, "Save"),
    h("button", { type: "button", class: "danger", click: archive }, room.archived ? "Open the room again" : "Archive the room"));
}

/** @param {Room} room */
async function audit(room) {
  const rows = h("tbody", {});
  let last = 0;
  const more = h("button", { type: "button", click: () => load() }, "Show more");
  const load = async () => {
    const { entries } = await room.manage(`/audit?since=${last}&limit=100`);
    rows.append(...entries.map((/** @type {AuditEntry} */ entry) => h("tr", {},
      h("td", {}, full(entry.at)), h("td", {}, bdi(room.nameOf(entry.actor))), h("td", {}, entry.action.replaceAll("_", " ")),
      h("td", {}, bdi([entry.target ? room.nameOf(entry.target) : "", particulars(entry.detail)].filter(Boolean).join(" · "))))));
    last = entries.at(-1)?.n ?? last;
    more.hidden = entries.length < 100;
  };
  await load();
  const heads = ["When", "Who", "What", "Particulars"].map((title) => h("th", { scope: "col" }, title));
  return h("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": "Audit log" }, h("table", {}, h("thead", {}, h("tr", {}, heads)), rows), more);
}

/** @param {Record<string, unknown>} detail */
const particulars = (detail) => Object.entries(detail ?? {}).map(([key, value]) => `${key.replaceAll("_", " ")}: ${key.endsWith("_at") ? full(Number(value)) : String(value)}`).join(", ");
