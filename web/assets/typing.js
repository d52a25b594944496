// Who is at work on an answer or writes, from the moment that the server tells of it.

import { serverNow, words } from "./api.js";
import { avatar } from "./avatar.js";
import { bdi, h, icon } from "./dom.js";
import { rendered } from "./markdown.js";
import { stopwatch } from "./time.js";
import { announce, notify } from "./ui.js";

/** @import { AgentDelta, AgentTyping } from "../types.js" */
/** @import { Room } from "./room.js" */

/** Whoever was not heard of for so long is not at it any more. */
const FORGET_MS = 60_000;
/** What was written stays for so long after it stopped: the message comes in its place. */
const LINGER_MS = 2000;
/** How long the page tells that somebody was stopped, or failed. */
const TOLD_MS = 60_000;
const PERSON_MS = 20_000;
/** One's own typing is told so often at the most; the server forgets it after 15 s. */
const TELL_EVERY_MS = 6000;

/** @typedef {{state: AgentTyping, text: string, at: number, item: HTMLElement, clock: HTMLElement}} Working */

export class TypingList {
  /** @type {Map<string, Working>} */ #working = new Map();
  /** People who write, and when that was last heard. @type {Map<string, number>} */ #people = new Map();
  /** Who was stopped or has failed, at which message. @type {Map<string, {item: HTMLElement, seq: number | null | undefined}>} */ #endings = new Map();
  #line = h("li", { class: "people-typing", hidden: true });
  #told = 0;

