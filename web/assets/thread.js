// The thread of a message: the chain of replies that leads to it, and the answers on the page.

import { words } from "./api.js";
import { avatar } from "./avatar.js";
import { bdi, h } from "./dom.js";
import { content } from "./message.js";
import { clock } from "./time.js";

/** @import { Message } from "../types.js" */
/** @import { Room } from "./room.js" */

/**
 * @param {Room} room
 * @param {number} seq
 * @param {Message[]} shown
 * @param {{jump: (seq: number) => void, reply: (message: Message) => void}} actions
 */
export async function threadView(room, seq, shown, { jump, reply }) {
  /** @type {Message[]} */
  let chain;
  try {
    ({ thread: chain } = await room.call(`/messages/${seq}/thread?render=html`));
  } catch (error) {
    return h("p", { class: "note" }, words(error));
  }
  const known = new Map(chain.map((message) => [message.seq, message]));
  for (const message of shown) {
    if (message.reply_to_seq && known.has(message.reply_to_seq)) known.set(message.seq, message);
  }
  const messages = [...known.values()].sort((a, b) => a.seq - b.seq);
  const target = known.get(seq);
  return h("div", { class: "thread" },
    h("ol", {}, messages.map((message) => {
      const name = room.nameOf(message.sender_user_id, message.sender_user_name);
      return h("li", { class: message.seq === seq ? "current" : undefined },
        avatar(room.members.get(message.sender_user_id)?.avatar_seed ?? message.sender_user_id, room.isAgent(message)),
        h("div", { class: "body" },
          h("header", {}, h("button", { type: "button", class: "name", click: () => jump(message.seq) }, bdi(name)),
            h("span", { class: "when" }, clock(message.created_at))),
          content(message, room)));
    })),
    room.canPost && target && !target.deleted && h("button", { type: "button", click: () => reply(target) }, "Answer in this thread"));
}
