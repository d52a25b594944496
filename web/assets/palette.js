// Search, rooms and commands in one place.

import { ApiError, words } from "./api.js";
import { bdi, h, icon } from "./dom.js";
import { asPerson, identity } from "./session.js";
import { day } from "./time.js";
import { dialog } from "./ui.js";

/** @import { MyRoom, SearchResult } from "../types.js" */
/** @import { Room } from "./room.js" */

const MOST_ROOMS = 6;
/** Words that are still being typed are not searched for. */
const SETTLED_MS = 200;
const LEAST_CHARS = 2;

/** @typedef {{icon: string, words: (Node | string)[], do: () => void}} Choice */

/**
 * @param {object} options
 * @param {Room | null} options.room the one that is open
 * @param {MyRoom[]} options.rooms
 * @param {{title: string, icon: string, do: () => void}[]} options.commands
 * @param {(room: string, seq?: number) => void} options.open
 */
export function openPalette({ room, rooms, commands, open }) {
  if (document.querySelector("dialog.palette[open]")) return;
  /** @type {Choice[]} */
  let choices = [];
  let chosen = 0;
  let asked = new AbortController();
  const here = h("input", { type: "checkbox", id: "palette-here" });
  const field = h("input", {
    type: "text", id: "palette-field", role: "combobox", autofocus: true, autocomplete: "off", spellcheck: false, placeholder: "Search, or go to a room", "aria-label": "Search, rooms and commands",
    "aria-expanded": "true", "aria-controls": "palette-list", "aria-autocomplete": "list", input: () => look(),
  });
  const list = h("ul", { id: "palette-list", class: "choices", role: "listbox", "aria-label": "Results" });
  const note = h("p", { class: "note", role: "status" });
  const page = dialog("Search", [
    field, list, note,
    room && identity() ? h("div", { class: "row" }, here, h("label", { for: "palette-here" }, "Only in this room")) : "",
    h("p", { class: "note hint" }, "Narrow it down with ", ...["from:alice", "in:plans", "has:link", "is:agent", "before:2026-01-31"].flatMap((filter) => [h("code", {}, filter), " "])),
  ], { wide: true });
  page.classList.add("palette");
  here.onchange = () => look();
  page.addEventListener("close", () => asked.abort());
  page.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && choices.length > 0) choose((chosen + step + choices.length) % choices.length);
    else if (event.key === "Enter" && event.target === field) choices[chosen] && take(choices[chosen]);
    else return;
    event.preventDefault();
  });

  const take = (/** @type {Choice} */ choice) => {
    page.close();
    choice.do();
  };

  const show = (/** @type {Choice[]} */ found) => {
    choices = found;
    list.replaceChildren(...found.map((choice, at) => h("li", { id: `choice-${at}`, role: "option", click: () => take(choice) }, icon(choice.icon), h("span", { class: "grow" }, ...choice.words))));
    choose(0);
  };

  const choose = (/** @type {number} */ at) => {
    chosen = at;
    [...list.children].forEach((item, n) => item.setAttribute("aria-selected", String(n === at)));
    if (choices.length > 0) field.setAttribute("aria-activedescendant", `choice-${at}`);
    else field.removeAttribute("aria-activedescendant");
    list.children[at]?.scrollIntoView({ block: "nearest" });
  };

  const look = async () => {
    asked.abort();
    const { signal } = (asked = new AbortController());
    const text = field.value.trim();
    const known = [...places(text, rooms, open), ...deeds(text, commands)];
    show(known);
    note.textContent = "";
    if (text.length < LEAST_CHARS || (!identity() && !room?.key)) return;
    await new Promise((resolve) => setTimeout(resolve, SETTLED_MS));
    if (signal.aborted) return;
    try {
      const results = await search(text, here.checked || !identity() ? room : null, signal);
      if (signal.aborted) return;
      show([...known, ...results.map((result) => message(result, open))]);
      if (results.length === 0) note.textContent = known.length > 0 ? "No message says so." : "Nothing was found.";
    } catch (error) {
      if (!signal.aborted) note.textContent = error instanceof ApiError ? words(error) : "";
    }
  };
  void look();
}

/** @param {string} text @param {MyRoom[]} rooms @param {(room: string) => void} open @returns {Choice[]} */
function places(text, rooms, open) {
  const found = rooms.filter(({ name }) => name.toLowerCase().includes(text.toLowerCase()));
  return found.slice(0, MOST_ROOMS).map(({ room_id, name }) => ({ icon: "thread", words: [bdi(name)], do: () => open(room_id) }));
}

/** @param {string} text @param {{title: string, icon: string, do: () => void}[]} commands @returns {Choice[]} */
function deeds(text, commands) {
  return commands
    .filter(({ title }) => title.toLowerCase().includes(text.toLowerCase()))
    .map((command) => ({ icon: command.icon, words: [command.title], do: command.do }));
}

/** @param {string} text @param {Room | null} room nothing for all of them @param {AbortSignal} signal @returns {Promise<SearchResult[]>} */
async function search(text, room, signal) {
  const path = `/search?q=${encodeURIComponent(text)}`;
  const { results } = room ? await room.call(path, { signal }) : await asPerson(path, { signal });
  return results;
}

/** @param {SearchResult} result @param {(room: string, seq: number) => void} open @returns {Choice} */
function message(result, open) {
  const snippet = result.snippet.map(({ text, matched }) => (matched ? h("mark", {}, text) : text));
  return {
    icon: "search",
    words: [
      h("small", {}, bdi(result.sender_user_name ?? result.sender_user_id), " in ", bdi(result.room_name), ` · ${day(result.created_at)}`),
      h("span", { class: "preview", dir: "auto" }, ...snippet)],
    do: () => open(result.room_id, result.seq),
  };
}
