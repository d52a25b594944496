// One room as this page knows it: who is in it, who is looking, and how to ask the server about it.

import { ApiError, answer, inTime, refusal, send } from "./api.js";
import { anotherKey } from "./keys.js";
import { asPerson, identity } from "./session.js";
import { read, write } from "./store.js";

/** @import { Me, Member, Message, Page } from "../types.js" */
/** @import { RoomKey } from "./keys.js" */

/** Higher than any seq: the newest messages stand before it. */
const NEWEST = Number.MAX_SAFE_INTEGER;
/** Quotes of messages that are not on the page, at the most. */
const MOST_QUOTES = 200;

export class Room extends EventTarget {
  /** @type {Map<string, Member>} */ members = new Map();
  /** @type {Me | null} */ me = null;
  /** Those that a visitor knows of: their names, and what their pictures are drawn from. @type {Map<string, string>} */ named = new Map();
  name = "";
  topic = "";
  archived = false;
  /** @type {"private" | "public"} */ visibility = "private";
  /** Up to where the person had read when they came; the answers after it are new to them. */
  readBefore = 0;
  /** Is told how far the person has read. @type {(seq: number) => void} */ onRead = () => {};
  /** @type {Map<number, Promise<Message | null>>} */ #quotes = new Map();
  /** @type {Promise<void> | null} */ #renewing = null;

  /**
   * @param {string} id
   * @param {RoomKey | null} key nothing for a visitor
   */
  constructor(id, key) {
    super();
    this.id = id;
    this.key = key;
  }

  /** The person who is signed in, unless the key is another's. */
  get identity() {
    const who = identity();
    return who && (!this.key || this.key.userId === who.userId) ? who : null;
  }

  get userId() {
    return this.key?.userId ?? null;
  }

  /** Whether the person may manage the room from here. */
  get isOwner() {
    return this.me?.role === "owner" && this.identity !== null;
  }

  get canPost() {
    return this.key !== null && this.key.canPost && !this.archived;
  }

  /**
   * Asks about the room as member or visitor, and gives the response. A key that has ended is
   * replaced where there is another to be had.
   * @param {string} path
   * @param {import("./api.js").Options} [options]
   */
  async send(path, options = {}) {
    const { key } = this;
    const ask = () => send(`/rooms/${this.id}${path}`, { ...options, token: this.key?.token ?? null });
    const response = await ask();
    if (!key || response.status !== 401) return response;
    await this.renew(key, await refusal(response));
    return ask();
  }

  /** Asks like `send`, and gives the answer. @param {string} path @param {import("./api.js").Options} [options] */
  async call(path, options) {
    return answer(await this.send(path, inTime(options)));
  }

  /** Asks as the person who is signed in: for what a room key does not do. @param {string} path @param {import("./api.js").Options} [options] */
  manage(path, options) {
    return this.identity ? asPerson(`/rooms/${this.id}${path}`, options) : this.call(path, options);
  }

  /** Asks as the member itself: with the sign-in where the key is one that may be shared. @param {string} path @param {import("./api.js").Options} [options] */
  asMember(path, options) {
    return this.key?.own ? this.call(path, options) : this.manage(path, options);
  }

  /**
   * Gets a key in place of this one, once for all who ask.
   * @param {RoomKey} old
   * @param {ApiError} [refused] what is thrown where there is no other
   */
  async renew(old, refused) {
    if (this.key !== old) return;
    this.#renewing ??= anotherKey(this.id, old)
      .then((key) => { this.key = key; })
      .finally(() => { this.#renewing = null; });
    try {
      await this.#renewing;
    } catch (error) {
      throw error instanceof ApiError && error.isTransient ? error : (refused ?? error);
    }
  }

  async loadMe() {
    const [me, about] = /** @type {[Me, {topic?: string}]} */ (await Promise.all([this.call("/me"), this.call("")]));
    this.me = me;
    this.name = me.room.name;
    this.topic = about.topic ?? "";
    this.archived = me.room.archived;
    this.visibility = me.room.visibility;
    this.dispatchEvent(new Event("changed"));
  }

  async loadMembers() {
    const { members } = await this.call("/members");
    this.members = new Map(members.map((/** @type {Member} */ member) => [member.user_id, member]));
    this.dispatchEvent(new Event("members"));
  }

  /**
   * @param {{since?: number, before?: number, limit?: number}} range
   * @returns {Promise<Page>}
   */
  page({ since, before, limit = 50 }) {
    const query = new URLSearchParams({ limit: String(limit), render: "html", answers: String(this.readBefore || NEWEST) });
    if (since === undefined) query.set("before", String(before ?? NEWEST));
    else query.set("since", String(since));
    return this.call(`/messages?${query}`);
  }

  /** One message, as it is now. @param {number} seq @returns {Promise<Message | null>} */
  async message(seq) {
    const { messages } = await this.page({ since: seq - 1, limit: 1 });
    return messages[0]?.seq === seq ? messages[0] : null;
  }

  /** One message for a quote, asked for once. @param {number} seq */
  quote(seq) {
    let quote = this.#quotes.get(seq);
    if (!quote) {
      quote = this.message(seq).catch(() => null);
      if (this.#quotes.size >= MOST_QUOTES) this.#quotes.clear();
      this.#quotes.set(seq, quote);
    }
    return quote;
  }

  /** What is quoted changes with the message. @param {Message} message */
  remember(message) {
    if (this.#quotes.has(message.seq)) this.#quotes.set(message.seq, Promise.resolve(message));
  }

  /** What may stand after an @. */
  get mentionable() {
    const known = [...this.members.values()].flatMap((member) => [member.user_name, member.user_id]);
    return [...known, ...this.named.keys()].filter((word) => word !== null);
  }

  /** What somebody's picture is drawn from. @param {string} userId @param {string | null} [name] */
  seedOf(userId, name) {
    return this.members.get(userId)?.avatar_seed ?? this.named.get(name ?? "") ?? userId;
  }

  /** @param {string} userId @param {string | null} [snapshot] the name when the message was written */
  nameOf(userId, snapshot) {
    return snapshot ?? this.members.get(userId)?.user_name ?? userId;
  }

  /** @param {Message} message */
  isAgent(message) {
    return message.via === "agent";
  }

  /** Up to where the person has read. */
  get lastRead() {
    return Number(read(`read:${this.id}`) ?? "0") || 0;
  }

  set lastRead(seq) {
    if (seq > this.lastRead) write(`read:${this.id}`, String(seq));
    this.onRead(seq);
  }
}

/** What a member is, in words. @param {string} kind */
export function kindWords(kind) {
  return (
    {
      starchild_agent: "agent of a Starchild user",
      starchild_user: "person",
      external_agent: "agent that came with an invite",
      external_user: "guest",
    }[kind] ?? kind
  );
}
