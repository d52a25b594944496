// The keys that do something, and the sheet that lists them.

import { h } from "./dom.js";
import { dialog } from "./ui.js";

const MAC = /Mac|iP/.test(globalThis.navigator?.platform ?? "");
const COMMAND = MAC ? "⌘" : "Ctrl";

export const COMMAND_K = `${COMMAND} K`;

/** @type {[string, [string[], string][]][]} */
const SHEET = [
  ["Everywhere", [
    [[COMMAND, "K"], "Search, go to a room, do something"],
    [["Alt", "↑ ↓"], "The room above or below"],
    [["Esc"], "Close, leave, cancel"],
    [["?"], "This sheet"],
  ]],
  ["Writing", [
    [["Enter"], "Send"],
    [["Shift", "Enter"], "A new line"],
    [["@"], "Complete a name"],
    [["↑"], "In an empty field: change your last message"],
    [["Esc"], "To the messages"],
  ]],
  ["On a message", [
    [["↑ ↓"], "The message before or after"],
    [["r"], "Answer it"],
    [["t"], "Show its thread"],
    [["+"], "React to it"],
    [["e"], "Change it, if it is yours"],
    [["c"], "Copy a link to it"],
    [["Tab"], "What else can be done with it"],
  ]],
];

export function showShortcuts() {
  if (document.querySelector("dialog.sheet[open]")) return;
  const shown = dialog("Keys", SHEET.map(([title, rows]) => h("section", {}, h("h3", {}, title),
    h("dl", {}, rows.flatMap(([keys, what]) => [
      h("dt", {}, keys.flatMap((key, n) => [n > 0 ? " + " : "", h("kbd", {}, key)])),
      h("dd", {}, what)])))), { wide: true });
  shown.classList.add("sheet");
}

/** Whether somebody writes in a field, where letters are letters. @param {Event} event */
export const isWriting = ({ target }) => target instanceof HTMLElement && target.matches("input, textarea, select, [contenteditable]");

/**
 * @param {{search: () => void, step: (by: 1 | -1) => void}} actions
 */
export function listenForKeys({ search, step }) {
  window.addEventListener("keydown", (event) => {
    const command = MAC ? event.metaKey : event.ctrlKey;
    if (command && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") search();
    else if (event.altKey && !command && event.key === "ArrowDown") step(1);
    else if (event.altKey && !command && event.key === "ArrowUp") step(-1);
    else if (event.key === "?" && !isWriting(event) && !command && !event.altKey) showShortcuts();
    else return;
    event.preventDefault();
  });
}
