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
  get passes() {
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

/**
 * Sends a request and gives the response, whatever its status.
 * @param {string} path
 * @param {Options} [options]
 */
export async function send(path, { method = "GET", token = null, body, headers = {}, signal } = {}) {
  /** @type {Record<string, string>} */
  const all = { ...headers };
  if (token) all.authorization = `Bearer ${token}`;
  if (body !== undefined) all["content-type"] = "application/json";
  try {
    return await fetch(path, {
      method,
      headers: all,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
      cache: "no-store",
      credentials: "omit",
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, "offline", "The server cannot be reached");
  }
}

/**
 * Sends a request and gives its JSON.
 * @param {string} path
 * @param {Options} [options]
 * @returns {Promise<any>}
 */
export async function call(path, options) {
  const response = await send(path, options);
  if (!response.ok) throw await refusal(response);
  return response.json();
}

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
