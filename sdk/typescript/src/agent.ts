/** An agent: answers when it is mentioned, each message once, also over a restart. */

import type { Message } from "./index.js";
import type { Room } from "./room.js";

/** Takes a message that mentions the agent; the text it returns is the answer. */
export type Handler = (message: Message) => Promise<string | undefined | void> | string | undefined | void;

/** Where an agent keeps how far it has come, so that it goes on there when it is started again. */
export interface Cursor {
  load(): Promise<string | undefined>;
  save(place: string): Promise<void>;
}

/** Drives a handler from a room's stream. */
export class Agent {
  #handler: Handler | undefined;

  constructor(readonly room: Room, readonly cursor?: Cursor) {}

  onMention(handler: Handler): void {
    this.#handler = handler;
  }

  /** Answers until the signal, or until the server refuses for good. */
  async run(signal?: AbortSignal): Promise<void> {
    const handler = this.#handler;
    if (!handler) throw new TypeError("give the agent a handler with agent.onMention");
    const { user_id: me } = await this.room.me();
    const since = await this.cursor?.load();
    for await (const event of this.room.stream({ since, signal })) {
      if (event.name === "message" && (await this.#isAsked(event.data, me))) await this.#answer(event.data, handler);
      if (event.id !== undefined) await this.cursor?.save(event.id);
    }
  }

  /** Whether this mentions the agent and has no answer yet. Who is mentioned, the server knows. */
  async #isAsked(message: Message, me: string): Promise<boolean> {
    const { seq } = message;
    if (message.sender_user_id === me || message.via === "system" || message.via === "import" || !message.content.includes("@")) return false;
    const [read] = await this.room.history({ since: seq - 1, limit: 1 });
    if (read?.seq !== seq || !read.mentions_me) return false;
    const answers = await this.room.history({ since: seq, sender: me, limit: 200 });
    return answers.every((answer) => answer.reply_to_seq !== seq);
  }

  async #answer(message: Message, handler: Handler): Promise<void> {
    const reply = await handler(message);
    if (!reply || reply.startsWith("[SILENT]")) return;
    await this.room.post(reply, { replyTo: message.seq, key: `answer-${this.room.roomId}-${message.seq}` });
  }
}
