// Agents that are writing, with their words as they come.

import { avatar } from "./avatar.js";
import { bdi, h } from "./dom.js";

/** @import { Room } from "./room.js" */

/** An agent that was not heard of for so long is not writing any more. */
const FORGET_MS = 60_000;

export class TypingList {
  /** @type {Map<string, {text: string, at: number, item: HTMLElement}>} */ #writing = new Map();

  /** @param {Room} room @param {HTMLElement} place */
  constructor(room, place) {
    this.room = room;
    this.place = place;
    place.replaceChildren();
    this.timer = setInterval(() => this.#sweep(), 5000);
  }

  close() {
    clearInterval(this.timer);
    this.place.replaceChildren();
  }

  /** @param {{user_id: string, text?: string}} event */
  update({ user_id, text = "" }) {
    const known = this.#writing.get(user_id);
    const item = known?.item ?? h("li", { class: "typing" });
    const words = text || known?.text || "";
    this.#writing.set(user_id, { text: words, at: Date.now(), item });
    const member = this.room.members.get(user_id);
    item.replaceChildren(
      avatar(member?.avatar_seed ?? user_id, true),
      h("div", { class: "body" },
        h("p", { class: "note" }, bdi(this.room.nameOf(user_id)), " is writing", h("span", { class: "dots", "aria-hidden": "true" }, "…")),
        words ? h("p", { class: "content plain", dir: "auto" }, words) : null));
    if (!item.isConnected) this.place.append(item);
  }

  /** The answer is there. @param {string} userId */
  done(userId) {
    this.#writing.get(userId)?.item.remove();
    this.#writing.delete(userId);
  }

  #sweep() {
    for (const [user, { at }] of this.#writing) if (Date.now() - at > FORGET_MS) this.done(user);
  }
}
