// Who the person is: the identity token of a sign-in, kept over reloads and renewed in time.

import { ApiError, call } from "./api.js";
import { keys, onElsewhere, read, readJson, write, writeJson } from "./store.js";

const IDENTITY = "workroom_platform_token";
const NAME = "own_name";
/** Set where a sign-in ended that nobody ended here. */
const ENDED = "sign_in_ended";
/** What is renewed is looked at this often at least, in seconds: a laptop's sleep stops its timers. */
const LOOK_EVERY = 6 * 3600;
/** The server mints one token a minute for each credential. */
const TRY_AGAIN = 60;

/** @typedef {{token: string, userId: string, name: string | null, jti: string, due: number}} Identity */

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

/** When a token is to be renewed: after two thirds of its life. @param {{iat?: number, exp: number}} claims */
export const dueAt = ({ iat, exp }) => exp - (exp - (iat ?? exp)) / 3;

/** Tells with `changed` that somebody signed in or out, here or in another tab; with `renamed` that they have another name. */
export const person = new EventTarget();
onElsewhere(IDENTITY, () => person.dispatchEvent(new Event("changed")));

/** The name that a person chose later than the sign-in. @param {string} userId */
function chosenName(userId) {
  const kept = readJson(NAME);
  return kept?.userId === userId && typeof kept.name === "string" ? kept.name : null;
}

/** @param {string} userId @param {string | null} name */
export function keepName(userId, name) {
  if (name === identity()?.name) return;
  writeJson(NAME, { userId, name });
  person.dispatchEvent(new Event("renamed"));
}

/** The person who is signed in. @returns {Identity | null} */
export function identity() {
  const token = read(IDENTITY);
  if (!token) return null;
  const { user_id, person: signedIn, jti, iat, exp } = claims(token);
  if (typeof user_id !== "string" || !(exp > now())) return null;
  return { token, userId: user_id, name: chosenName(user_id) ?? signedIn?.name ?? null, jti, due: dueAt({ iat, exp }) };
}

/** Whether somebody was signed in here until their sign-in ended by itself. */
export const signInEnded = () => identity() === null && (read(ENDED) !== null || read(IDENTITY) !== null);

/**
 * Signs in with the token of a link. A link that is opened twice finds the person signed in.
 * @param {string} jwt
 */
export async function signIn(jwt) {
  const before = identity();
  try {
    const made = await call("/auth/exchange", { method: "POST", token: jwt });
    write(IDENTITY, made.identity_token);
    write(ENDED, null);
  } catch (error) {
    const says = claims(jwt);
    const same = before && [says.user_id, says.userInfoID, says.sub].map(String).includes(before.userId);
    if (!(same && error instanceof ApiError && error.status === 429)) throw error;
  }
}

/** Signs out, here and on the server. */
export async function signOut() {
  const who = identity();
  // The sign-in goes last: other tabs look at the rest when they hear of it.
  for (const key of [...keys("room_key:"), ...keys("guest:"), ...keys("draft:"), ...keys("outbox:"), ENDED, NAME, IDENTITY]) write(key, null);
  if (who) await call(`/agent-identity/${encodeURIComponent(who.jti)}`, { method: "DELETE", token: who.token }).catch(() => {});
}

/**
 * Asks as the person who is signed in. Where the server knows that sign-in no more, it has ended.
 * @param {string} path
 * @param {import("./api.js").Options} [options]
 */
export async function asPerson(path, options) {
  const token = identity()?.token ?? null;
  try {
    return await call(path, { ...options, token });
  } catch (error) {
    if (token && error instanceof ApiError && error.status === 401 && read(IDENTITY) === token) {
      write(IDENTITY, null);
      write(ENDED, "1");
      person.dispatchEvent(new Event("changed"));
    }
    throw error;
  }
}

/** Makes the sign-in last longer. */
async function renewIdentity() {
  const { identity_token } = await asPerson("/agent-identity/refresh", { method: "POST" });
  // Whoever signed out meanwhile stays so.
  if (identity()) write(IDENTITY, identity_token);
}

let stopRenewing = () => {};

/** Keeps whoever is signed in now so, while the page is open. */
export function keepSignedIn() {
  stopRenewing();
  stopRenewing = renewInTime(() => identity()?.due ?? Number.POSITIVE_INFINITY, renewIdentity);
}

/**
 * Renews something when it is due. What fails is tried again.
 * @param {() => number} due in unix seconds
 * @param {() => Promise<unknown>} renew
 * @returns {() => void} stops it
 */
export function renewInTime(due, renew) {
  const stopped = new AbortController();
  let timer = 0;
  let busy = false;
  const look = async () => {
    if (busy) return;
    busy = true;
    clearTimeout(timer);
    if (due() <= now()) await renew().catch(() => {});
    busy = false;
    const wait = due() > now() ? due() - now() : TRY_AGAIN;
    if (!stopped.signal.aborted) timer = window.setTimeout(look, Math.min(wait, LOOK_EVERY) * 1000);
  };
  document.addEventListener("visibilitychange", look, { signal: stopped.signal });
  void look();
  return () => {
    stopped.abort();
    clearTimeout(timer);
  };
}
