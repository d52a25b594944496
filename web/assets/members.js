// Who is in the room.

import { words } from "./api.js";
import { avatar } from "./avatar.js";
import { checksView } from "./checklist.js";
import { bdi, h } from "./dom.js";
import { hostOf } from "./message.js";
import { kindWords } from "./room.js";
import { full } from "./time.js";
import { confirm, dialog, notify } from "./ui.js";
import { wakeView } from "./wake.js";

/** @import { Member, Ranked } from "../types.js" */
/** @import { Room } from "./room.js" */

/** @param {Member} member */
const isAgent = (member) => member.member_kind.endsWith("agent");

/** Whether the server calls it with each message. @param {Member} member */
const isCalled = (member) => member.has_agent_endpoint && member.has_akm_key;

/** The list for the side panel. @param {Room} room @param {(userId: string) => void} open */
export function memberList(room, open) {
  const members = [...room.members.values()];
  const group = (/** @type {string} */ title, /** @type {Member[]} */ those) =>
    those.length > 0 && h("section", {}, h("h3", {}, `${title} · ${those.length}`), h("ul", { class: "members" }, those.map((member) => memberRow(member, open))));
  return h("div", {}, group("People", members.filter((member) => !isAgent(member))), group("Agents", members.filter(isAgent)));
}

/** @param {Member} member @param {(userId: string) => void} open */
function memberRow(member, open) {
  const notes = [member.role === "owner" && "owner", member.key_stale && "cannot be reached", member.online && "here now", welcome(member)].filter(Boolean);
  return h("li", {},
    h("button", { type: "button", class: "member", "data-key": member.user_id, click: () => open(member.user_id) },
      h("span", { class: member.online ? "presence online" : "presence" }, avatar(member.avatar_seed, isAgent(member), member.user_name, member.picture)),
      h("span", { class: "who" },
        h("span", { class: "cut" }, bdi(member.user_name ?? member.user_id)),
        notes.length > 0 && h("small", { class: member.key_stale ? "warn" : undefined }, notes.join(" · ")))));
}

/** A member's card. @param {Room} room @param {string} userId */
export async function memberCard(room, userId) {
  const member = room.members.get(userId);
  if (!member) {
    dialog(room.nameOf(userId), [h("p", {}, "No longer in this room.")]);
    return;
  }
  const score = h("dd", {}, "…");
  const host = member.agent_card_url ? hostOf(member.agent_card_url) : null;
  const row = (/** @type {string} */ title, /** @type {(Node | string)[]} */ ...value) => [h("dt", {}, title), h("dd", {}, ...value)];
  const facts = h("dl", {},
    row("What", kindWords(member.member_kind) + (member.role === "owner" ? ", owner of this room" : "")),
    row("Id", h("code", {}, member.user_id)),
    row("Joined", full(member.joined_at)),
    isCalled(member) ? [] : row("Now", member.online ? "has the room open" : "not here"),
    isAgent(member) ? row("Reached", reach(member)) : [],
    host && member.agent_card_url
      ? row("Agent card", h("a", { href: member.agent_card_url, target: "_blank", rel: "noopener noreferrer nofollow" }, bdi(host)))
      : [],
    [h("dt", {}, "Score here"), score],
    member.welcome_score ? row("Welcome", `${welcome(member)} passed`) : []);
  const card = dialog(member.user_name ?? member.user_id, [
    h("div", { class: "card" }, avatar(member.avatar_seed, isAgent(member), member.user_name, member.picture), facts),
    isAgent(member) ? wakeView(room, member) : "",
    checksView(member),
    actions(room, member, () => card.close()),
  ]);
  score.textContent = await scoreOf(room, userId);
}

/** @param {Member} member */
function reach(member) {
  if (member.key_stale) return h("span", { class: "warn" }, "no: ", bdi(member.last_error ?? "its key was refused"), ". It has to send a new key to be called again.");
  if (!isCalled(member)) return "it reads for itself";
  if (!member.last_error) return "the server calls it";
  return h("span", {}, "the server calls it again soon; the last call failed: ", bdi(member.last_error));
}

/** @param {Member} member */
const welcome = ({ welcome_score: score }) => score && `${score.passed} of ${score.total} checks`;

/** @param {Room} room @param {string} userId */
async function scoreOf(room, userId) {
  try {
    const { leaderboard } = await room.call("/leaderboard?window=30&limit=100");
    const place = leaderboard.find((/** @type {Ranked} */ ranked) => ranked.user_id === userId);
    return place ? `${Math.round(place.score * 10) / 10} points, place ${place.rank}` : "no points yet";
  } catch {
    return "not known";
  }
}

/** What the owner can do, or the member itself. @param {Room} room @param {Member} member @param {() => void} done */
function actions(room, member, done) {
  const path = `/members/${encodeURIComponent(member.user_id)}`;
  const name = member.user_name ?? member.user_id;
  const act = async (/** @type {() => Promise<unknown>} */ what, /** @type {string} */ told) => {
    try {
      await what();
      notify(told);
      done();
      await room.loadMembers();
    } catch (error) {
      notify(words(error), "error");
    }
  };
  const self = member.user_id === room.userId;
  const parts = [];
  if (room.isOwner && member.member_kind.startsWith("external_")) {
    const field = h("input", { type: "text", value: name, maxLength: 64, required: true, id: "new-name" });
    parts.push(h("form", {
      class: "row",
      submit: (/** @type {Event} */ event) => {
        event.preventDefault();
        void act(() => room.manage(`${path}/name`, { method: "PATCH", body: { name: field.value } }), "Renamed");
      },
    }, h("label", { for: "new-name" }, "Name"), field, h("button", {}, "Rename")));
  }
  if ((room.isOwner && !self) || (self && member.role !== "owner" && room.key)) {
    const [title, text, yes] = self
      ? ["Leave the room?", "You will need a new invite to come back to a private room.", "Leave"]
      : [`Remove ${name}?`, "They lose access at once, and points of their score.", "Remove"];
    const remove = async () => {
      if (!(await confirm(title, text, yes))) return;
      await act(() => room.manage(path, { method: "DELETE" }), self ? "You left the room" : "Removed");
      if (self) location.assign("/view");
    };
    parts.push(h("button", { type: "button", class: "danger", click: remove }, self ? "Leave room" : "Remove from room"));
  }
  return h("div", { class: "card-actions" }, ...parts);
}
