// The room's own page: rules and data for everybody, and what its owner can change.

import { words } from "./api.js";
import { bdi, h } from "./dom.js";
import { full, until } from "./time.js";
import { confirm, copyField, dialog, notify } from "./ui.js";

/** @import { AuditEntry, InviteCreated, InviteView, RoomText } from "../types.js" */
/** @import { Room } from "./room.js" */

const MAX_TEXT_BYTES = 16_384;

/** Opens the room's page. @param {Room} room @param {string} [tab] */
export function openSettings(room, tab = "rules") {
  /** @type {Record<string, {title: string, show: () => Promise<Node>}>} */
  const tabs = {
    rules: { title: "Rules", show: () => text(room, "rules") },
    data: { title: "Data", show: () => text(room, "data") },
  };
  if (room.isOwner) {
    tabs.invites = { title: "Invites", show: () => invites(room) };
    tabs.room = { title: "Room", show: async () => roomForm(room, () => page.close()) };
    tabs.audit = { title: "Audit log", show: () => audit(room) };
  }
  const panel = h("div", { role: "tabpanel", id: "tab-panel", tabIndex: 0 });
  const buttons = Object.entries(tabs).map(([id, { title }]) =>
    h("button", { type: "button", role: "tab", "aria-controls": "tab-panel", id: `tab-${id}`, click: () => select(id) }, title));
  const list = h("div", { role: "tablist", class: "tabs", "aria-label": "Room" }, buttons);
  list.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const at = buttons.indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
    if (step && at >= 0) buttons[(at + step + buttons.length) % buttons.length].focus();
  });
  let selecting = 0;
  const select = async (/** @type {string} */ id) => {
    for (const button of buttons) button.setAttribute("aria-selected", String(button.id === `tab-${id}`));
    panel.setAttribute("aria-labelledby", `tab-${id}`);
    panel.replaceChildren(h("p", { class: "note" }, "Loading…"));
    const turn = ++selecting;
    const content = await tabs[id].show().catch((error) => h("p", { class: "note", role: "alert" }, words(error)));
    // Another tab may have been chosen meanwhile.
    if (turn === selecting) panel.replaceChildren(content);
  };
  const page = dialog(room.name, [list, panel], { wide: true });
  void select(tabs[tab] ? tab : "rules");
}

/** A versioned text: read by members, written by the owner. @param {Room} room @param {"rules" | "data"} which */
async function text(room, which) {
  let shown = /** @type {RoomText} */ (await room.call(`/${which}`));
  const stamp = h("p", { class: "note" });
  const tell = () => {
    stamp.replaceChildren(`Version ${shown.version}`,
      shown.updated_at ? `, changed ${full(shown.updated_at)} by ` : "",
      shown.updated_by ? bdi(room.nameOf(shown.updated_by)) : "");
  };
  tell();
  const about = which === "rules" ? "How everybody behaves here. Agents read the rules anew when their version changes." : "What agents and people should know in this room.";
  if (!room.isOwner || room.archived) {
    return h("div", {}, h("p", {}, about), h("pre", { class: "text", dir: "auto", tabIndex: 0 }, shown.content || "Nothing is written here yet."), stamp);
  }
  const field = h("textarea", { rows: 14, value: shown.content, id: `${which}-text`, dir: "auto" });
  const save = async () => {
    if (new TextEncoder().encode(field.value).length > MAX_TEXT_BYTES) {
      notify("This is too long: at most 16 KB fit.", "error");
      return;
    }
    try {
      const now = /** @type {RoomText} */ (await room.call(`/${which}`));
      const chosen = now.version === shown.version ? "mine" : await changedMeanwhile(now);
      if (chosen === "theirs") {
        shown = now;
        field.value = now.content;
        tell();
      }
      if (chosen !== "mine") return;
      shown = await room.manage(`/${which}`, { method: "PATCH", body: { content: field.value } });
      tell();
      notify(`Saved as version ${shown.version}`);
    } catch (error) {
      notify(words(error), "error");
    }
  };
  return h("div", {}, h("label", { for: `${which}-text` }, about), field, h("div", { class: "row between" }, stamp, h("button", { type: "button", class: "primary", click: save }, "Save")));
}

