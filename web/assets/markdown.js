// A small renderer for words that are still being written: the common marks of Markdown, made of
// elements and text, never of markup. The finished message comes rendered from the server.

import { h } from "./dom.js";

/** @param {string} text @returns {Node[]} */
export function rendered(text) {
  const lines = text.split("\n");
  /** @type {Node[]} */
  const blocks = [];
  for (let at = 0; at < lines.length; ) {
    const fence = /^\s*(`{3,}|~{3,})/.exec(lines[at]);
    const item = ITEM.exec(lines[at]);
    const heading = /^#{1,6}\s+(.*)$/.exec(lines[at]);
    if (fence) {
      let end = at + 1;
      while (end < lines.length && !lines[end].trim().startsWith(fence[1])) end += 1;
      blocks.push(h("pre", {}, h("code", {}, lines.slice(at + 1, end).join("\n"))));
      at = end + 1;
    } else if (item) {
      const end = endOf(lines, at, (line) => ITEM.test(line) || /^\s{2,}\S/.test(line));
      blocks.push(list(lines.slice(at, end), /\d/.test(item[1])));
      at = end;
    } else if (heading) {
      blocks.push(h("h4", {}, ...inline(heading[1])));
      at += 1;
    } else if (lines[at].startsWith(">")) {
      const end = endOf(lines, at, (line) => line.startsWith(">"));
      blocks.push(h("blockquote", {}, ...inline(lines.slice(at, end).map((line) => line.replace(/^>\s?/, "")).join("\n"))));
      at = end;
    } else if (lines[at].trim() === "") {
      at += 1;
    } else {
      const end = endOf(lines, at, (line) => line.trim() !== "" && !BEGINS.test(line));
      blocks.push(h("p", {}, ...inline(lines.slice(at, end).join("\n"))));
      at = end;
    }
  }
  return blocks;
}

const ITEM = /^\s*([-*+]|\d{1,9}[.)])\s+(.*)$/;
/** What ends a paragraph. */
const BEGINS = /^(\s*(`{3,}|~{3,})|#{1,6}\s|>|\s*([-*+]|\d{1,9}[.)])\s)/;

/** Where the lines after the first no longer belong to it. @param {string[]} lines @param {number} from @param {(line: string) => boolean} belongs */
function endOf(lines, from, belongs) {
  let end = from + 1;
  while (end < lines.length && belongs(lines[end])) end += 1;
  return end;
}

/** @param {string[]} lines @param {boolean} numbered */
function list(lines, numbered) {
  /** @type {string[]} */
  const items = [];
  for (const line of lines) {
    const item = ITEM.exec(line);
    if (item) items.push(item[2]);
    else items.push(`${items.pop() ?? ""}\n${line.trim()}`);
  }
  return h(numbered ? "ol" : "ul", {}, items.map((text) => h("li", {}, ...inline(text))));
}

/** Each mark ends on the line that it begins on, so no text makes this slow. */
const MARKS = /(`[^`\n]+`)|(\*\*[^*\n]+\*\*)|(\*[^*\s\n][^*\n]*\*)|(https?:\/\/[^\s<>()]+)/g;

/** @param {string} text @returns {(Node | string)[]} */
function inline(text) {
  /** @type {(Node | string)[]} */
  const parts = [];
  let from = 0;
  for (const match of text.matchAll(MARKS)) {
    const [all, code, strong, emphasis, link] = match;
    parts.push(text.slice(from, match.index));
    if (code) parts.push(h("code", {}, code.slice(1, -1)));
    else if (strong) parts.push(h("strong", {}, strong.slice(2, -2)));
    else if (emphasis) parts.push(h("em", {}, emphasis.slice(1, -1)));
    else parts.push(h("a", { href: link, target: "_blank", rel: "noopener noreferrer nofollow" }, link));
    from = match.index + all.length;
  }
  return [...parts, text.slice(from)];
}
