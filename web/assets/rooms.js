// The list of one's rooms, and making a new one.

import { call, words } from "./api.js";
import { bdi, h, icon } from "./dom.js";
import { dialog, notify } from "./ui.js";

/** @import { MyRoom } from "../types.js" */
/** @import { Identity } from "./session.js" */

/**
 * @param {HTMLElement} place
 * @param {Identity | null} who
 * @param {string | null} current
 * @param {(room: string) => void} open
 */
export async function showRooms(place, who, current, open) {
  if (!who) {
    place.replaceChildren(h("p", { class: "note" }, "Sign in to see your rooms and make new ones."), h("a", { href: "/" }, "How to sign in"));
    return;
  }
  try {
    const { rooms } = await call("/rooms", { token: who.token });
    const rows = rooms.map((/** @type {MyRoom} */ room) => roomRow(room, current, open));
    place.replaceChildren(
      rooms.length > 0 ? h("ul", { class: "rooms" }, rows) : h("p", { class: "note" }, "You are in no room yet."),
      h("button", { type: "button", class: "wide-button", click: () => createRoom(who, open) }, icon("plus"), "New room"));
  } catch (error) {
    place.replaceChildren(h("p", { class: "note", role: "alert" }, words(error)));
  }
}

/** @param {MyRoom} room @param {string | null} current @param {(room: string) => void} open */
function roomRow(room, current, open) {
  const follow = (/** @type {MouseEvent} */ event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    open(room.room_id);
  };
  return h("li", {},
    h("a", { href: `/view?room=${room.room_id}`, class: "cut", "aria-current": room.room_id === current ? "page" : undefined, click: follow },
      bdi(room.name), room.archived && h("small", {}, " archived")));
}

/** @param {Identity} who @param {(room: string) => void} open */
export function createRoom(who, open) {
  const name = h("input", { type: "text", maxLength: 200, required: true, id: "create-name", autofocus: true });
  const visibility = h("select", { id: "create-visibility" }, h("option", { value: "private" }, "Private: members only"), h("option", { value: "public" }, "Public: anybody may read"));
  const form = h("form", {
    class: "grid",
    submit: async (/** @type {Event} */ event) => {
      event.preventDefault();
      try {
        const made = await call("/rooms", { method: "POST", token: who.token, body: { name: name.value, visibility: visibility.value } });
        asked.close();
        open(made.room_id);
      } catch (error) {
        notify(words(error), "error");
      }
    },
  }, h("label", { for: "create-name" }, "Name"), name, h("label", { for: "create-visibility" }, "Who may read"), visibility, h("button", { class: "primary" }, "Make the room"));
  const asked = dialog("New room", [form]);
}
