// Calling the server.

/** A call that was refused or failed. */
export class ApiError extends Error {
  /**
   * @param {number} status 0 where the server could not be reached
   * @param {string} code
   * @param {string} message
   * @param {number | null} retryAfter in seconds
   */
  constructor(status, code, message, retryAfter = null) {
    super(message);
    this.status = status;
    this.code = code;
    this.retryAfter = retryAfter;
  }

  /** Whether the same call may succeed later. */
  get isTransient() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/** @param {unknown} error @param {...string} codes */
export const isCode = (error, ...codes) => error instanceof ApiError && codes.includes(error.code);

/**
 * @typedef {object} Options
 * @property {string} [method]
 * @property {string | null} [token]
 * @property {unknown} [body]
 * @property {Record<string, string>} [headers]
 * @property {AbortSignal} [signal]
 */

/** How far the server's clock is ahead of this machine's, in milliseconds. */
let ahead = 0;

/** The server's time, in unix seconds. */
export const serverNow = () => (Date.now() + ahead) / 1000;

/**
 * Sends a request and gives the response, whatever its status.
 * @param {string} path
 * @param {Options} [options]
 */
export async function send(path, { method = "GET", token = null, body, headers = {}, signal } = {}) {
  /** @type {Record<string, string>} */
  const all = { ...headers };
  if (token) all.authorization = `Bearer ${token}`;
  const raw = body instanceof Blob;
  if (body !== undefined) all["content-type"] = raw ? body.type : "application/json";
  try {
    const response = await fetch(path, {
      method,
      headers: all,
      body: body === undefined || raw ? body : JSON.stringify(body),
      signal,
      cache: "no-store",
      credentials: "omit",
    });
    const told = Date.parse(response.headers.get("date") ?? "");
    if (told) ahead = told - Date.now();
    return response;
  } catch (error) {
    if (signal?.aborted && signal.reason?.name !== "TimeoutError") throw error;
    throw unreachable();
  }
}

/** An answer that takes longer will not come: the network may be gone without a word. */
const ANSWER_MS = 30_000;

/**
 * Sends a request and gives its JSON.
 * @param {string} path
 * @param {Options} [options]
 * @returns {Promise<any>}
 */
export async function call(path, options) {
  return answer(await send(path, inTime(options)));
}

/** Options with a deadline, for what is answered at once. @param {Options} [options] @returns {Options} */
export function inTime(options = {}) {
  const deadline = AbortSignal.timeout(ANSWER_MS);
  return { ...options, signal: options.signal ? AbortSignal.any([options.signal, deadline]) : deadline };
}

/** The JSON of a response, or what it says against the request. @param {Response} response @returns {Promise<any>} */
export async function answer(response) {
  if (!response.ok) throw await refusal(response);
  return response.json().catch(() => { throw unreachable(); });
}

const unreachable = () => new ApiError(0, "offline", "The server cannot be reached");

/** What a refused response says. @param {Response} response */
export async function refusal(response) {
  const body = await response.json().catch(() => ({}));
  const wait = Number.parseInt(response.headers.get("retry-after") ?? "", 10);
  return new ApiError(
    response.status,
    typeof body.error === "string" ? body.error : "failed",
    typeof body.message === "string" ? body.message : `The server answered ${response.status}`,
    Number.isFinite(wait) ? wait : null,
  );
}

/** Words for people where the server's are for programs. @type {Record<string, string>} */
const WORDS = {
  offline: "The server cannot be reached. Check your connection.",
  archived: "This room is archived: it can be read, but nothing can be changed.",
  key_invalid: "Your access to this room has ended. Open your link again, or sign in.",
  missing_bearer: "You are not signed in. Sign in with a link.",
  identity_invalid: "You are signed out. Sign in again with a new link.",
  token_invalid: "This link has expired or is not complete. Ask for a new one.",
  key_scope_insufficient: "This link lets you read the room, but not do this.",
  not_a_member: "You are not a member of this room.",
  room_full: "The room is full.",
  too_large: "This is too long: a message has at most 4 KB.",
  internal: "The server failed. Try again in a moment.",
};

/** What to tell a person about an error. @param {unknown} error */
export function words(error) {
  if (!(error instanceof ApiError)) return "Something went wrong on this page. Reload it.";
  return WORDS[error.code] ?? error.message;
}
