// Taking part in a room: its stream, writing, and what can be done with messages.

import { words } from "./api.js";
import { Composer } from "./composer.js";
import { ConsentCards } from "./consents.js";
import { byId } from "./dom.js";
import { Outbox } from "./outbox.js";
import { renewInTime } from "./session.js";
import { Stream } from "./sse.js";
import { TypingList } from "./typing.js";
import { announce, confirm, notify } from "./ui.js";

/** @import { MemberUpdated, Message, ReadPosition, StreamEvent } from "../types.js" */
/** @import { ApiError } from "./api.js" */
/** @import { Room } from "./room.js" */
/** @import { Timeline } from "./timeline.js" */

const PRESENCE_MS = 30_000;
const SOON_MS = 3000;

export class MemberMode {
  /** @type {Composer | null} */ composer = null;
  /** @type {Outbox | null} */ outbox = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ soon;
  /** @type {Map<number, Promise<void>>} */ #refreshing = new Map();

  /**
   * @param {Room} room
   * @param {Timeline} timeline
   * @param {object} connection
   * @param {() => void} connection.onLive
   * @param {(ms: number, retryNow: () => void) => void} connection.onWaiting
   * @param {(error: ApiError) => void} connection.onRefused
   * @param {() => void} connection.onPinned
   * @param {() => void} connection.onAddressed somebody may have mentioned the person
   * @param {() => void} connection.onElsewhere something has happened in other rooms of the person's
   * @param {(position: ReadPosition) => void} connection.onRead the person has read a room further, elsewhere
   */
  constructor(room, timeline, { onLive, onWaiting, onRefused, onRead, onPinned, onAddressed, onElsewhere }) {
    this.onAddressed = onAddressed;
    this.onElsewhere = onElsewhere;
    this.onRead = onRead;
    this.onPinned = onPinned;
    this.room = room;
    this.timeline = timeline;
    this.typing = new TypingList(room, byId("typing"), (seq) => timeline.shown.some((message) => message.seq === seq && message.sender_user_id === room.userId));
    this.consents = new ConsentCards(room, byId("consents"));
    this.presence = setInterval(() => document.visibilityState === "visible" && this.#members(), PRESENCE_MS);
    // A key that came with a link ends when it ends: whoever made it may want that.
    this.stopRenewing = renewInTime(() => (room.key?.own ? room.key.due : Number.POSITIVE_INFINITY), async () => room.key && room.renew(room.key));
    if (room.canPost) this.#compose();
    this.stream = new Stream({
      room,
      cursor: String(timeline.latest),
      onEvent: (event) => this.#event(event),
      onLive: () => {
        onLive();
        void this.#members();
        void this.consents.load();
        this.outbox?.retry();
        this.#recount();
      },
      onWaiting: (ms, retryNow) => {
        this.typing.clear();
        onWaiting(ms, retryNow);
      },
      onRefused,
    });
  }

  close() {
    this.stream.close();
    this.typing.close();
    this.consents.close();
    clearInterval(this.presence);
    clearTimeout(this.soon);
    this.stopRenewing();
    byId("outbox").replaceChildren();
  }

  /** @param {string} content @param {number | null} replyTo */
  send(content, replyTo) {
    this.outbox?.send(content, replyTo);
    this.typing.sent();
  }

  /** @param {Message} message */
  reply(message) {
    this.composer?.reply(message);
  }

  /** @param {Message} message */
  edit(message) {
    this.composer?.edit(message);
  }

  /** @param {Message} message */
  async remove(message) {
    if (!(await confirm("Delete this message?", "Its text is gone for everybody.", "Delete"))) return;
    await this.#act(() => this.room.call(`/messages/${message.seq}`, { method: "DELETE" }));
  }

  /** @param {Message} message @param {string} emoji @param {boolean} on */
  react(message, emoji, on) {
    const path = `/messages/${message.seq}/reactions`;
    return this.#act(async () => {
      if (on) await this.room.call(path, { method: "POST", body: { emoji } });
      else await this.room.call(`${path}/${encodeURIComponent(emoji)}`, { method: "DELETE" });
      await this.#refresh(message.seq);
    });
  }

  #compose() {
    this.outbox = new Outbox(
      this.room,
      byId("outbox"),
      (seq) => this.#sent(seq),
      (letter) => this.composer?.restore(letter.content),
    );
    this.composer = new Composer(this.room, byId("composer"), {
      send: (content, replyTo) => this.send(content, replyTo),
      lastOwn: () => this.timeline.shown.findLast((message) => message.sender_user_id === this.room.userId && message.via === "web" && !message.deleted),
      leave: () => this.timeline.focusLast(),
      typing: () => this.typing.tell(),
    });
  }

  /** What was sent comes back with the stream; where that is broken, it is fetched. @param {number} seq */
  #sent(seq) {
    if (!this.timeline.pinned && this.timeline.latest <= seq) void this.timeline.showNewest().catch(() => {});
    setTimeout(() => {
      if (this.timeline.latest < seq) void this.timeline.showNewest().catch(() => {});
    }, 3000);
  }

  /** @param {() => Promise<unknown>} what */
  async #act(what) {
    try {
      await what();
    } catch (error) {
      notify(words(error), "error");
    }
  }

  /** @param {StreamEvent} event */
  async #event({ event, data }) {
    const value = parse(data);
    if (!value) return;
    switch (event) {
      case "message":
        return this.#message(value);
      case "message_edited":
      case "reaction_added":
      case "reaction_removed":
        void this.#refresh(value.seq);
        return;
      case "message_deleted":
        return this.timeline.markDeleted(value.seq);
      case "rules_updated":
        if (value.updated_by !== this.room.userId) notify(`The rules changed: version ${value.version}`);
        return;
      case "member_updated":
        return this.#memberUpdated(value);
      case "agent_typing":
        return this.typing.typing(value);
      case "agent_delta":
        return this.typing.delta(value);
      case "consent_updated":
        void this.consents.updated(value);
        return;
      case "pin_updated":
        this.onPinned();
        return;
      case "read":
        this.onRead(value);
        return;
      case "inbox":
        this.onElsewhere();
        return;
      case "thread_read":
        if (value.room_id === this.room.id) this.#recount();
        return;
      case "resync":
        return this.timeline.showNewest(true);
    }
  }

  /** @param {Message} message */
  #message(message) {
    if (message.type === "chat") this.typing.done(message.sender_user_id, message.reply_to_seq);
    if (!this.timeline.receive(message)) return;
    // Whom a message mentions the server knows, and tells whoever asks.
    if (message.type === "chat" && message.content.includes("@")) {
      void this.#refresh(message.seq);
      this.onAddressed();
    }
    if (message.type === "system") this.#membersSoon();
    else if (message.via === "web" && !this.room.members.get(message.sender_user_id)?.online) void this.#members();
    if (message.sender_user_id === this.room.userId && message.via === "web") return;
    const who = message.type === "system" ? "" : `${this.room.nameOf(message.sender_user_id, message.sender_user_name)}: `;
    announce(who + message.content.slice(0, 300));
  }

  /** Shows a message as it is now: the events tell that it changed, the server how. @param {number} seq */
  async #refresh(seq) {
    if (!this.timeline.has(seq)) return;
    const last = this.#refreshing.get(seq) ?? Promise.resolve();
    const next = last.then(async () => {
      const message = await this.room.message(seq).catch(() => null);
      if (!message) return;
      this.room.remember(message);
      this.timeline.update(message);
    });
    this.#refreshing.set(seq, next);
    await next;
    if (this.#refreshing.get(seq) === next) this.#refreshing.delete(seq);
  }

  /** A thread may have been read on another device. */
  #recount() {
    void this.timeline.recount().catch(() => {});
  }

  /** @param {MemberUpdated} member */
  #memberUpdated({ user_id, key_stale, reason }) {
    void this.#members();
    if (key_stale) notify(`${this.room.nameOf(user_id)} cannot be reached${reason ? `: ${reason}` : ""}`, "error");
  }

  /** Whoever joins opens the room a moment later. */
  #membersSoon() {
    void this.#members();
    clearTimeout(this.soon);
    this.soon = setTimeout(() => void this.#members(), SOON_MS);
  }

  #members() {
    return this.room.loadMembers().catch(() => {});
  }
}

/** What a frame holds; one that cannot be read must not stop the stream. @param {string} data @returns {any} */
function parse(data) {
  try {
    return JSON.parse(data);
  } catch {
    return null;
  }
}
