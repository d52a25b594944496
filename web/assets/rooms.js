// The list of one's rooms, and making a new one.

import { words } from "./api.js";
import { bdi, h, icon, redraw } from "./dom.js";
import { withRetries } from "./retry.js";
import { asPerson, identity, signInEnded } from "./session.js";
import { dialog, notify } from "./ui.js";

/** @import { InboxRoom } from "../types.js" */
/** @import { Inbox } from "./inbox.js" */

export class RoomList {
  /** @type {string | null} */ current = null;
  #loading = new AbortController();

  /** @param {HTMLElement} place @param {Inbox} inbox @param {(room: string) => void} open */
  constructor(place, inbox, open) {
    this.place = place;
    this.inbox = inbox;
    this.open = open;
    inbox.addEventListener("changed", () => identity() && this.#draw());
  }

  /** Those where something was said last come first. */
  get rooms() {
    return this.inbox.rooms;
  }

  /** Brings the list up to date. What was known stays until more is known. @param {string | null} current the room that is open */
  async show(current) {
    this.current = current;
    this.#loading.abort();
    const loading = new AbortController();
    this.#loading = loading;
    if (!identity()) {
      this.inbox.clear();
      const why = signInEnded() ? "Your sign-in has ended." : "Sign in to see your rooms and make new ones.";
      this.place.replaceChildren(h("p", { class: "note" }, why), h("a", { href: "/#sign-in" }, "How to sign in"));
      return;
    }
    if (this.rooms.length > 0) this.#draw();
    try {
      await withRetries(() => this.inbox.load(), (note) => this.#draw(note), loading.signal);
    } catch (error) {
      if (!loading.signal.aborted) this.#draw(h("p", { class: "note", role: "alert" }, words(error)));
    }
  }

  /** Opens the room above or below. @param {1 | -1} by */
  step(by) {
    const at = this.rooms.findIndex(({ room_id }) => room_id === this.current);
    const next = this.rooms[at < 0 ? 0 : at + by];
    if (next) this.open(next.room_id);
  }

  /** @param {HTMLElement} [note] why the list may be old */
  #draw(note) {
    const rows = this.rooms.map((room) => this.#row(room));
    redraw(
      this.place,
      ...(note ? [note] : []),
      rows.length > 0 ? h("ul", { class: "rooms" }, rows) : h("p", { class: "note" }, note ? "" : "You are in no room yet."),
      h("button", { type: "button", id: "new-room", class: "wide-button", click: () => createRoom(this.open) }, icon("plus"), "New room"));
  }

  /** @param {InboxRoom} room */
  #row(room) {
    const follow = (/** @type {MouseEvent} */ event) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey) return;
      event.preventDefault();
      this.open(room.room_id);
    };
    return h("li", {},
      h("a", { href: `/view?room=${room.room_id}`, class: room.unread > 0 ? "unread-room" : undefined, "aria-current": room.room_id === this.current ? "page" : undefined, click: follow },
        h("span", { class: "cut grow" }, bdi(room.name)), room.archived && h("small", {}, " archived"),
        room.mentions > 0 && count("@", room.mentions, "mention you", "pip urgent"),
        room.unread > 0 && count("", room.unread, "unread", "pip")));
  }
}

/** @param {string} sign @param {number} number @param {string} what @param {string} kind */
export const count = (sign, number, what, kind) => h("span", { class: kind }, sign, number > 99 ? "99+" : number, h("span", { class: "unseen" }, ` ${what}`));

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
