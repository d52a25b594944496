// The thread of a message: the chain of replies that leads to it, and the answers that followed.

import { words } from "./api.js";
import { avatar } from "./avatar.js";
import { Composer } from "./composer.js";
import { bdi, h } from "./dom.js";
import { content } from "./message.js";
import { clock } from "./time.js";

/** @import { Message } from "../types.js" */
/** @import { Room } from "./room.js" */

/** How many messages are looked at for answers before the reader is asked: pages, and messages on each. */
const AS_MEMBER = { pages: 5, size: 200 };
const AS_VISITOR = { pages: 2, size: 50 };
/** What is read within so long is told together. */
const SOON_MS = 1000;

export class Thread {
  /** @type {Map<number, Message>} */ #known = new Map();
  /** @type {WeakMap<Message, HTMLElement>} */ #items = new WeakMap();
  /** Answers were looked for up to here. */
  #readTo = 0;
  /** All answers up to here are shown; once there are no others, those that come as well. */
  #isShownTo = 0;
  /** How far the reader had come when they opened it; what is after it is new. */
  #readBefore = 0;
  /** How far the reader has come, as the server knows. */
  #told = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #telling;
  #list = h("ol", {});
  #foot = h("div", { class: "row" });
  #answer = h("div", { class: "answer-box" });

  /**
   * @param {Room} room
   * @param {number} seq
   * @param {() => Message[]} shown the messages on the page
   * @param {{jump: (seq: number) => void, send: (content: string, replyTo: number | null) => void, leave: () => void, typing: () => void, isShown: () => boolean, seen: (seqs: Iterable<number>) => void}} actions
   */
  constructor(room, seq, shown, actions) {
    this.room = room;
    this.seq = seq;
    this.shown = shown;
    this.actions = actions;
    this.#readBefore = room.readBefore;
    this.element = h("div", { class: "thread" }, this.#list, this.#foot, this.#answer);
    void this.#open();
  }

  /** Takes those of these messages, oldest first, that belong to the thread, as they are now. @param {Message[]} messages */
  take(messages) {
    let changed = false;
    for (const message of messages) {
      const belongs = this.#known.has(message.seq) || (message.reply_to_seq !== null && this.#known.has(message.reply_to_seq));
      if (!belongs || this.#known.get(message.seq) === message) continue;
      this.#known.set(message.seq, message);
      changed = true;
    }
    if (changed) this.#draw();
  }

  async #open() {
    this.#tell(h("p", { class: "note" }, "Loading…"));
    try {
      const { thread, read_seq } = await this.room.call(`/messages/${this.seq}/thread?render=html`);
      this.#readBefore = read_seq ?? this.#readBefore;
      for (const message of thread) this.#known.set(message.seq, message);
      this.#readTo = thread[0]?.seq ?? this.seq;
      this.#draw();
      this.#compose();
      this.take(this.shown());
    } catch (error) {
      return this.#tell(h("p", { class: "note", role: "alert" }, words(error)));
    }
    await this.#lookOn();
  }

  /** Looks for answers that are not on the page. */
  async #lookOn() {
    const { pages, size } = this.room.key ? AS_MEMBER : AS_VISITOR;
    this.#tell(h("p", { class: "note" }, "Looking for answers…"));
    try {
      for (let page = 0; page < pages; page++) {
        if (!(await this.#look(size))) continue;
        this.#readTo = Number.POSITIVE_INFINITY;
        return this.#tell();
      }
      this.#tell(h("button", { type: "button", click: () => this.#lookOn() }, "Look for later answers"));
    } catch (error) {
      this.#tell(h("p", { class: "note", role: "alert" }, words(error)), h("button", { type: "button", click: () => this.#lookOn() }, "Try again"));
    } finally {
      this.#isShownTo = this.#readTo;
      this.seen();
    }
  }

  /** Looks at the next messages; gives whether there are no more. @param {number} limit */
  async #look(limit) {
    const shown = this.shown();
    const [first, last] = [shown[0]?.seq ?? 0, shown.at(-1)?.seq ?? 0];
    // What is on the page was taken already.
    if (this.#readTo >= first - 1) this.#readTo = Math.max(this.#readTo, last);
    const { messages, latest_seq } = await this.room.page({ since: this.#readTo, limit });
    this.take(messages);
    this.#readTo = messages.at(-1)?.seq ?? latest_seq;
    return this.#readTo >= latest_seq;
  }

  /** Where one answers: what is not sent yet is kept for each thread. */
  #compose() {
    const target = this.#known.get(this.seq);
    if (!this.room.canPost || !target || target.deleted) return;
    const { send, leave, typing } = this.actions;
    new Composer(this.room, this.#answer, { send, leave, typing, thread: target });
  }

  /** @param {...Node} content what stands below the messages */
  #tell(...content) {
    this.#foot.replaceChildren(...content);
  }

  #draw() {
    const messages = [...this.#known.values()].sort((a, b) => a.seq - b.seq);
    this.#list.replaceChildren(...messages.map((message) => this.#item(message)));
    const isNew = (/** @type {Message} */ { seq, sender_user_id }) => this.#readBefore > 0 && seq > this.#readBefore && sender_user_id !== this.room.userId;
    const first = messages.findIndex(isNew);
    [...this.#list.children].forEach((item, at) => item.classList.toggle("first-new", at === first));
    this.seen();
  }

  /** Takes note of what the reader sees, here and on the server: from its first answer on, a thread that was opened is read apart from its room. */
  seen() {
    if (document.visibilityState !== "visible" || !this.actions.isShown()) return;
    this.actions.seen(this.#known.keys());
    const newest = Math.max(0, ...this.#known.keys());
    const seq = Math.min(newest, this.#isShownTo);
    const isOwn = this.room.key?.own || (this.room.key && this.room.identity);
    if (!isOwn || this.#known.size < 2 || seq <= this.#told) return;
    clearTimeout(this.#telling);
    this.#telling = setTimeout(() => void this.#tellRead(seq), SOON_MS);
  }

  /** @param {number} seq */
  async #tellRead(seq) {
    try {
      await this.room.asMember(`/messages/${this.seq}/thread/read`, { method: "PUT", body: { seq } });
      this.#told = Math.max(this.#told, seq);
    } catch {
      // It is told when the server is back, or the thread is looked at again.
    }
  }

  /** @param {Message} message */
  #item(message) {
    const known = this.#items.get(message);
    if (known) return known;
    const { room } = this;
    const name = room.nameOf(message.sender_user_id, message.sender_user_name);
    const item = h("li", { class: message.seq === this.seq ? "current" : undefined, "data-seq": message.seq },
      avatar(room.seedOf(message.sender_user_id, message.sender_user_name), room.isAgent(message), name, room.members.get(message.sender_user_id)?.picture),
      h("div", { class: "body" },
        h("header", {}, h("button", { type: "button", class: "name", click: () => this.actions.jump(message.seq) }, bdi(name)),
          h("span", { class: "when" }, clock(message.created_at))),
        content(message, room)));
    this.#items.set(message, item);
    return item;
  }
}
