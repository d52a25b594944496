// The keys of rooms: what reading and writing take.

import { ApiError, call } from "./api.js";
import { asPerson, claims, dueAt, identity, now } from "./session.js";
import { keys, readJson, write, writeJson } from "./store.js";

/** @typedef {{token: string, userId: string, canPost: boolean, own: boolean, exp: number, due: number}} RoomKey */

/** @param {string} token @param {boolean} own @returns {RoomKey} */
function keyOf(token, own) {
  const { user_id, scope, iat, exp } = claims(token);
  const end = Number(exp) || 0;
  return { token, userId: String(user_id), canPost: scope === "view+post", own, exp: end, due: dueAt({ iat, exp: end }) };
}

/**
 * Keeps a room's key. One that came with a link is somebody's to revoke, so it is not one's own.
 * @param {string} room
 * @param {string} token
 * @param {boolean} own
 */
export function keepKey(room, token, own) {
  writeJson(`room_key:${room}`, { token, own });
  return keyOf(token, own);
}

/**
 * Keeps the key of a guest, and a token that gets them another: they have no sign-in, and may come
 * back when the key has ended.
 * @param {string} room
 * @param {string} token
 */
export async function keepGuestKey(room, token) {
  const key = keepKey(room, token, true);
  const made = await call("/agent-identity", { method: "POST", token }).catch(() => null);
  if (made) writeJson(`guest:${room}:${key.userId}`, made.identity_token);
}

/** The key kept for a room, also where it has ended. @param {string} room @returns {RoomKey | null} */
function stored(room) {
  const kept = readJson(`room_key:${room}`);
  return typeof kept?.token === "string" ? keyOf(kept.token, kept.own === true) : null;
}

/** The key kept for a room. @param {string} room @returns {RoomKey | null} */
export function keptKey(room) {
  const key = stored(room);
  return key && key.exp > now() ? key : null;
}

/**
 * Whose key a link's would take the place of: the one that is kept, or the one that whoever is
 * signed in gets for the asking. A link of somebody else's must not make people speak as them.
 * @param {string} room
 * @param {string} token the link's
 */
export function rivalOf(room, token) {
  const kept = stored(room);
  if (kept?.token === token) return null;
  // One's own is renewed when it has ended.
  if (kept && (kept.exp > now() || (kept.own && kept.exp > 0))) return kept.userId;
  const who = identity()?.userId ?? null;
  return who === claims(token).user_id ? null : who;
}

/** Whose key is kept for a room, be it that it has ended. @param {string} room */
export const holderOf = (room) => stored(room)?.userId ?? null;

/** Whether there was a key to a room that has ended. @param {string} room */
export const keyEnded = (room) => (stored(room)?.exp ?? 0) > 0 && keptKey(room) === null;

/** @param {string} room */
export function forgetKey(room) {
  write(`room_key:${room}`, null);
}

/** Another person's keys are not for whoever signs in. @param {string} userId */
export function forgetKeysOfOthers(userId) {
  for (const key of keys("room_key:")) {
    const room = key.slice("room_key:".length);
    if (holderOf(room) !== userId) forgetKey(room);
  }
  for (const token of keys("guest:")) write(token, null);
}

/**
 * A new key for a room that this user belongs to. The server mints one a minute for each
 * credential, so another room's key may stand in for the sign-in.
 * @param {string} room
 * @param {string} userId
 * @returns {Promise<RoomKey>}
 */
export async function mintKey(room, userId) {
  const path = `/rooms/${room}/members/${encodeURIComponent(userId)}/reissue-token`;
  const signedIn = identity()?.userId === userId;
  const guest = /** @type {string | null} */ (readJson(`guest:${room}:${userId}`));
  const own = keys("room_key:")
    .map((key) => keptKey(key.slice("room_key:".length)))
    .filter((key) => key?.own && key.userId === userId);
  const ways = [
    ...(signedIn ? [() => asPerson(path, { method: "POST" })] : []),
    ...(guest ? [() => call(path, { method: "POST", token: guest })] : []),
    ...own.map((key) => () => call(path, { method: "POST", token: key?.token })),
  ];
  let refused = new ApiError(401, "key_invalid", "There is nothing to get a key with");
  for (const way of ways) {
    try {
      return keepKey(room, (await way()).member_token, true);
    } catch (error) {
      // A key that this page had to make with room-keys is one to be shared: it mints none.
      if (error instanceof ApiError && error.code === "key_scope_insufficient") continue;
      if (!(error instanceof ApiError) || (error.status !== 429 && error.status !== 401)) throw error;
      refused = error;
    }
  }
  if (!signedIn || refused.status !== 429) throw refused;
  const made = await asPerson(`/rooms/${room}/room-keys`, { method: "POST", body: { for_user_id: userId } }).catch(() => null);
  if (!made) throw refused;
  return keepKey(room, made.token, true);
}

/**
 * A key in place of one that has ended or soon will: another tab may have it already.
 * @param {string} room
 * @param {RoomKey} old
 */
export async function anotherKey(room, old) {
  const kept = keptKey(room);
  return kept?.own && kept.userId === old.userId && kept.token !== old.token ? kept : mintKey(room, old.userId);
}
