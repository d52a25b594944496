// The list of one's rooms, and making a new one.

import { words } from "./api.js";
import { bdi, h, icon } from "./dom.js";
import { asPerson, identity, signInEnded } from "./session.js";
import { dialog, notify } from "./ui.js";

/** @import { MyRoom } from "../types.js" */

/**
 * @param {HTMLElement} place
 * @param {string | null} current
 * @param {(room: string) => void} open
 */
export async function showRooms(place, current, open) {
  if (!identity()) {
    const why = signInEnded() ? "Your sign-in has ended." : "Sign in to see your rooms and make new ones.";
    place.replaceChildren(h("p", { class: "note" }, why), h("a", { href: "/#sign-in" }, "How to sign in"));
    return;
  }
  try {
    const { rooms } = await asPerson("/rooms");
    const rows = rooms.map((/** @type {MyRoom} */ room) => roomRow(room, current, open));
    place.replaceChildren(
      rooms.length > 0 ? h("ul", { class: "rooms" }, rows) : h("p", { class: "note" }, "You are in no room yet."),
      h("button", { type: "button", class: "wide-button", click: () => createRoom(open) }, icon("plus"), "New room"));
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

/** @param {(room: string) => void} open */
export function createRoom(open) {
  const name = h("input", { type: "text", maxLength: 200, required: true, id: "create-name", autofocus: true });
  const visibility = h("select", { id: "create-visibility" }, h("option", { value: "private" }, "Private: members only"), h("option", { value: "public" }, "Public: anybody may read"));
  const form = h("form", {
    class: "grid",
    submit: async (/** @type {Event} */ event) => {
      event.preventDefault();
      try {
        const made = await asPerson("/rooms", { method: "POST", body: { name: name.value, visibility: visibility.value } });
        asked.close();
        open(made.room_id);
      } catch (error) {
        notify(words(error), "error");
      }
    },
  }, h("label", { for: "create-name" }, "Name"), name, h("label", { for: "create-visibility" }, "Who may read"), visibility, h("button", { class: "primary" }, "Make the room"));
  const asked = dialog("New room", [form]);
}
