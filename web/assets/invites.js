// Inviting people and agents.

import { isCode, words } from "./api.js";
import { bdi, h, icon } from "./dom.js";
import { claims } from "./session.js";
import { until } from "./time.js";
import { announce, copy, copyField, dialog, notify, tabbed } from "./ui.js";

/** @import { InviteCreated, InviteView } from "../types.js" */
/** @import { Room } from "./room.js" */

const LIFETIMES = [["3600", "1 hour"], ["86400", "1 day"], ["604800", "7 days"], ["2592000", "30 days"]];
const USES = [["1", "one"], ["5", "up to 5"], ["20", "up to 20"]];

/** Whether somebody may be invited from here. @param {Room} room */
export const canInvite = (room) => !room.archived && room.key !== null && (room.isOwner || room.visibility === "public");

/** Invites into a room, and waits for whoever comes. @param {Room} room */
export function openInvite(room) {
  /** @type {InviteCreated | null} */
  let invite = null;
  let chosen = [USES[0][0], LIFETIMES[0][0]];
  const uses = select("invite-uses", USES);
  const lifetime = select("invite-lifetime", LIFETIMES);
  const options = room.isOwner
    ? h("div", { class: "row invite-options" }, h("label", { for: "invite-uses" }, "Good for"), uses, h("label", { for: "invite-lifetime" }, "during"), lifetime)
    : "";
  const arrivals = h("p", { class: "waiting", role: "status" }, "Waiting for somebody to come", h("span", { class: "dots", "aria-hidden": "true" }, "…"));
  const views = {
    person: { title: "A person", show: async () => (invite ? forPerson(invite) : publicLink(room)) },
    agent: { title: "An agent", show: async () => forAgent(invite ?? (await make())) },
  };
  const tabs = tabbed("Whom to invite", views);
  const asked = dialog("Invite", [tabs.element, options, arrivals], { wide: true });

  async function make() {
    const made = room.isOwner
      ? await room.manage("/invites", { method: "POST", body: { max_uses: Number(uses.value), ttl_seconds: Number(lifetime.value) } })
      : await room.call("/auto-invite", { method: "POST" });
    if (room.isOwner) invite = made;
    return /** @type {InviteCreated} */ (made);
  }

  /** One that nobody has used yet makes way for the one that is wanted now. */
  async function makeAnew() {
    const old = invite;
    try {
      await make();
      chosen = [uses.value, lifetime.value];
      if (old) await room.manage(`/invites/${encodeURIComponent(claims(old.invite_code).jti)}`, { method: "DELETE" }).catch(() => {});
    } catch (error) {
      // The operator may not allow it: what was allowed stays.
      const why = whyNot(error, lifetime);
      [uses.value, lifetime.value] = chosen;
      notify(why, "error");
    }
    await tabs.select(tabs.selected);
  }
  uses.onchange = makeAnew;
  lifetime.onchange = makeAnew;

  const known = new Set(room.members.keys());
  const look = () => {
    for (const [id, member] of room.members) {
      if (known.has(id)) continue;
      known.add(id);
      const name = member.user_name ?? id;
      arrivals.replaceChildren(icon("check"), " ", bdi(name), " is here");
      arrivals.classList.add("arrived");
      announce(`${name} is here`);
    }
  };
  room.addEventListener("members", look);
  asked.addEventListener("close", () => room.removeEventListener("members", look));
  void (room.isOwner ? make() : Promise.resolve()).then(() => tabs.select("person"), (error) => tabs.fail(words(error)));
}

/** @param {string} id @param {string[][]} choices */
const select = (id, choices) => h("select", { id }, choices.map(([value, label]) => h("option", { value }, label)));

/** Why there is no invite. What lasts too long is not offered again. @param {unknown} error @param {HTMLSelectElement} lifetime */
function whyNot(error, lifetime) {
  if (!isCode(error, "bad_request") || lifetime.selectedIndex === 0) return words(error);
  for (const option of [...lifetime.options].slice(lifetime.selectedIndex)) option.disabled = true;
  return "Whoever runs this server does not let invites last that long.";
}

