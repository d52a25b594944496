// Trying again: how long to wait, and telling so to whoever waits.

import { ApiError, words } from "./api.js";
import { h } from "./dom.js";
import { span } from "./time.js";
import { countdown } from "./ui.js";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;

/** How long to wait before the nth attempt: doubling, with a random part. @param {number} attempt */
export function waitBefore(attempt) {
  const most = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** attempt);
  return most / 2 + (Math.random() * most) / 2;
}

/** @param {unknown} error @param {number} attempt how many have failed */
export const waitAfter = (error, attempt) =>
  error instanceof ApiError && error.retryAfter ? error.retryAfter * 1000 : waitBefore(attempt);

/** Whether the same may work later. @param {unknown} error @returns {error is ApiError} */
export const passes = (error) => error instanceof ApiError && error.passes;

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
 * Waits until the time is over, the network comes back or somebody hurries.
 * @param {number} ms
 * @param {(hurry: () => void) => void} began is told how to hurry
 * @param {AbortSignal} [signal]
 * @returns {Promise<void>}
 */
export function pause(ms, began, signal) {
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
 * Does something again and again until it works, or is refused for good.
 * @template T
 * @param {() => Promise<T>} what
 * @param {(note: HTMLElement) => void} show gets what to tell between two attempts
 * @param {AbortSignal} [signal]
 * @returns {Promise<T>}
 */
export async function persist(what, show, signal) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await what();
    } catch (error) {
      if (!passes(error) || signal?.aborted) throw error;
      const ms = waitAfter(error, attempt);
      await pause(ms, (hurry) => show(retryNote(words(error), ms, hurry)), signal);
      signal?.throwIfAborted();
    }
  }
}
