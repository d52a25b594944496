// The messages of a room: a window of bounded size that moves over the whole history.

import { h } from "./dom.js";
import { isNotice, messageView, runLine } from "./message.js";
import { day, sameDay } from "./time.js";

/** @import { Message } from "../types.js" */
/** @import { Room } from "./room.js" */
/** @import { Actions } from "./message.js" */

/** Messages on the page, at the most. */
const MOST = 160;
const PAGE = 50;
/** So near to an end, more is loaded. */
const NEAR_PX = 800;
/** Whoever scrolls down so near to the end is at it. */
const PINNED_PX = 60;
/** What is rounded in the browser's measures. */
const ROUNDED_PX = 2;
/** Messages of one sender within so many seconds stand together. */
const GROUP_SECONDS = 300;
/** So many who came or went in a row become one line. */
const RUN = 3;

export class Timeline extends EventTarget {
  /** @type {Message[]} */ #messages = [];
  /** @type {Map<number, HTMLLIElement>} */ #items = new Map();
  #latest = 0;
  #loading = false;
  /** Where the page was last known to be. */
  #top = 0;
  #unreadFrom = 0;
  /** Whether the page keeps to its end. Only the reader changes this, by scrolling. */
  pinned = true;
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
    this.scroller = scroller;
    this.list = list;
    this.actions = actions;
    this.ended = new AbortController();
    const { signal } = this.ended;
    scroller.addEventListener("scroll", () => this.#scrolled(), { passive: true, signal });
    list.addEventListener("keydown", (event) => this.#key(event), { signal });
    // Whoever unfolds a text reads on from where it was cut.
    list.addEventListener("click", (event) => isFold(event) && (this.pinned = false), { signal, capture: true });
    list.addEventListener("click", (event) => isFold(event) && this.#scrolled(), { signal });
    const keep = () => this.pinned && this.#toEnd();
    this.resized = new ResizeObserver(keep);
    for (const part of [scroller, ...scroller.children]) this.resized.observe(part);
    // Where something shrinks, the browser moves the page up by itself; where something else grows
    // before the next frame, nothing tells so later. So the end is sought after each change.
    this.mutated = new MutationObserver(keep);
    const attributeFilter = ["class", "hidden", "style"];
    this.mutated.observe(scroller.parentElement ?? scroller, { subtree: true, childList: true, characterData: true, attributeFilter });
  }

  close() {
    this.ended.abort();
    this.resized.disconnect();
    this.mutated.disconnect();
    this.list.replaceChildren();
  }

  /** The place after which the stream is to go on. */
  get latest() {
    return this.#latest;
  }

  get first() {
    return this.#messages[0]?.seq ?? 0;
  }

  get last() {
    return this.#messages.at(-1)?.seq ?? 0;
  }

  /** Whether the newest message is on the page. */
  get atEnd() {
    return this.last >= this.#latest;
  }

  /** The messages on the page, oldest first. */
  get shown() {
    return this.#messages;
  }

  /** Shows the newest messages. @param {boolean} [anew] forgets what was known of the room */
  async showNewest(anew = false) {
    const page = await this.#page({ limit: PAGE });
    // The stream may have brought more while the page was on its way.
    this.#latest = anew ? page.latest_seq : Math.max(this.#latest, page.latest_seq);
    this.#replace(page.messages);
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
    this.#unreadFrom = lastRead > 0 && lastRead < this.#latest ? lastRead + 1 : 0;
    for (let i = 0; i < this.#messages.length; i++) this.#decorate(i);
    return this.#unreadFrom;
  }

  /** Shows a message in the middle of the page. @param {number} seq */
  async jump(seq) {
    if (!this.#items.has(seq)) {
      const page = await this.#page({ before: seq + PAGE / 2, limit: PAGE });
      if (!page.messages.some((message) => message.seq === seq)) return;
      this.#latest = Math.max(this.#latest, page.latest_seq);
      this.pinned = false;
      this.#replace(page.messages);
    }
    const item = this.#items.get(seq);
    if (!item) return;
    this.pinned = false;
    item.scrollIntoView({ block: "center" });
    this.#focus(item);
    item.classList.add("flash");
    item.addEventListener("animationend", () => item.classList.remove("flash"), { once: true });
    this.pinned = this.atEnd && this.#below < PINNED_PX;
    this.#changed();
  }

  /** Takes a message that is new. One that is known already changes nothing. @param {Message} message */
  receive(message) {
    if (message.seq <= this.#latest || this.ended.signal.aborted) return false;
    const next = this.atEnd && message.seq === this.last + 1;
    const first = this.#messages.length === 0;
    this.#latest = message.seq;
    if ((next || first) && (this.pinned || this.#messages.length < MOST)) {
      this.#append([message]);
      if (this.pinned) this.#trimStart();
    }
    if (!this.pinned) this.missed += 1;
    else if (!this.atEnd) void this.showNewest().catch(() => {});
    this.#changed();
    return true;
  }

  /** Puts a message's present state in place of an older one. @param {Message} message */
  update(message) {
    const at = this.#messages.findIndex((known) => known.seq === message.seq);
    if (at < 0) return;
    this.#messages[at] = message;
    this.#keepPlace(() => this.#draw(at));
    this.#changed();
  }

  /** @param {number} seq */
  markDeleted(seq) {
    const message = this.#messages.find((known) => known.seq === seq);
    if (message) this.update({ ...message, deleted: true, content: "", content_html: undefined, reactions: {} });
  }

  /** @param {number} seq */
  has(seq) {
    return this.#items.has(seq);
  }

  /** Draws all anew, as after a change of names. */
  redraw() {
    this.#keepPlace(() => this.#messages.forEach((_, at) => this.#draw(at)));
  }

  /** Puts the keyboard's focus on the newest message. */
  focusLast() {
    const item = this.#items.get(this.last);
    if (item) this.#focus(item);
  }

  /** Messages of the room; never once another room has taken the page. @param {{since?: number, before?: number, limit: number}} range */
  async #page(range) {
    const page = await this.room.page(range);
    this.ended.signal.throwIfAborted();
    return page;
  }

  async #older() {
    const page = await this.#page({ before: this.first, limit: PAGE });
    this.#keepPlace(() => {
      this.#prepend(page.messages);
      this.#trimEnd();
    });
  }

  async #newer() {
    const page = await this.#page({ since: this.last, limit: PAGE });
    this.#latest = Math.max(this.#latest, page.latest_seq);
    this.#keepPlace(() => {
      this.#append(page.messages.filter((message) => message.seq > this.last));
      this.#trimStart();
    });
  }

  async #scrolled() {
    const { scrollTop } = this.scroller;
    const below = this.#below;
    const up = scrollTop < this.#top && below > ROUNDED_PX;
    this.#top = scrollTop;
    if (up || !this.atEnd) this.pinned = false;
    else if (below < PINNED_PX) this.pinned = true;
    if (this.pinned) this.missed = 0;
    this.#changed();
    if (this.#loading) return;
    const more =
      scrollTop < NEAR_PX && this.first > 1 ? () => this.#older() : below < NEAR_PX && !this.atEnd ? () => this.#newer() : null;
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

  /** @param {Message[]} messages */
  #replace(messages) {
    this.list.replaceChildren();
    this.#items.clear();
    this.#messages = [];
    this.#append(messages);
  }

  /** @param {Message[]} messages */
  #append(messages) {
    for (const message of messages) {
      this.#messages.push(message);
      this.list.append(this.#item(message));
      this.#draw(this.#messages.length - 1);
    }
  }

  /** @param {Message[]} messages */
  #prepend(messages) {
    const fresh = messages.filter((message) => message.seq < this.first);
    this.#messages.unshift(...fresh);
    this.list.prepend(...fresh.map((message) => this.#item(message)));
    fresh.forEach((_, at) => this.#draw(at));
    this.#decorate(fresh.length);
  }

  #trimStart() {
    const extra = this.#messages.length - MOST;
    if (extra > 0) this.#drop(this.#messages.splice(0, extra));
    this.#decorate(0);
  }

  #trimEnd() {
    if (this.#messages.length > MOST) this.#drop(this.#messages.splice(MOST));
  }

  /** @param {Message[]} messages */
  #drop(messages) {
    for (const { seq } of messages) {
      this.#items.get(seq)?.remove();
      this.#items.delete(seq);
    }
  }

  /** @param {Message} message */
  #item(message) {
    const item = h("li", { tabIndex: -1, "data-seq": message.seq });
    this.#items.set(message.seq, item);
    return item;
  }

  /** @param {number} at */
  #draw(at) {
    const message = this.#messages[at];
    const item = message && this.#items.get(message.seq);
    if (!item) return;
    const focused = item.contains(document.activeElement);
    item.replaceChildren(messageView(message, this.room, this.actions));
    item.classList.toggle("own", message.sender_user_id === this.room.userId && message.type === "chat");
    item.classList.toggle("mentions-me", message.mentions_me === true);
    this.#decorate(at);
    if (focused) item.focus();
  }

  /** What a message shows because of the one before it. @param {number} at */
  #decorate(at) {
    const message = this.#messages[at];
    const item = message && this.#items.get(message.seq);
    if (!item) return;
    const before = this.#messages[at - 1];
    const newDay = !before || !sameDay(before.created_at, message.created_at);
    const unread = message.seq === this.#unreadFrom;
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
    this.#countAnswers(message);
  }

  /** Who came and went in a row becomes one line, which unfolds. @param {number} at a message of the row */
  #collapse(at) {
    if (!isNotice(this.#messages[at])) return;
    const isNext = (/** @type {number} */ n) => isNotice(this.#messages[n]) && this.#items.get(this.#messages[n].seq)?.classList.contains("notice-line");
    let [from, to] = [at, at];
    while (from > 0 && isNext(from) && isNotice(this.#messages[from - 1])) from -= 1;
    while (isNext(to + 1)) to += 1;
    const run = this.#messages.slice(from, to + 1);
    const items = run.map(({ seq }) => /** @type {HTMLLIElement} */ (this.#items.get(seq)));
    const folds = run.length >= RUN && !items.some((item) => item.dataset.unfolded);
    for (const [n, item] of items.entries()) {
      item.classList.toggle("in-run", folds && n > 0);
      item.classList.toggle("run", folds && n === 0);
      item.querySelector(":scope > .run-line")?.remove();
    }
    if (!folds) return;
    const unfold = () => {
      for (const item of items) item.dataset.unfolded = "yes";
      this.#keepPlace(() => this.#collapse(this.#messages.indexOf(run[0])));
    };
    items[0].append(runLine(run, unfold));
  }

  /** How many of the messages on the page answer one of them, for both. @param {Message} message */
  #countAnswers({ seq, reply_to_seq }) {
    for (const asked of [seq, reply_to_seq]) {
      const place = asked === null ? null : this.#items.get(asked)?.querySelector(".answers");
      if (!place) continue;
      const target = this.#messages.find((known) => known.seq === asked);
      const answers = this.#messages.filter((known) => known.reply_to_seq === asked);
      const count = answers.length;
      const fresh = this.#unreadFrom > 0 ? answers.filter((known) => known.seq >= this.#unreadFrom && known.sender_user_id !== this.room.userId).length : 0;
      const label = (count === 1 ? "1 answer" : `${count} answers`) + (fresh > 0 ? ` · ${fresh} new` : "");
      place.replaceChildren(...(count > 0 && target ? [h("button", { type: "button", class: "link", click: () => this.actions.thread(target) }, label)] : []));
    }
  }

  /** Changes the list while what the reader looks at stays where it is. @param {() => void} change */
  #keepPlace(change) {
    if (this.pinned && this.atEnd) return change();
    const top = this.scroller.getBoundingClientRect().top;
    const anchors = [...this.#items.values()].filter((item) => item.getBoundingClientRect().bottom > top);
    const anchor = anchors.sort((a, b) => Number(a.dataset.seq) - Number(b.dataset.seq))[0];
    // Its lower edge: what stands above its text may come or go with the message before it.
    const was = anchor?.getBoundingClientRect().bottom ?? 0;
    change();
    if (anchor?.isConnected) this.scroller.scrollTop += anchor.getBoundingClientRect().bottom - was;
  }

  /** How much of the page lies below what is seen. */
  get #below() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    return scrollHeight - scrollTop - clientHeight;
  }

  #toEnd() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.#top = this.scroller.scrollTop;
  }

  /** Keeps to the end from now on. */
  #follow() {
    this.pinned = true;
    this.missed = 0;
    this.#toEnd();
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
    const message = this.#messages.find(({ seq }) => seq === Number(item.dataset.seq));
    if (step) {
      let next = Reflect.get(item, step);
      while (next instanceof HTMLElement && next.classList.contains("in-run")) next = Reflect.get(next, step);
      if (!(next instanceof HTMLElement)) return;
      next.scrollIntoView({ block: "nearest" });
      void this.#scrolled();
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