/** @param {InviteCreated} invite */
function forPerson(invite) {
  const link = linkOf(invite);
  return h("div", { class: "invite" },
    h("div", {},
      h("p", {}, "Send this link. Whoever is signed in here comes as themselves, others as guests under a name they choose."),
      command("the link", link), reach(link),
      h("p", { class: "note" }, ending(invite))),
    qr(invite));
}

/** @param {Room} room */
function publicLink(room) {
  const link = `${location.origin}/view?room=${room.id}`;
  return h("div", {}, h("p", {}, "This room is public: whoever has the link reads along, and joins once signed in."), command("the link", link), reach(link));
}

/** @param {InviteCreated} invite */
function forAgent(invite) {
  return h("div", {},
    h("p", {}, "Run this on the agent's machine. It installs the program, finds a coding agent or model that is there, and brings it into this room."),
    command("the command", oneLiner(invite)), reach(invite.install_url),
    h("p", { class: "note" }, ending(invite), " An agent that joins by itself needs the code:"),
    copyField("the invite code", invite.invite_code));
}

/** A text that is seen whole, with a button that copies it. @param {string} label @param {string} text */
const command = (label, text) => h("div", { class: "command" },
  h("code", { tabIndex: 0, role: "textbox", "aria-readonly": "true", "aria-label": label }, text),
  h("button", { type: "button", class: "primary", click: () => copy(text, label) }, icon("copy"), "Copy"));

/** @param {InviteCreated} invite */
const oneLiner = (invite) => `curl -sSL ${invite.install_url} | sh`;

/** @param {InviteCreated} invite */
const linkOf = (invite) => `${location.origin}/view#invite=${invite.short_code}`;

/** @param {InviteCreated} invite */
const ending = (invite) => `Ends ${until(invite.expires_at)}; ${invite.max_uses === 1 ? "one may join" : `${invite.max_uses} may join`}.`;

/** @param {InviteCreated} invite */
const qr = (invite) => h("img", { src: `/i/${invite.short_code}/qr.svg`, alt: "QR code of the link for a person", width: 232, height: 232 });

/** Says where an address does not work. @param {string} address */
function reach(address) {
  const { hostname } = new URL(address, location.origin);
  const host = hostname.replace(/^\[|\]$/g, "");
  const words = /^(localhost|127\.|::1$|0\.0\.0\.0$)|\.localhost$/.test(host)
    ? "This address works only on this machine. For others, start the server with --public-url and an address that they reach."
    : /^(10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|169\.254\.|f[cd]|fe80)|\.(local|lan|home|internal)$/.test(host)
      ? "This address works only in this network."
      : null;
  return words ? h("p", { class: "warn reach" }, words) : "";
}

/** A new invite in all its forms: its code is shown this once. @param {InviteCreated} invite */
export function inviteView(invite) {
  return h("div", { class: "invite" },
    h("div", {},
      h("h3", {}, "For an agent: run this on its machine"), command("the command", oneLiner(invite)), reach(invite.install_url),
      h("h3", {}, "For a person: a link"), copyField("the link", linkOf(invite)),
      h("h3", {}, "The code itself"), copyField("the invite code", invite.invite_code),
      h("p", { class: "note" }, ending(invite), " It is shown this once.")),
    qr(invite));
}

/** The invites of a room, for its owner. @param {Room} room */
export async function invitesTab(room) {
  const made = h("div", {});
  const list = h("ul", { class: "plain-list" });
  const load = async () => {
    const { invites: active } = await room.manage("/invites");
    list.replaceChildren(...active.map((/** @type {InviteView} */ invite) => inviteRow(room, invite, load)));
    if (active.length === 0) list.append(h("li", { class: "note" }, "No invite is open."));
  };
  const uses = h("input", { type: "number", min: 1, max: 20, value: "1", id: "uses" });
  const ttl = select("ttl", LIFETIMES);
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
        notify(whyNot(error, ttl), "error");
        if (ttl.selectedOptions[0]?.disabled) ttl.selectedIndex = 0;
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
