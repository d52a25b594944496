// The messages on the page: which they are, and what each shows because of the others.

import { h } from "./dom.js";
import { isNotice, messageView, runLine } from "./message.js";
import { day, sameDay } from "./time.js";

/** @import { Message } from "../types.js" */
/** @import { Actions } from "./message.js" */
/** @import { Place } from "./place.js" */
/** @import { Room } from "./room.js" */

/** Messages on the page, at the most. */
export const MOST = 160;
/** Messages of one sender within so many seconds stand together. */
const GROUP_SECONDS = 300;
/** So many who came or went in a row become one line. */
const RUN = 3;
/** The server counts answers so far. */
const MOST_ANSWERS = 1000;

export class Rows {
  /** Oldest first. @type {Message[]} */ messages = [];
  /** @type {Map<number, HTMLLIElement>} */ items = new Map();
  /** What is new begins here; 0 where nothing is. */
  unreadFrom = 0;
  /** Up to where the answers to a message were seen, apart from the room. @type {Map<number, number>} */ #answersReadTo = new Map();

  /** @param {Room} room @param {HTMLElement} list @param {Actions} actions @param {Place} place */
  constructor(room, list, actions, place) {
    this.room = room;
    this.list = list;
    this.actions = actions;
    this.place = place;
  }

  get first() {
    return this.messages[0]?.seq ?? 0;
  }

  get last() {
    return this.messages.at(-1)?.seq ?? 0;
  }

  /** @param {number} seq */
  find(seq) {
    return this.messages.find((message) => message.seq === seq);
  }

  /** @param {Message[]} messages */
  replace(messages) {
    this.list.replaceChildren();
    this.items.clear();
    this.messages = [];
    this.append(messages);
  }

