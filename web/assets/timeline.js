// The messages of a room: a window of bounded size that moves over the whole history.

import { Place } from "./place.js";
import { MOST, Rows } from "./rows.js";

/** @import { Message } from "../types.js" */
/** @import { Room } from "./room.js" */
/** @import { Actions } from "./message.js" */

const PAGE = 50;
/** So near to an end, more is loaded. */
const NEAR_PX = 800;

export class Timeline extends EventTarget {
  #latest = 0;
  #loading = false;
  #place;
  #rows;
  /** New messages that are not on the page. */
  missed = 0;

  /**
   * @param {Room} room
   * @param {HTMLElement} scroller
   * @param {HTMLElement} list
   * @param {Actions} actions
   */
  constructor(room, scroller, list, actions) {
    super();
    this.room = room;
    this.list = list;
    this.actions = actions;
    this.ended = new AbortController();
    const { signal } = this.ended;
    this.#place = new Place(scroller, { atEnd: () => this.atEnd, onMoved: () => void this.#moved(), signal });
    this.#rows = new Rows(room, list, actions, this.#place);
    list.addEventListener("keydown", (event) => this.#key(event), { signal });
    // Whoever unfolds a text reads on from where it was cut.
    list.addEventListener("click", (event) => isFold(event) && (this.#place.pinned = false), { signal, capture: true });
    list.addEventListener("click", (event) => isFold(event) && this.#look(), { signal });
  }

  close() {
    this.ended.abort();
    this.list.replaceChildren();
  }

  /** The place after which the stream is to go on. */
  get latest() {
    return this.#latest;
  }

  /** Whether the page keeps to its end. */
  get pinned() {
    return this.#place.pinned;
  }

  /** Whether the newest message is on the page. */
  get atEnd() {
    return this.#rows.last >= this.#latest;
  }

  /** The messages on the page, oldest first. */
  get shown() {
    return this.#rows.messages;
  }

  /** Shows the newest messages. @param {boolean} [anew] forgets what was known of the room */
  async showNewest(anew = false) {
    const page = await this.#page({ limit: PAGE });
    // The stream may have brought more while the page was on its way.
    this.#latest = anew ? page.latest_seq : Math.max(this.#latest, page.latest_seq);
    this.#rows.replace(page.messages);
    if (!this.atEnd) await this.#newer();
    this.#follow();
  }

  /** Goes to the newest message. */
  async toNewest() {
    if (this.atEnd) this.#follow();
    else await this.showNewest();
  }

  /** Marks where the person had stopped reading; gives that place. @param {number} lastRead */
  markUnread(lastRead) {
    // Who comes and goes is nothing to catch up on.
    const later = this.shown.filter(({ seq }) => seq > lastRead);
    const onlyNotices = this.#rows.first <= lastRead + 1 && later.every(({ type }) => type === "system");
    this.#rows.markUnread(lastRead > 0 && lastRead < this.#latest && !onlyNotices ? lastRead + 1 : 0);
    return this.#rows.unreadFrom;
  }

  /** The answers to these messages were seen. @param {Iterable<number>} seqs */
  answersRead(seqs) {
    this.#rows.answersRead(seqs);
  }

  /** Asks anew which answers are new, where some were: they may have been read elsewhere. */
  async recount() {
    if (!this.shown.some(({ answers }) => answers?.unread)) return;
    const { messages } = await this.#page({ since: this.#rows.first - 1, limit: this.shown.length });
    this.#rows.recount(messages);
  }

  /** Shows a message in the middle of the page. @param {number} seq */
  async jump(seq) {
    if (!this.has(seq)) {
      const page = await this.#page({ before: seq + PAGE / 2, limit: PAGE });
      if (!page.messages.some((message) => message.seq === seq)) return;
      this.#latest = Math.max(this.#latest, page.latest_seq);
      this.#place.pinned = false;
      this.#rows.replace(page.messages);
    }
    const item = this.#rows.items.get(seq);
    if (!item) return;
    this.#place.pinned = false;
    item.scrollIntoView({ block: "center" });
    this.#focus(item);
    item.classList.add("flash");
    item.addEventListener("animationend", () => item.classList.remove("flash"), { once: true });
    this.#place.settle();
    this.#changed();
  }

  /** Takes a message that is new. One that is known already changes nothing. @param {Message} message */
  receive(message) {
    if (message.seq <= this.#latest || this.ended.signal.aborted) return false;
    const next = this.atEnd && message.seq === this.#rows.last + 1;
    const first = this.shown.length === 0;
    this.#latest = message.seq;
    if ((next || first) && (this.pinned || this.shown.length < MOST)) {
      this.#rows.append([message]);
      if (this.pinned) this.#rows.trimStart();
    }
    this.#rows.answered(message, this.pinned && document.visibilityState === "visible");
    this.dispatchEvent(new CustomEvent("received", { detail: message }));
    if (!this.pinned) this.missed += 1;
    else if (!this.atEnd) void this.showNewest().catch(() => {});
    this.#changed();
    return true;
  }

  /** Puts a message's present state in place of an older one. @param {Message} message */
  update(message) {
    if (this.#rows.update(message)) this.#changed();
  }

  /** @param {number} seq */
  markDeleted(seq) {
    const message = this.#rows.find(seq);
    if (message) this.update({ ...message, deleted: true, content: "", content_html: undefined, reactions: {} });
  }

  /** @param {number} seq */
  has(seq) {
    return this.#rows.items.has(seq);
  }

  /** Draws all anew, as after a change of names. */
  redraw() {
    this.#rows.redraw();
  }

  /** Puts the keyboard's focus on the newest message. */
  focusLast() {
    const item = this.#rows.items.get(this.#rows.last);
    if (item) this.#focus(item);
  }

  /** Messages of the room; never once another room has taken the page. @param {{since?: number, before?: number, limit: number}} range */
  async #page(range) {
    const page = await this.room.page(range);
    this.ended.signal.throwIfAborted();
    return page;
  }

  async #older() {
    const page = await this.#page({ before: this.#rows.first, limit: PAGE });
    this.#rows.hold(() => {
      this.#rows.prepend(page.messages);
      this.#rows.trimEnd();
    });
  }

  async #newer() {
    const page = await this.#page({ since: this.#rows.last, limit: PAGE });
    this.#latest = Math.max(this.#latest, page.latest_seq);
    this.#rows.hold(() => {
      this.#rows.append(page.messages.filter((message) => message.seq > this.#rows.last));
      this.#rows.trimStart();
    });
  }

  #look() {
    this.#place.look();
    void this.#moved();
  }

  /** The reader is elsewhere: what is near is loaded. */
  async #moved() {
    if (this.pinned) this.missed = 0;
    this.#changed();
    if (this.#loading) return;
    const { scrollTop } = this.#place.scroller;
    const more =
      scrollTop < NEAR_PX && this.#rows.first > 1 ? () => this.#older() : this.#place.below < NEAR_PX && !this.atEnd ? () => this.#newer() : null;
    if (!more) return;
    this.#loading = true;
    try {
      await more();
    } catch {
      // The next scroll asks again.
    } finally {
      this.#loading = false;
    }
  }

  /** Keeps to the end from now on. */
  #follow() {
    this.#place.pinned = true;
    this.missed = 0;
    this.#place.toEnd();
    this.#changed();
  }

  #changed() {
    if (this.pinned && document.visibilityState === "visible") this.room.lastRead = this.#latest;
    this.dispatchEvent(new Event("changed"));
  }

  /** @param {HTMLElement} item */
  #focus(item) {
    this.list.querySelector("li[tabindex='0']")?.setAttribute("tabindex", "-1");
    item.tabIndex = 0;
    item.focus({ preventScroll: true });
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const item = event.target instanceof HTMLLIElement ? event.target : null;
    if (!item || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { ArrowUp: "previousElementSibling", ArrowDown: "nextElementSibling" }[event.key];
    const message = this.#rows.find(Number(item.dataset.seq));
    if (step) {
      let next = Reflect.get(item, step);
      while (next instanceof HTMLElement && next.classList.contains("in-run")) next = Reflect.get(next, step);
      if (!(next instanceof HTMLElement)) return;
      next.scrollIntoView({ block: "nearest" });
      this.#look();
      this.#focus(next);
    } else if (event.key === "r" && message && this.room.canPost) this.actions.reply(message);
    else if (event.key === "t" && message) this.actions.thread(message);
    else if (event.key === "c" && message) this.actions.link(message);
    else if (event.key === "e" && message && this.actions.canEdit(message)) this.actions.edit(message);
    else if (event.key === "+" && message && this.room.canPost && !message.deleted) this.actions.pick(message, item);
    else return;
    event.preventDefault();
  }
}

/** @param {Event} event */
const isFold = ({ target }) => target instanceof Element && target.closest(".fold") !== null;