  /**
   * @param {Room} room
   * @param {HTMLElement} place
   * @param {(seq: number | null | undefined) => boolean} isMine whether the message that is answered is the reader's
   */
  constructor(room, place, isMine) {
    this.room = room;
    this.place = place;
    this.isMine = isMine;
    place.replaceChildren(this.#line);
    this.timer = setInterval(() => this.#tick(), 1000);
  }

  close() {
    clearInterval(this.timer);
    this.clear();
  }

  /** Nothing is known any more of who is at work. */
  clear() {
    this.#working.clear();
    this.#endings.clear();
    this.#people.clear();
    this.place.replaceChildren(this.#line);
    this.#drawPeople();
  }

  /** Tells the others that one writes. */
  tell() {
    if (!this.room.key?.own || Date.now() - this.#told < TELL_EVERY_MS) return;
    this.#told = Date.now();
    this.room.call("/typing", { method: "POST", body: { state: "writing" } }).catch(() => {});
  }

  /** One's message is sent: the next word is told at once. */
  sent() {
    this.#told = 0;
  }

  /** @param {AgentTyping} event */
  typing(event) {
    if (event.role_class === "human") return this.#person(event);
    if (event.typing) return this.#show(event, this.#working.get(event.user_id)?.text ?? "");
    const last = this.#working.get(event.user_id);
    if (event.reason === "stopped" || event.reason === "failed") return this.#ended(event);
    setTimeout(() => last && this.#working.get(event.user_id) === last && this.#forget(event.user_id), LINGER_MS);
  }

  /** @param {AgentDelta} event its text is all that was written so far */
  delta({ user_id, reply_to_seq, text }) {
    const known = this.#working.get(user_id)?.state;
    this.#show({ since: serverNow(), ...known, user_id, reply_to_seq, typing: true, state: "writing" }, text);
  }

  /** The answer is there. @param {string} userId @param {number | null} replyTo */
  done(userId, replyTo) {
    this.#people.delete(userId);
    this.#drawPeople();
    if ((this.#endings.get(userId)?.seq ?? null) === replyTo) this.#forgetEnding(userId);
    const known = this.#working.get(userId);
    if (known && (known.state.reply_to_seq ?? null) === replyTo) this.#forget(userId);
  }

  /** @param {AgentTyping} state @param {string} text */
  #show(state, text) {
    this.#forgetEnding(state.user_id);
    const old = this.#working.get(state.user_id);
    const item = old?.item.isConnected ? old.item : h("li", { class: "typing" });
    const clock = h("span", { "aria-hidden": "true" });
    const doing = state.state === "thinking" ? " is thinking" : " is writing";
    this.#working.set(state.user_id, { state, text, at: Date.now(), item, clock });
    item.classList.remove("ended");
    item.replaceChildren(
      avatar(this.room.seedOf(state.user_id), true),
      h("div", { class: "body" },
        h("p", { class: "note" },
          h("span", {}, h("b", {}, bdi(this.room.nameOf(state.user_id))), doing, clock, h("span", { class: "dots", "aria-hidden": "true" }, "…")),
          state.activity ? h("span", { class: "activity" }, bdi(state.activity)) : null,
          this.#stopButton(state)),
        text ? h("div", { class: "content", dir: "auto" }, ...rendered(text)) : null));
    this.#drawClock(state.user_id);
    if (!old) announce(this.room.nameOf(state.user_id) + doing);
    if (!item.isConnected) this.#line.before(item);
  }

  /** @param {AgentTyping} state */
  #stopButton({ user_id, reply_to_seq }) {
    if (!this.room.isOwner && !this.isMine(reply_to_seq)) return null;
    const stop = async () => {
      try {
        await this.room.asMember(`/members/${encodeURIComponent(user_id)}/stop`, { method: "POST", body: { reply_to_seq } });
      } catch (error) {
        notify(words(error), "error");
      }
    };
    return h("button", { type: "button", class: "stop", click: stop }, icon("stop"), "Stop");
  }

  /** It was stopped or has failed: what it had written goes, and it can be asked again. @param {AgentTyping} event */
  #ended({ user_id, reply_to_seq, reason, by_user_id }) {
    const item = this.#working.get(user_id)?.item ?? h("li", { class: "typing" });
    this.#forgetEnding(user_id);
    this.#working.delete(user_id);
    this.#endings.set(user_id, { item, seq: reply_to_seq });
    const name = bdi(this.room.nameOf(user_id));
    const told = reason === "failed" ? [name, " could not answer. "] : [name, " was stopped", ...(by_user_id ? [" by ", bdi(this.room.nameOf(by_user_id))] : []), ". "];
    const again = reply_to_seq && (this.room.isOwner || this.isMine(reply_to_seq))
      ? h("button", { type: "button", class: "link", click: () => { item.remove(); void retry(this.room, reply_to_seq, user_id); } }, "Try again")
      : "";
    item.classList.add("ended");
    item.replaceChildren(h("p", { class: "note", role: "status" }, ...told, again));
    if (!item.isConnected) this.#line.before(item);
    setTimeout(() => item.classList.contains("ended") && item.remove(), TOLD_MS);
  }

  /** @param {AgentTyping} event */
  #person({ user_id, typing }) {
    if (user_id === this.room.userId) return;
    if (typing) this.#people.set(user_id, Date.now());
    else this.#people.delete(user_id);
    this.#drawPeople();
  }

  #drawPeople() {
    const names = [...this.#people.keys()].map((id) => this.room.nameOf(id));
    this.#line.hidden = names.length === 0;
    const named = names.slice(0, 3).flatMap((name, n) => [n > 0 ? ", " : "", bdi(name)]);
    this.#line.replaceChildren(...named, names.length > 3 ? ` and ${names.length - 3} more` : "", names.length === 1 ? " is writing" : " are writing", h("span", { class: "dots", "aria-hidden": "true" }, "…"));
  }

  /** @param {string} userId */
  #forget(userId) {
    this.#working.get(userId)?.item.remove();
    this.#working.delete(userId);
  }

  /** It is at work again, or has answered after all. @param {string} userId */
  #forgetEnding(userId) {
    this.#endings.get(userId)?.item.remove();
    this.#endings.delete(userId);
  }

  /** @param {string} userId */
  #drawClock(userId) {
    const working = this.#working.get(userId);
    if (working?.state.since) working.clock.textContent = ` · ${stopwatch(serverNow() - working.state.since)}`;
  }

  #tick() {
    for (const [user, { at }] of this.#working) {
      if (Date.now() - at > FORGET_MS) this.#forget(user);
      else this.#drawClock(user);
    }
    for (const [user, at] of this.#people) if (Date.now() - at > PERSON_MS) this.#people.delete(user);
    this.#drawPeople();
  }
}

/** Has an agent answer a message anew. @param {Room} room @param {number} seq @param {string} userId */
export async function retry(room, seq, userId) {
  try {
    const { called, told } = await room.asMember(`/messages/${seq}/retry`, { method: "POST", body: { user_id: userId } });
    if (called.length + told.length === 0) notify(`${room.nameOf(userId)} cannot be asked now`, "error");
  } catch (error) {
    notify(words(error), "error");
  }
}
