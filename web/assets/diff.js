// What has changed between two texts, line by line.

import { h } from "./dom.js";

/** Longer texts are shown one after the other: comparing them would take too long. */
const MOST_LINES = 2000;

/** The lines of a text that may be a diff: what is added and removed stands out. @param {string} text @returns {(Node | string)[]} */
export function diffLines(text) {
  const isDiff = /^(@@|\+\+\+|---|diff )/m.test(text);
  return text.split("\n").flatMap((line, n) => {
    const kind = !isDiff || /^(\+\+\+|---)/.test(line) ? "" : line.startsWith("+") ? "hl-added" : line.startsWith("-") ? "hl-removed" : "";
    return [n > 0 ? "\n" : "", kind ? h("span", { class: kind }, line) : line];
  });
}

/** @typedef {{kind: "same" | "added" | "removed", line: string}} Change */

/**
 * The longest common lines stay; the rest was removed or added.
 * @param {string} before
 * @param {string} after
 * @returns {Change[]}
 */
export function compare(before, after) {
  const [a, b] = [before, after].map((text) => (text === "" ? [] : text.split("\n")));
  const removed = (/** @type {string} */ line) => ({ kind: /** @type {const} */ ("removed"), line });
  const added = (/** @type {string} */ line) => ({ kind: /** @type {const} */ ("added"), line });
  if (a.length > MOST_LINES || b.length > MOST_LINES) return [...a.map(removed), ...b.map(added)];
  // common[i][j]: how many lines a[i…] and b[j…] share.
  const common = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) common[i][j] = a[i] === b[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
  }
  /** @type {Change[]} */
  const changes = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      changes.push({ kind: "same", line: a[i++] });
      j += 1;
    } else if (i < a.length && (j === b.length || common[i + 1][j] >= common[i][j + 1])) changes.push(removed(a[i++]));
    else changes.push(added(b[j++]));
  }
  return changes;
}

/** @param {string} before @param {string} after */
export function diffView(before, after) {
  const signs = { same: " ", added: "+", removed: "-" };
  const classes = { same: undefined, added: "hl-added", removed: "hl-removed" };
  const lines = compare(before, after).flatMap(({ kind, line }, n) => [n > 0 ? "\n" : "", h("span", { class: classes[kind] }, `${signs[kind]} ${line}`)]);
  return h("pre", { class: "text", dir: "auto", tabIndex: 0 }, ...(lines.length > 0 ? lines : ["Nothing was written."]));
}