  /** @param {Message[]} messages */
  append(messages) {
    for (const message of messages) {
      this.messages.push(message);
      this.list.append(this.#item(message));
      this.#draw(this.messages.length - 1);
    }
  }

  /** @param {Message[]} messages */
  prepend(messages) {
    const fresh = messages.filter((message) => message.seq < this.first);
    this.messages.unshift(...fresh);
    this.list.prepend(...fresh.map((message) => this.#item(message)));
    fresh.forEach((_, at) => this.#draw(at));
    this.#decorate(fresh.length);
  }

  trimStart() {
    const extra = this.messages.length - MOST;
    if (extra > 0) this.#drop(this.messages.splice(0, extra));
    this.#decorate(0);
  }

  trimEnd() {
    if (this.messages.length > MOST) this.#drop(this.messages.splice(MOST));
  }

  /** Puts a message's present state in place of an older one; gives whether it is here. @param {Message} message */
  update(message) {
    const at = this.messages.findIndex((known) => known.seq === message.seq);
    if (at < 0) return false;
    const { answers } = this.messages[at];
    // One may have come while the message was read.
    const knowsMore = (answers?.last_seq ?? 0) > (message.answers?.last_seq ?? 0);
    this.messages[at] = knowsMore ? { ...message, answers } : message;
    this.hold(() => this.#draw(at));
    return true;
  }

  /** Draws all anew, as after a change of names. */
  redraw() {
    this.hold(() => this.messages.forEach((_, at) => this.#draw(at)));
  }

  /** @param {number} seq the first that is new */
  markUnread(seq) {
    this.unreadFrom = seq;
    for (let at = 0; at < this.messages.length; at++) this.#decorate(at);
  }

  /** Changes the list while what the reader looks at stays where it is. @param {() => void} change */
  hold(change) {
    this.place.hold(this.messages.map(({ seq }) => /** @type {HTMLLIElement} */ (this.items.get(seq))), change);
  }

  /** Counts an answer that has just come, wherever it stands. @param {Message} answer @param {boolean} isSeen */
  answered({ seq, reply_to_seq, sender_user_id }, isSeen) {
    const target = reply_to_seq === null ? undefined : this.find(reply_to_seq);
    const { count, last_seq, unread } = this.#answers(target);
    // What was counted already when the message was read is not counted twice.
    if (!target || seq <= last_seq) return;
    const isNew = (!isSeen || this.#isOpened(target)) && sender_user_id !== this.room.userId;
    target.answers = { ...target.answers, count: count + 1, last_seq: seq, unread: unread + (isNew ? 1 : 0) };
    this.#drawAnswers(target);
  }

  /** What the server now knows of the answers to these messages. @param {Message[]} messages */
  recount(messages) {
    for (const { seq, answers } of messages) {
      const message = this.find(seq);
      if (!message || !answers || answers.last_seq < (message.answers?.last_seq ?? 0)) continue;
      message.answers = answers;
      this.#drawAnswers(message);
    }
  }

  /** Whether the reader has opened this message's thread, which is then read apart from the room. @param {Message | undefined} message */
  #isOpened(message) {
    while (message && message.answers?.read_seq === undefined) message = message.reply_to_seq === null ? undefined : this.find(message.reply_to_seq);
    return message !== undefined;
  }

  /** The reader has seen the answers to these messages. @param {Iterable<number>} seqs */
  answersRead(seqs) {
    for (const message of [...seqs].map((seq) => this.find(seq))) {
      if (!message?.answers) continue;
      this.#answersReadTo.set(message.seq, message.answers.last_seq);
      message.answers.read_seq = message.answers.last_seq;
      this.#drawAnswers(message);
    }
  }

  /** The answers to a message, as the reader knows them. @param {Message | undefined} message */
  #answers(message) {
    const answers = message?.answers ?? { count: 0, last_seq: 0, unread: 0 };
    const isRead = message && (this.#answersReadTo.get(message.seq) ?? -1) >= answers.last_seq;
    return isRead ? { ...answers, unread: 0 } : answers;
  }

  /** @param {Message[]} messages */
  #drop(messages) {
    for (const { seq } of messages) {
      this.items.get(seq)?.remove();
      this.items.delete(seq);
    }
  }

  /** @param {Message} message */
  #item(message) {
    const item = h("li", { tabIndex: -1, "data-seq": message.seq });
    this.items.set(message.seq, item);
    return item;
  }

  /** @param {number} at */
  #draw(at) {
    const message = this.messages[at];
    const item = message && this.items.get(message.seq);
    if (!item) return;
    const focused = item.contains(document.activeElement);
    item.replaceChildren(messageView(message, this.room, this.actions));
    item.classList.toggle("own", message.sender_user_id === this.room.userId && message.type === "chat");
    item.classList.toggle("mentions-me", message.mentions_me === true);
    this.#decorate(at);
    this.#drawAnswers(message);
    if (focused) item.focus();
  }

  /** What a message shows because of the one before it. @param {number} at */
  #decorate(at) {
    const message = this.messages[at];
    const item = message && this.items.get(message.seq);
    if (!item) return;
    const before = this.messages[at - 1];
    const newDay = !before || !sameDay(before.created_at, message.created_at);
    const unread = message.seq === this.unreadFrom;
    const grouped =
      !newDay && !unread && message.type === "chat" && before.type === "chat" && !message.reply_to_seq &&
      before.sender_user_id === message.sender_user_id && before.via === message.via &&
      message.created_at - before.created_at < GROUP_SECONDS;
    item.classList.toggle("grouped", grouped);
    item.classList.toggle("notice-line", isNotice(message) && !newDay && !unread);
    for (const old of item.querySelectorAll(":scope > .divider")) old.remove();
    if (unread) item.prepend(h("p", { class: "divider unread" }, h("span", {}, "New")));
    if (newDay) item.prepend(h("p", { class: "divider" }, h("span", {}, day(message.created_at))));
    this.#collapse(at);
  }

  /** Who came and went in a row becomes one line, which unfolds. @param {number} at a message of the row */
  #collapse(at) {
    if (!isNotice(this.messages[at])) return;
    const isNext = (/** @type {number} */ n) => isNotice(this.messages[n]) && this.items.get(this.messages[n].seq)?.classList.contains("notice-line");
    let [from, to] = [at, at];
    while (from > 0 && isNext(from) && isNotice(this.messages[from - 1])) from -= 1;
    while (isNext(to + 1)) to += 1;
    const run = this.messages.slice(from, to + 1);
    const items = run.map(({ seq }) => /** @type {HTMLLIElement} */ (this.items.get(seq)));
    const folds = run.length >= RUN && !items.some((item) => item.dataset.unfolded);
    for (const [n, item] of items.entries()) {
      item.classList.toggle("in-run", folds && n > 0);
      item.classList.toggle("run", folds && n === 0);
      item.querySelector(":scope > .run-line")?.remove();
    }
    if (!folds) return;
    const unfold = () => {
      for (const item of items) item.dataset.unfolded = "yes";
      this.hold(() => this.#collapse(this.messages.indexOf(run[0])));
    };
    items[0].append(runLine(run, unfold));
  }

  /** How often a message was answered, on the page or elsewhere. @param {Message} message */
  #drawAnswers(message) {
    const place = this.items.get(message.seq)?.querySelector(".answers");
    if (!place) return;
    const { count, unread } = this.#answers(message);
    const label = count === 1 ? "1 answer" : `${count.toLocaleString()}${count >= MOST_ANSWERS ? " or more" : ""} answers`;
    const fresh = unread > 0 && h("b", { class: "count-new" }, ` · ${unread} new`);
    place.replaceChildren(...(count > 0 ? [h("button", { type: "button", class: "link", click: () => this.actions.thread(message) }, h("span", {}, label, fresh))] : []));
  }
}
