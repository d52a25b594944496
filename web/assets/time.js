// Dates and times in the reader's own manner.

/** The languages that the reader has chosen, which need not be that of the browser itself. */
const LOCALES = [...(globalThis.navigator?.languages ?? [])];

const TIME = new Intl.DateTimeFormat(LOCALES, { timeStyle: "short" });
const DAY = new Intl.DateTimeFormat(LOCALES, { weekday: "long", day: "numeric", month: "long" });
const DAY_AND_YEAR = new Intl.DateTimeFormat(LOCALES, { day: "numeric", month: "long", year: "numeric" });
const FULL = new Intl.DateTimeFormat(LOCALES, { dateStyle: "medium", timeStyle: "short" });

/** @param {number} seconds */
const date = (seconds) => new Date(seconds * 1000);

/** @param {number} seconds */
export const clock = (seconds) => TIME.format(date(seconds));

/** @param {number} seconds */
export const full = (seconds) => FULL.format(date(seconds));

/** @param {number} seconds */
export const iso = (seconds) => date(seconds).toISOString();

/** @param {number} a @param {number} b */
export const sameDay = (a, b) => date(a).toDateString() === date(b).toDateString();

/** "Today", "Yesterday", or which day it was. @param {number} seconds */
export function day(seconds) {
  const at = date(seconds);
  const today = new Date();
  const yesterday = new Date(today.getFullYear(), today.getMonth(), today.getDate() - 1);
  if (at.toDateString() === today.toDateString()) return "Today";
  if (at.toDateString() === yesterday.toDateString()) return "Yesterday";
  return at.getFullYear() === today.getFullYear() ? DAY.format(at) : DAY_AND_YEAR.format(at);
}

/** How long that is, in words. @param {number} seconds */
export function span(seconds) {
  if (seconds < 90) return `${Math.ceil(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}

/** How long until then, in words. @param {number} seconds */
export function until(seconds) {
  const left = seconds - Date.now() / 1000;
  return left <= 0 ? "ended" : `in ${span(left)}`;
}

/** How long something has taken, as on a stopwatch. @param {number} seconds */
export function stopwatch(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}
