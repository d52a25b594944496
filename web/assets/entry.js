// Ways in: a sign-in link, an invite, a room's link. Tokens never stay in the address.

import { ApiError, call, isCode, refusal, send, words } from "./api.js";
import { bdi, h } from "./dom.js";
import { forgetKeysOfOthers, keepGuestKey, keepKey, keptKey, rivalOf } from "./keys.js";
import { asPerson, claims, identity, signIn } from "./session.js";
import { confirm, notify } from "./ui.js";

/** @import { InviteSummary } from "../types.js" */

/**
 * Takes what the address holds and leaves only the room in it.
 * @returns {{room: string | null, seq: number | null, token: string | null, invite: string | null, userJwt: string | null}}
 */
export function readAddress() {
  const query = new URLSearchParams(location.search);
  const hash = new URLSearchParams(location.hash.slice(1));
  const room = query.get("room");
  history.replaceState(null, "", room ? `/view?room=${encodeURIComponent(room)}` : "/view");
  return { room, seq: Number(query.get("seq")) || null, token: query.get("token"), invite: hash.get("invite"), userJwt: hash.get("user_jwt") };
}

/**
 * Keeps the key that a link brings. Where there is one already, the person says which it shall be.
 * @param {string} room
 * @param {string} token
 */
export async function takeKey(room, token) {
  const rival = rivalOf(room, token);
  const { user_id: brought } = claims(token);
  if (rival !== null && rival === brought && keptKey(room)?.own) return;
  if (rival !== null && !(await confirm(
    "This link brings another key",
    `In this browser you are ${shortened(rival)}. The link’s key belongs to ${shortened(brought)}: with it you read and write in this room as them, and a key of your own to it is forgotten. Use it only if you trust whoever sent you the link.`,
    "Use the link’s key",
    "Keep mine",
  ))) return;
  keepKey(room, token, false);
}

/** An id that somebody may have made up. @param {unknown} id */
const shortened = (id) => (typeof id === "string" ? id.slice(0, 60).replace(/[^\w.@-]/g, "") : "nobody known");

/** Signs in with the token of a link; gives why it did not work. @param {string} jwt @returns {Promise<string | null>} */
export async function enter(jwt) {
  try {
    await signIn(jwt);
    const who = identity();
    if (who) forgetKeysOfOthers(who.userId);
    return null;
  } catch (error) {
    return words(error);
  }
}

/**
 * Asks an invited person how to join.
 * @param {string} code
 * @param {(room: string) => void} open
 * @returns {Promise<Node>}
 */
export async function invitation(code, open) {
  const path = `/i/${encodeURIComponent(code)}`;
  const response = await send(path);
  if (!response.ok) throw await refusal(response);
  const invite = await response.text();
  const summary = /** @type {InviteSummary} */ (await call(`${path}/summary`));
  const { room_id: room, display_name } = claims(invite);
  if (typeof room !== "string") throw new ApiError(404, "not_found", "This invite leads to no room");
  const who = identity();
  const name = h("input", { type: "text", maxLength: 64, required: true, id: "guest-name", value: display_name ?? "", readOnly: Boolean(display_name), autocomplete: "nickname" });
  const join = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const id = `guest-${Array.from(crypto.getRandomValues(new Uint8Array(6)), (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
    const guest = { client_kind: "human", user_id: id, display_name: name.value };
    try {
      const body = { invite_code: invite, adapter_type: "pull", ...(who ? {} : guest) };
      const joined = await (who ? asPerson : call)(`/rooms/${room}/join`, { method: "POST", body });
      if (who) keepKey(room, joined.member_token, true);
      else await keepGuestKey(room, joined.member_token);
      open(room);
    } catch (error) {
      if (isCode(error, "already_member")) open(room);
      else notify(words(error), "error");
    }
  };
  return h("form", { class: "entry", submit: join },
    h("h1", {}, "You are invited to ", bdi(summary.room_name)),
    h("p", {}, ...(summary.invited_by ? [bdi(summary.invited_by), " invites you. "] : []), ...whoIsThere(summary)),
    who ? h("p", {}, "You join as ", bdi(who.name ?? who.userId), ".") : h("label", { for: "guest-name" }, "Your name in the room"),
    who ? null : name,
    h("button", { class: "primary" }, "Join the room"));
}

/** Members that are named. */
const NAMED = 5;

/** @param {InviteSummary} summary */
function whoIsThere({ member_names, member_count }) {
  const names = member_names.slice(0, NAMED);
  const more = member_count - names.length;
  if (names.length === 0) return ["Nobody is there yet."];
  return ["In the room: ", ...names.flatMap((name, n) => [n > 0 ? ", " : "", bdi(name)]), more > 0 ? ` and ${more} more.` : "."];
}

/**
 * What is shown where there is no room to show.
 * @param {string} title
 * @param {...(Node | string)} content
 */
export function bootError(title, ...content) {
  return h("div", { class: "entry", role: "alert" }, h("h1", {}, title), ...content, h("p", {}, h("a", { class: "button", href: "/" }, "To the front page")));
}
