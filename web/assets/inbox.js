// What waits for the person over all their rooms: how much is unread, and who mentioned them. The
// server keeps it, so it is the same on every device.

import { isCode } from "./api.js";
import { asPerson, identity } from "./session.js";

/** @import { InboxMention, InboxPage, InboxRoom, ReadPosition } from "../types.js" */

/** How often it is looked at by itself, for what no stream told of. */
const LOOK_MS = 20_000;
/** It is looked at no more often than this, however much happens. */
const LEAST_MS = 2000;
/** What is read within so long is told together. */
const TELL_MS = 1000;

/** Tells with `changed` that it has changed, with `mention` that somebody has mentioned the person. */
export class Inbox extends EventTarget {
  /** @type {InboxRoom[]} */ rooms = [];
  /** @type {InboxMention[]} */ mentions = [];
  /** @type {string | null} */ cursor = null;
  /** @type {Map<string, number>} what was read here and is not yet told to the server */ #reading = new Map();
  /** @type {Map<string, number>} what stood on this page, whether somebody looked at it or not */ #shownHere = new Map();
  /** @type {Set<string> | null} the mentions that were there before; none before the first look */ #known = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #timer;
  #lookedAt = 0;
  /** When it is looked at next. */ #due = Number.POSITIVE_INFINITY;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #telling;

  constructor() {
    super();
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && this.soon());
    window.addEventListener("online", () => this.soon());
  }

  /** Reads it anew. */
  async load() {
    this.#lookedAt = Date.now();
    const page = /** @type {InboxPage} */ (await asPerson("/inbox"));
    this.rooms = page.rooms.map((room) => this.#asRead(room));
    this.mentions = page.mentions;
    this.cursor = page.next_cursor;
    const name = (/** @type {InboxMention} */ { room_id, seq }) => `${room_id} ${seq}`;
    const known = this.#known;
    // What was read elsewhere is not told of; what this page has shown is, for it may stand behind another window.
    const isNew = (/** @type {InboxMention} */ { unread, room_id, seq }) => unread || seq <= (this.#shownHere.get(room_id) ?? 0);
    const fresh = known ? page.mentions.filter((mention) => !known.has(name(mention)) && isNew(mention)) : [];
    this.#known = new Set([...(known ?? []), ...page.mentions.map(name)]);
    this.dispatchEvent(new Event("changed"));
    for (const mention of fresh) this.dispatchEvent(new CustomEvent("mention", { detail: mention }));
    this.#again(LOOK_MS);
  }

  /** Nobody is signed in. */
  clear() {
    clearTimeout(this.#timer);
    this.#due = Number.POSITIVE_INFINITY;
    this.#known = null;
    this.rooms = [];
    this.mentions = [];
    this.cursor = null;
    this.dispatchEvent(new Event("changed"));
  }

  /** Something has happened: looks again as soon as it may. */
  soon() {
    this.#again(Math.max(0, this.#lookedAt + LEAST_MS - Date.now()));
  }

  /** Mentions before those that are known. */
  async more() {
    if (!this.cursor) return;
    const page = /** @type {InboxPage} */ (await asPerson(`/inbox?cursor=${encodeURIComponent(this.cursor)}`));
    this.mentions.push(...page.mentions);
    this.cursor = page.next_cursor;
  }

  /** @param {string} id */
  of(id) {
    return this.rooms.find(({ room_id }) => room_id === id) ?? null;
  }

  /** What others have said in all rooms and the person has not read. */
  get unread() {
    return this.rooms.reduce((sum, { unread }) => sum + unread, 0);
  }

  /** How often the person was mentioned since. */
  get mentioned() {
    return this.rooms.reduce((sum, { mentions }) => sum + mentions, 0);
  }

  /** The person has read a room so far, on this device. @param {string} id @param {number} seq */
  read(id, seq) {
    const room = this.of(id);
    if (!identity() || seq <= Math.max(room?.read_seq ?? 0, this.#reading.get(id) ?? 0)) return;
    this.#reading.set(id, seq);
    this.#shownHere.set(id, seq);
    this.#telling ??= setTimeout(() => void this.#tell(), TELL_MS);
    this.rooms = this.rooms.map((known) => this.#asRead(known));
    this.dispatchEvent(new Event("changed"));
  }

  /** On another one. @param {ReadPosition} position */
  readElsewhere({ room_id, read_seq }) {
    const room = this.of(room_id);
    if (room && read_seq > room.read_seq) this.soon();
  }

  /** A room with what is read here already. @param {InboxRoom} room @returns {InboxRoom} */
  #asRead(room) {
    const seq = this.#reading.get(room.room_id) ?? 0;
    if (seq <= room.read_seq) return room;
    return seq >= room.last_seq ? { ...room, read_seq: seq, unread: 0, mentions: 0 } : { ...room, read_seq: seq };
  }

  async #tell() {
    this.#telling = undefined;
    for (const [id, seq] of this.#reading) {
      try {
        await asPerson(`/rooms/${id}/read`, { method: "PUT", body: { seq } });
      } catch (error) {
        // A room that the person is no member of has no position.
        if (!isCode(error, "not_found", "not_a_member", "forbidden")) continue;
      }
      if (this.#reading.get(id) === seq) this.#reading.delete(id);
    }
    this.soon();
  }

  /** Looks again after so long, unless that is about to happen sooner. @param {number} ms */
  #again(ms) {
    const due = Date.now() + ms;
    if (due >= this.#due) return;
    this.#due = due;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#due = Number.POSITIVE_INFINITY;
      if (!identity()) return;
      if (this.#reading.size > 0) this.#telling ??= setTimeout(() => void this.#tell(), TELL_MS);
      // What fails is tried again later; the list of rooms tells so.
      this.load().catch(() => this.#again(LOOK_MS));
    }, ms);
  }
}
