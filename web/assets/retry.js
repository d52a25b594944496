// Retries: the backoff between them, and telling so to whoever waits.

import { ApiError, words } from "./api.js";
import { h } from "./dom.js";
import { span } from "./time.js";
import { countdown } from "./ui.js";

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 30_000;

/** The backoff before the nth attempt: doubling, with a random part. @param {number} attempt */
export function backoffDelay(attempt) {
  const most = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** attempt);
  return most / 2 + (Math.random() * most) / 2;
}

/** @param {unknown} error @param {number} attempt how many have failed */
export const retryDelay = (error, attempt) =>
  error instanceof ApiError && error.retryAfter ? error.retryAfter * 1000 : backoffDelay(attempt);

/** Whether the same may work later. @param {unknown} error @returns {error is ApiError} */
export const isTransient = (error) => error instanceof ApiError && error.isTransient;

/**
 * Says why something waits and until when, with a button for those who do not want to.
 * @param {string} why
 * @param {number} ms
 * @param {() => void} now
 */
export function retryNote(why, ms, now) {
  // Whoever hears the page is told why, and not each second.
  const left = h("span", { "aria-hidden": "true" });
  countdown(ms / 1000, (seconds) => { left.textContent = seconds > 0 ? `Trying again in ${span(seconds)}.` : "Trying…"; });
  return h("div", { class: "retry" },
    h("span", { role: "status" }, why), " ", left, " ",
    h("button", { type: "button", class: "link", click: now }, "Try now"));
}

/**
 * Waits until the time is over, the network comes back or somebody retries now.
 * @param {number} ms
 * @param {(retryNow: () => void) => void} began is told how to retry at once
 * @param {AbortSignal} [signal]
 * @returns {Promise<void>}
 */
export function backOff(ms, began, signal) {
  return new Promise((resolve) => {
    const ended = new AbortController();
    const end = () => {
      ended.abort();
      clearTimeout(timer);
      resolve();
    };
    const timer = setTimeout(end, ms);
    window.addEventListener("online", end, { signal: ended.signal });
    signal?.addEventListener("abort", end, { signal: ended.signal });
    began(end);
  });
}

/**
 * Retries something until it works, or is refused for good.
 * @template T
 * @param {() => Promise<T>} what
 * @param {(note: HTMLElement) => void} show gets what to tell between two attempts
 * @param {AbortSignal} [signal]
 * @returns {Promise<T>}
 */
export async function withRetries(what, show, signal) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await what();
    } catch (error) {
      if (!isTransient(error) || signal?.aborted) throw error;
      const ms = retryDelay(error, attempt);
      await backOff(ms, (retryNow) => show(retryNote(words(error), ms, retryNow)), signal);
      signal?.throwIfAborted();
    }
  }
}
