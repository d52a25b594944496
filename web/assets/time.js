// Dates and times in the reader's own manner.

const TIME = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const DAY = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });
const DAY_AND_YEAR = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "long", year: "numeric" });
const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

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

/** How long until then, in words. @param {number} seconds */
export function until(seconds) {
  const left = seconds - Date.now() / 1000;
  if (left <= 0) return "ended";
  if (left < 90) return `in ${Math.ceil(left)} s`;
  if (left < 5400) return `in ${Math.round(left / 60)} min`;
  if (left < 172_800) return `in ${Math.round(left / 3600)} h`;
  return `in ${Math.round(left / 86_400)} days`;
}
