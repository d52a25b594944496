// Who the person is: the identity token of a sign-in, and the keys of rooms.

import { ApiError, call } from "./api.js";
import { keys, read, readJson, write, writeJson } from "./store.js";

const IDENTITY = "workroom_platform_token";
const RENEW_IDENTITY_BEFORE = 30 * 86_400;
const RENEW_KEY_BEFORE = 2 * 86_400;

/** @typedef {{token: string, userId: string, name: string | null, jti: string, exp: number}} Identity */
/** @typedef {{token: string, userId: string, canPost: boolean, own: boolean, exp: number}} RoomKey */

/** @returns {number} in unix seconds */
export const now = () => Math.floor(Date.now() / 1000);

/** What a token says of itself. The server checks it; this only reads it. @param {string} token @returns {any} */
export function claims(token) {
  try {
    const middle = (token.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/");
    const bytes = Uint8Array.from(atob(middle), (c) => c.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes)) ?? {};
  } catch {
    return {};
  }
}

/** The person who is signed in. @returns {Identity | null} */
export function identity() {
  const token = read(IDENTITY);
  if (!token) return null;
  const { user_id, person, jti, exp } = claims(token);
  if (typeof user_id !== "string" || !(exp > now())) return null;
  return { token, userId: user_id, name: person?.name ?? null, jti, exp };
}

/**
 * Signs in with the token of a link. A link that is opened twice finds the person signed in.
 * @param {string} jwt
 */
export async function signIn(jwt) {
  const before = identity();
  try {
    const made = await call("/auth/exchange", { method: "POST", token: jwt });
    write(IDENTITY, made.identity_token);
    for (const key of keys("room_key:")) {
      if (readJson(key)?.userId !== made.user_id) write(key, null);
    }
  } catch (error) {
    const says = claims(jwt);
    const same = before && [says.user_id, says.userInfoID, says.sub].map(String).includes(before.userId);
    if (!(same && error instanceof ApiError && error.status === 429)) throw error;
  }
}

/** Signs out, here and on the server. */
export async function signOut() {
  const who = identity();
  for (const key of [IDENTITY, ...keys("room_key:"), ...keys("draft:"), ...keys("outbox:")]) write(key, null);
  if (who) await call(`/agent-identity/${encodeURIComponent(who.jti)}`, { method: "DELETE", token: who.token }).catch(() => {});
}

/** Makes a sign-in that nears its end last longer. */
export async function renewIdentity() {
  const who = identity();
  if (!who || who.exp - now() > RENEW_IDENTITY_BEFORE) return;
  try {
    const made = await call("/agent-identity/refresh", { method: "POST", token: who.token });
    write(IDENTITY, made.identity_token);
  } catch (error) {
    if (error instanceof ApiError && error.code === "identity_invalid") write(IDENTITY, null);
  }
}

/**
 * Keeps a room's key. One that came with a link is somebody's to revoke, so it is never renewed.
 * @param {string} room
 * @param {string} token
 * @param {boolean} own
 * @returns {RoomKey}
 */
export function keepKey(room, token, own) {
  const { user_id, scope, exp } = claims(token);
  const key = { token, userId: String(user_id), canPost: scope === "view+post", own, exp: Number(exp) || 0 };
  writeJson(`room_key:${room}`, key);
  return key;
}

/** The key kept for a room. @param {string} room @returns {RoomKey | null} */
export function keptKey(room) {
  const key = readJson(`room_key:${room}`);
  return key && key.exp > now() + 30 ? key : null;
}

/** @param {string} room */
export function forgetKey(room) {
  write(`room_key:${room}`, null);
}

/** Makes a key of one's own that nears its end last longer. @param {string} room */
export async function renewKey(room) {
  const key = keptKey(room);
  if (!key?.own || key.exp - now() > RENEW_KEY_BEFORE) return;
  await reissue(room, key.userId, key.token).catch(() => {});
}

/**
 * A key for a room that the person who is signed in belongs to. The server mints one a minute
 * for each credential, so another room's key may stand in.
 * @param {string} room
 * @param {Identity} who
 * @returns {Promise<RoomKey>}
 */
export async function mintKey(room, who) {
  const others = keys("room_key:")
    .map((key) => /** @type {RoomKey | null} */ (readJson(key)))
    .filter((key) => key?.own && key.userId === who.userId && key.exp > now());
  let refused = new ApiError(0, "offline", "");
  for (const token of [who.token, ...others.map((key) => key?.token ?? "")]) {
    try {
      return await reissue(room, who.userId, token);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 429) throw error;
      refused = error;
    }
  }
  try {
    const made = await call(`/rooms/${room}/room-keys`, { method: "POST", token: who.token, body: { for_user_id: who.userId } });
    return keepKey(room, made.token, true);
  } catch {
    throw refused;
  }
}

/** @param {string} room @param {string} user @param {string} token */
async function reissue(room, user, token) {
  const made = await call(`/rooms/${room}/members/${encodeURIComponent(user)}/reissue-token`, { method: "POST", token });
  return keepKey(room, made.member_token, true);
}