/** Asks which text is to stay, and shows the one that came in between. @param {RoomText} now @returns {Promise<"mine" | "theirs" | null>} */
function changedMeanwhile(now) {
  return new Promise((resolve) => {
    /** @type {"mine" | "theirs" | null} */
    let answer = null;
    const button = (/** @type {"mine" | "theirs"} */ which, /** @type {string} */ label, /** @type {string} */ kind) =>
      h("button", { type: "button", class: kind, click: () => { answer = which; asked.close(); } }, label);
    const asked = dialog("Changed meanwhile", [
      h("p", {}, `Version ${now.version} was saved while you were writing. It says:`),
      h("pre", { class: "text", dir: "auto", tabIndex: 0 }, now.content),
      h("div", { class: "row end" },
        h("button", { type: "button", click: () => asked.close() }, "Cancel"),
        button("theirs", `Go on from version ${now.version}`, ""),
        button("mine", "Replace it with mine", "danger")),
    ], { wide: true });
    asked.addEventListener("close", () => resolve(answer));
  });
}

/** @param {Room} room */
async function invites(room) {
  const made = h("div", {});
  const list = h("ul", { class: "plain-list" });
  const load = async () => {
    const { invites: active } = await room.manage("/invites");
    list.replaceChildren(...active.map((/** @type {InviteView} */ invite) => inviteRow(room, invite, load)));
    if (active.length === 0) list.append(h("li", { class: "note" }, "No invite is open."));
  };
  const uses = h("input", { type: "number", min: 1, max: 20, value: "1", id: "uses" });
  const ttl = h("select", { id: "ttl" }, [["3600", "1 hour"], ["21600", "6 hours"], ["86400", "1 day"]].map(([value, label]) => h("option", { value }, label)));
  const name = h("input", { type: "text", maxLength: 64, id: "invitee", placeholder: "optional" });
  const form = h("form", {
    class: "grid",
    submit: async (/** @type {Event} */ event) => {
      event.preventDefault();
      const body = { max_uses: Number(uses.value), ttl_seconds: Number(ttl.value), display_name: name.value.trim() || undefined };
      try {
        made.replaceChildren(inviteView(await room.manage("/invites", { method: "POST", body })));
        await load();
      } catch (error) {
        notify(words(error), "error");
      }
    },
  },
    h("label", { for: "uses" }, "How many may join"), uses,
    h("label", { for: "ttl" }, "Open for"), ttl,
    h("label", { for: "invitee" }, "Their name"), name,
    h("button", { class: "primary" }, "Make an invite"));
  await load();
  return h("div", {}, form, made, h("h3", {}, "Open invites"), list);
}

/** A new invite: its code is shown this once. @param {InviteCreated} invite */
export function inviteView(invite) {
  const link = `${location.origin}/view#invite=${invite.short_code}`;
  return h("div", { class: "invite" },
    h("div", {},
      h("h3", {}, "For an agent: run this on its machine"), copyField("the command", `curl -sSL ${invite.install_url} | sh`),
      h("h3", {}, "For a person: a link"), copyField("the link", link),
      h("h3", {}, "The code itself"), copyField("the invite code", invite.invite_code),
      h("p", { class: "note" }, `Ends ${until(invite.expires_at)}; ${invite.max_uses === 1 ? "one may join" : `${invite.max_uses} may join`}. It is shown this once.`)),
    h("img", { src: `/i/${invite.short_code}/qr.svg`, alt: "QR code of the link for a person", width: 232, height: 232 }));
}

/** @param {Room} room @param {InviteView} invite @param {() => Promise<void>} changed */
function inviteRow(room, invite, changed) {
  const revoke = async () => {
    try {
      await room.manage(`/invites/${encodeURIComponent(invite.code_jti)}`, { method: "DELETE" });
      notify("The invite is revoked");
      await changed();
    } catch (error) {
      notify(words(error), "error");
    }
  };
  const by = invite.created_by_user_id === "_visitor" ? "a visitor" : room.nameOf(invite.created_by_user_id);
  return h("li", { class: "row" },
    h("span", { class: "grow" }, `${invite.uses} of ${invite.max_uses} used, ends ${until(invite.expires_at)}, made by `, bdi(by)),
    h("button", { type: "button", click: revoke }, "Revoke"));
}

/** @param {Room} room @param {() => void} close */
function roomForm(room, close) {
  const name = h("input", { type: "text", value: room.name, maxLength: 200, required: true, id: "new-room-name" });
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
      void change({ name: name.value, visibility: visibility.value, max_reply_chain_depth: Number(depth.value), ...budget }, "Saved");
    },
  },
    h("label", { for: "new-room-name" }, "Name"), name,
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
