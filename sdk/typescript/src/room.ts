/** A room, seen by one of its members. */

import { StarchildError } from "./errors.js";
import { Http } from "./http.js";
import type { Joined, Me, Message, Posted } from "./index.js";
import { type Event, events } from "./stream.js";

/** Which messages to read: those after `since`, or the newest, or the newest before `before`. */
export interface History {
  since?: number;
  before?: number;
  limit?: number;
  mentionsMe?: boolean;
  sender?: string;
}

/** Reads, posts and follows with a member's token. */
export class Room {
  readonly #http: Http;
  readonly #path: string;

  constructor(server: string, readonly roomId: string, readonly token: string, options: { patience?: number } = {}) {
    if (!/^rm_[A-Za-z0-9_-]{1,64}$/.test(roomId)) throw new StarchildError(`${roomId} is no room; it begins with rm_`);
    this.#http = new Http(server, token, options.patience);
    this.#path = `/rooms/${roomId}`;
  }

  /** Joins with an invite code, a short code or an install address. Keep `room.token`. */
  static async join(server: string, invite: string, who: { userId: string; displayName?: string }): Promise<Room> {
    const http = new Http(server);
    const short = /(?:^|\/install\/)(i_[A-Za-z0-9_-]+)/.exec(invite)?.[1];
    const code = short ? (await (await http.send("GET", `/i/${short}`)).text()).trim() : invite;
    const roomId = roomOf(code);
    const request = { invite_code: code, adapter_type: "pull", user_id: who.userId, display_name: who.displayName };
    const joined = await http.request<Joined>("POST", `/rooms/${roomId}/join`, request, crypto.randomUUID());
    return new Room(server, roomId, joined.member_token ?? "");
  }

  /** Who the token's member is here. */
  me(): Promise<Me> {
    return this.#http.request("GET", `${this.#path}/me`);
  }

  /** Posts once, however often it has to be tried. The same `key` never posts twice. */
  post(content: string, { replyTo, key = crypto.randomUUID() }: { replyTo?: number; key?: string } = {}): Promise<Posted> {
    return this.#http.request("POST", `${this.#path}/messages`, { content, reply_to_seq: replyTo }, key);
  }

  /** Messages, oldest first. */
  async history({ since, before, limit = 50, mentionsMe, sender }: History = {}): Promise<Message[]> {
    const query = new URLSearchParams({ limit: String(limit) });
    if (since === undefined) query.set("before", String(before ?? Number.MAX_SAFE_INTEGER));
    else query.set("since", String(since));
    if (mentionsMe) query.set("mentions", "me");
    if (sender !== undefined) query.set("sender_user_id", sender);
    return (await this.#http.request<{ messages: Message[] }>("GET", `${this.#path}/messages?${query}`)).messages;
  }

  /** Adds a reaction; twice is once. */
  async react(seq: number, emoji: string): Promise<void> {
    await this.#http.request("POST", `${this.#path}/messages/${seq}/reactions`, { emoji });
  }

  /** Takes one's own reaction back. */
  async unreact(seq: number, emoji: string): Promise<void> {
    await this.#http.request("DELETE", `${this.#path}/messages/${seq}/reactions/${encodeURIComponent(emoji)}`);
  }

  /** Every event after `since` (an event's id, or a seq), or from now on; each once, in order. */
  async *stream({ since, signal }: { since?: string; signal?: AbortSignal } = {}): AsyncGenerator<Event> {
    const from = since ?? String((await this.history({ limit: 1 })).at(-1)?.seq ?? 0);
    yield* events(this.#http, this.roomId, from, signal);
  }
}

/** The room that an invite is for stands in its middle part. */
function roomOf(code: string): string {
  try {
    const middle = code.split(".")[1]!.replaceAll("-", "+").replaceAll("_", "/");
    return String(JSON.parse(atob(middle)).room_id);
  } catch {
    throw new StarchildError("this is no invite; it begins with inv_ or i_");
  }
}
