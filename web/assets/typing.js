// Agents that are writing, with their words as they come.

import { avatar } from "./avatar.js";
import { bdi, h } from "./dom.js";

/** @import { AgentDelta, AgentTyping } from "../types.js" */
/** @import { Room } from "./room.js" */

/** An agent that was not heard of for so long is not writing any more. */
const FORGET_MS = 60_000;
/** What it wrote stays for so long after it stopped: the message comes in its place. */
const LINGER_MS = 2000;

/** @typedef {{replyTo: number, at: number, item: HTMLElement}} Writing */

export class TypingList {
  /** @type {Map<string, Writing>} */ #writing = new Map();

  /** @param {Room} room @param {HTMLElement} place */
  constructor(room, place) {
    this.room = room;
    this.place = place;
    place.replaceChildren();
    this.timer = setInterval(() => this.#sweep(), 5000);
  }

  close() {
    clearInterval(this.timer);
    this.clear();
  }

  /** Nothing is known any more of who is writing. */
  clear() {
    this.#writing.clear();
    this.place.replaceChildren();
  }

  /** @param {AgentTyping} event */
  typing({ user_id, reply_to_seq, typing }) {
    if (typing) return this.#show(user_id, reply_to_seq, "");
    const last = this.#writing.get(user_id);
    setTimeout(() => last && this.#writing.get(user_id) === last && this.#forget(user_id, last), LINGER_MS);
  }

  /** @param {AgentDelta} event its text is all that was written so far */
  delta({ user_id, reply_to_seq, text }) {
    this.#show(user_id, reply_to_seq, text);
  }

  /** The answer is there. @param {string} userId @param {number | null} replyTo */
  done(userId, replyTo) {
    const known = this.#writing.get(userId);
    if (known?.replyTo === replyTo) this.#forget(userId, known);
  }

  /** @param {string} user_id @param {number} replyTo @param {string} words */
  #show(user_id, replyTo, words) {
    const item = this.#writing.get(user_id)?.item ?? h("li", { class: "typing" });
    this.#writing.set(user_id, { replyTo, at: Date.now(), item });
    const member = this.room.members.get(user_id);
    item.replaceChildren(
      avatar(member?.avatar_seed ?? user_id, true),
      h("div", { class: "body" },
        h("p", { class: "note" }, bdi(this.room.nameOf(user_id)), " is writing", h("span", { class: "dots", "aria-hidden": "true" }, "…")),
        words ? h("p", { class: "content plain", dir: "auto" }, words) : null));
    if (!item.isConnected) this.place.append(item);
  }

  /** @param {string} userId @param {Writing} writing */
  #forget(userId, { item }) {
    item.remove();
    this.#writing.delete(userId);
  }

  #sweep() {
    for (const [user, writing] of this.#writing) if (Date.now() - writing.at > FORGET_MS) this.#forget(user, writing);
  }
}
