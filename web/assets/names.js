// Whom an @ in a text means, as the server reads it.

/** @import { Room } from "./room.js" */

/** What stands after an @, up to the end of its word. */
const HANDLE = /(?<![\p{L}\p{N}])@([\p{L}\p{N}_.-]{2,64})/gu;

/**
 * Where a text mentions somebody: whole names first, then parts that fit one member alone.
 * @param {string} text
 * @param {Room} room
 * @returns {{from: number, to: number}[]} in their order
 */
export function mentionsIn(text, room) {
  const whole = [...wholeNames(text, room.mentionable)];
  const inside = (/** @type {number} */ at) => whole.some(({ from, to }) => at >= from && at < to);
  const parts = [...text.matchAll(HANDLE)]
    .filter(({ index, 1: handle }) => !inside(index) && fitsOne(handle, room))
    .map(({ index, 0: all }) => ({ from: index, to: index + all.replace(/[.-]+$/, "").length }));
  return [...whole, ...parts].sort((a, b) => a.from - b.from);
}

/** @param {string} text @param {string[]} names */
function* wholeNames(text, names) {
  const words = [...names].sort((a, b) => b.length - a.length).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (words.length === 0) return;
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])@(?:${words.join("|")})(?![\\p{L}\\p{N}_-])`, "giu");
  for (const match of text.matchAll(pattern)) yield { from: match.index, to: match.index + match[0].length };
}

/** Whether some words of one member's name or id, beside each other, are these letters. @param {string} handle @param {Room} room */
function fitsOne(handle, room) {
  const wanted = letters(handle);
  if (wanted.length < 2) return false;
  const those = room.members.size > 0
    ? [...room.members.values()].map((member) => [member.user_name ?? "", member.user_id.replace(/^ext_/, "")])
    : [...room.named.keys()].map((name) => [name]);
  return those.filter((names) => names.some((name) => hasWords(name, wanted))).length === 1;
}

/** @param {string} text */
const letters = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");

/** @param {string} name @param {string} wanted */
function hasWords(name, wanted) {
  const words = name.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean);
  return words.some((_, first) => words.some((__, last) => last >= first && words.slice(first, last + 1).join("") === wanted));
}
