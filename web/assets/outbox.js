// Messages on their way, one after the other. One that is not confirmed yet survives a reload and is
// sent again under the same idempotency key, so it is neither lost nor doubled.

import { ApiError, words } from "./api.js";
import { h } from "./dom.js";
import { backOff, isTransient, retryDelay, retryNote } from "./retry.js";
import { readJson, writeJson } from "./store.js";
import { span } from "./time.js";
import { countdown, notify } from "./ui.js";

/** @import { Room } from "./room.js" */
/** @typedef {{key: string, content: string, replyTo: number | null}} Letter */

/** Those that send, by what they keep: a room that is opened again has one that may still be at it. @type {Map<string, Outbox>} */
const working = new Map();

export class Outbox {
  /** @type {Map<string, HTMLElement>} */ #items = new Map();
  /** What the server does not take. @type {Set<string>} */ #refused = new Set();
  /** Why the rest waits, told once for all of it. */
  #notice = h("li", { class: "letter-notice", hidden: true });
  #busy = false;
  #attempt = 0;
  #ended = new AbortController();
  #retryNow = () => {};

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
    working.get(this.store)?.close();
    working.set(this.store, this);
    place.replaceChildren(this.#notice);
    for (const letter of this.#kept()) this.#show(letter);
    void this.#work();
  }

  /** @param {string} content @param {number | null} replyTo */
  send(content, replyTo) {
    const random = crypto.getRandomValues(new Uint8Array(16));
    const key = Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("");
    const letter = { key, content, replyTo };
    this.#keep([...this.#kept(), letter]);
    this.#show(letter);
    void this.#work();
  }

  /** Leaves what is kept to another. */
  close() {
    this.#ended.abort();
  }

  /** The server is there again. */
  retry() {
    this.#retryNow();
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
  #forget({ key }) {
    this.#keep(this.#kept().filter((kept) => kept.key !== key));
    this.#items.get(key)?.remove();
    this.#items.delete(key);
  }

  /** Sends what is kept, in its order; goes on in another room, too. */
  async #work() {
    if (this.#busy) return;
    this.#busy = true;
    for (;;) {
      const letter = this.#kept().find(({ key }) => !this.#refused.has(key));
      if (!letter || this.#ended.signal.aborted) break;
      await this.#deliver(letter);
    }
    this.#busy = false;
    this.#notice.hidden = true;
  }

  /** @param {Letter} letter */
  async #deliver(letter) {
    this.#draw(letter, h("p", { class: "note" }, "Sending…"));
    try {
      const { seq, ambiguous_mentions = [] } = await this.room.call("/messages", {
        method: "POST",
        headers: { "idempotency-key": letter.key },
        body: { content: letter.content, reply_to_seq: letter.replyTo ?? undefined },
      });
      this.#attempt = 0;
      this.#notice.hidden = true;
      this.#forget(letter);
      this.onSent(seq);
      if (ambiguous_mentions.length > 0) notify(`@${ambiguous_mentions.join(", @")} fits several members, so none of them was called. Write more of the name.`, "error");
    } catch (error) {
      if (isTransient(error)) await this.#wait(error);
      else this.#refuse(letter, error);
    }
  }

  /** Nothing can be sent now. @param {ApiError} error */
  async #wait(error) {
    for (const letter of this.#kept()) if (!this.#refused.has(letter.key)) this.#show(letter);
    this.#notice.hidden = false;
    const ms = retryDelay(error, ++this.#attempt);
    await backOff(ms, (retryNow) => {
      if (error.status === 429) {
        // A limit is over when it is over.
        this.#retryNow = () => {};
        this.#notice.replaceChildren(limitNote(error, ms));
      } else {
        this.#retryNow = retryNow;
        this.#notice.replaceChildren(retryNote(words(error), ms, retryNow));
      }
    }, this.#ended.signal);
  }

  /** A letter that waits for its turn. @param {Letter} letter */
  #show(letter) {
    this.#draw(letter, h("p", { class: "note" }, "Not sent yet. ", this.#back(letter)));
  }

  /** @param {Letter} letter @param {unknown} error */
  #refuse(letter, error) {
    this.#refused.add(letter.key);
    const again = () => {
      this.#refused.delete(letter.key);
      void this.#work();
    };
    const item = this.#draw(letter,
      h("p", { class: "note", role: "alert" }, words(error)),
      h("div", { class: "row" }, h("button", { type: "button", click: again }, "Send again"), this.#back(letter)));
    item.classList.add("refused");
  }

  /** @param {Letter} letter @param {...Node} state */
  #draw(letter, ...state) {
    const item = this.#items.get(letter.key) ?? h("li", {});
    item.className = "letter";
    item.replaceChildren(h("p", { class: "content plain", dir: "auto" }, letter.content), ...state);
    if (!this.#items.has(letter.key)) this.#notice.before(item);
    this.#items.set(letter.key, item);
    return item;
  }

  /** @param {Letter} letter */
  #back(letter) {
    const takeBack = () => {
      this.#refused.delete(letter.key);
      this.#forget(letter);
      if (this.#kept().length === 0) this.#notice.hidden = true;
      this.onTakenBack(letter);
    };
    return h("button", { type: "button", class: "link", click: takeBack }, "Take back");
  }
}

/** A limit that was reached, and when it ends. @param {ApiError} error @param {number} ms */
function limitNote(error, ms) {
  const reason = error.message.replace(/\.? Try again in .*/, "");
  const left = h("span", { "aria-hidden": "true" });
  countdown(ms / 1000, (seconds) => { left.textContent = `Sending goes on in ${span(seconds)}.`; });
  return h("div", { class: "retry" }, h("span", { role: "status" }, `${reason}.`), " ", left);
}
