// Messages on their way. One that is not confirmed yet survives a reload and is sent again under
// the same idempotency key, so it is neither lost nor doubled.

import { ApiError, words } from "./api.js";
import { h } from "./dom.js";
import { readJson, writeJson } from "./store.js";
import { span } from "./time.js";
import { countdown } from "./ui.js";

/** @import { Room } from "./room.js" */
/** @typedef {{key: string, content: string, replyTo: number | null}} Letter */

export class Outbox {
  /** What failed for want of a connection: how each is sent again. @type {Map<string, () => void>} */ #waiting = new Map();

  /**
   * @param {Room} room
   * @param {HTMLElement} place
   * @param {(seq: number) => void} onSent
   * @param {(letter: Letter) => void} onTakenBack
   */
  constructor(room, place, onSent, onTakenBack) {
    this.room = room;
    this.place = place;
    this.onSent = onSent;
    this.onTakenBack = onTakenBack;
    this.store = `outbox:${room.id}:${room.userId}`;
    place.replaceChildren();
    for (const letter of this.#kept()) void this.#deliver(letter);
  }

  /** @param {string} content @param {number | null} replyTo */
  send(content, replyTo) {
    const random = crypto.getRandomValues(new Uint8Array(16));
    const key = Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("");
    const letter = { key, content, replyTo };
    this.#keep([...this.#kept(), letter]);
    void this.#deliver(letter);
  }

  /** The server is there again. */
  retry() {
    for (const again of this.#waiting.values()) again();
  }

  /** @returns {Letter[]} */
  #kept() {
    const kept = readJson(this.store);
    return Array.isArray(kept) ? kept : [];
  }

  /** @param {Letter[]} letters */
  #keep(letters) {
    writeJson(this.store, letters.length > 0 ? letters : null);
  }

  /** @param {Letter} letter */
  #forget(letter) {
    this.#keep(this.#kept().filter(({ key }) => key !== letter.key));
  }

  /** @param {Letter} letter @param {HTMLElement} [item] */
  async #deliver(letter, item = h("li", { class: "letter" })) {
    this.#waiting.delete(letter.key);
    item.replaceChildren(h("p", { class: "content plain" }, letter.content), h("p", { class: "note" }, "Sending…"));
    item.classList.remove("refused");
    if (!item.isConnected) this.place.append(item);
    try {
      const { seq } = await this.room.call("/messages", {
        method: "POST",
        headers: { "idempotency-key": letter.key },
        body: { content: letter.content, reply_to_seq: letter.replyTo ?? undefined },
      });
      this.#forget(letter);
      item.remove();
      this.onSent(seq);
    } catch (error) {
      this.#refused(letter, item, error);
    }
  }

  /** @param {Letter} letter @param {HTMLElement} item @param {unknown} error */
  #refused(letter, item, error) {
    const again = h("button", { type: "button", click: () => this.#deliver(letter, item) }, "Send again");
    const back = h("button", {
      type: "button",
      click: () => {
        this.#waiting.delete(letter.key);
        this.#forget(letter);
        item.remove();
        this.onTakenBack(letter);
      },
    }, "Take back");
    const note = h("p", { class: "note", role: "alert" }, words(error));
    item.classList.add("refused");
    item.replaceChildren(h("p", { class: "content plain" }, letter.content), note, h("div", { class: "row" }, again, back));
    if (error instanceof ApiError && error.status === 429) {
      again.disabled = true;
      const reason = error.message.replace(/\.? Try again in .*/, "");
      countdown(error.retryAfter ?? 60, (left) => {
        note.textContent = left > 0 ? `${reason}. You can send again in ${span(left)}.` : "You can send it again now.";
        again.disabled = left > 0;
      });
    } else if (error instanceof ApiError && error.passes) this.#waiting.set(letter.key, () => void this.#deliver(letter, item));
  }
}
