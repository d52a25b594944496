// One message on the page.

import { avatar } from "./avatar.js";
import { bdi, h, icon, iconButton, setRendered } from "./dom.js";
import { clock, full, iso } from "./time.js";

/** @import { Message } from "../types.js" */
/** @import { Room } from "./room.js" */

/** Longer texts are folded. */
const FOLD_CHARS = 1400;
const FOLD_LINES = 20;
/** How long one may change a message, as the server has it by default. */
const EDIT_WINDOW = 300;
export const QUICK_REACTIONS = ["👍", "❤️", "😄", "🎉", "🤔", "👀", "✅", "🙏"];

/**
 * What can be done with a message.
 * @typedef {object} Actions
 * @property {(message: Message) => void} reply
 * @property {(message: Message) => void} thread
 * @property {(message: Message) => void} edit
 * @property {(message: Message) => void} remove
 * @property {(message: Message, emoji: string, on: boolean) => void} react
 * @property {(message: Message, button: HTMLElement) => void} pick
 * @property {(seq: number) => void} jump
 * @property {(userId: string) => void} member
 */

/**
 * The inside of a message's list item.
 * @param {Message} message
 * @param {Room} room
 * @param {Actions} actions
 */
export function messageView(message, room, actions) {
  if (message.type === "system") {
    return h("p", { class: "system" }, ...noticeWords(message), " ", time(message));
  }
  const name = room.nameOf(message.sender_user_id, message.sender_user_name);
  const member = room.members.get(message.sender_user_id);
  const seed = member?.avatar_seed ?? message.sender_user_id;
  const body = h("div", { class: "body" },
    h("header", {},
      h("button", { type: "button", class: "name", click: () => actions.member(message.sender_user_id) }, bdi(name)),
      badge(message, room),
      time(message)),
    message.reply_to_seq ? quote(message.reply_to_seq, room, actions) : null,
    content(message, room),
    reactions(message, room, actions));
  return h("article", { "aria-label": `${name}, ${clock(message.created_at)}` },
    avatar(seed, room.isAgent(message)),
    body,
    message.deleted ? null : tools(message, room, actions));
}

/**
 * What the server tells. A name is set off from the words: it is its owner's, and they are not.
 * @param {Message} message
 */
function noticeWords({ event, content }) {
  const name = event ? h("b", { class: "named", title: event.user_id }, bdi(event.user_name ?? event.user_id)) : "";
  switch (event?.kind) {
    case "member_joined": return [name, " joined the room"];
    case "member_left": return [name, " left the room"];
    case "member_removed": return [name, " was removed by the owner"];
    default: return [bdi(content)];
  }
}

/** Person or agent, and where the agent comes from. @param {Message} message @param {Room} room */
function badge(message, room) {
  const member = room.members.get(message.sender_user_id);
  if (message.via !== "agent") {
    return member?.member_kind === "external_user" ? h("span", { class: "badge" }, "guest") : null;
  }
  const host = member?.agent_card_url ? hostOf(member.agent_card_url) : null;
  const from = host ?? (member?.member_kind === "external_agent" ? "guest" : null);
  return h("span", { class: "badge agent" }, "agent", from ? h("span", { class: "host" }, " · ", bdi(from)) : null);
}

/** @param {string} url */
export function hostOf(url) {
  try {
    const { protocol, host } = new URL(url);
    return protocol === "https:" || protocol === "http:" ? host : null;
  } catch {
    return null;
  }
}

/** @param {Message} message */
function time(message) {
  const edited = message.edited_at && !message.deleted ? h("span", { class: "edited", title: full(message.edited_at) }, " (edited)") : null;
  return h("span", { class: "when" }, h("time", { dateTime: iso(message.created_at), title: full(message.created_at) }, clock(message.created_at)), edited);
}

/** @param {Message} message @param {Room} room */
export function content(message, room) {
  if (message.deleted) return h("p", { class: "content gone" }, "This message was deleted.");
  const element = h("div", { class: "content", dir: "auto" });
  if (message.content_html) {
    setRendered(element, message.content_html);
    if (message.content.includes("@")) markMentions(element, room);
    for (const code of element.querySelectorAll("pre, table")) code.setAttribute("tabindex", "0");
  } else {
    element.classList.add("plain");
    element.textContent = message.content;
  }
  return isLong(message.content) ? folded(element) : element;
}

/** @param {string} text */
const isLong = (text) => text.length > FOLD_CHARS || text.split("\n", FOLD_LINES + 1).length > FOLD_LINES;

/** @param {HTMLElement} element */
function folded(element) {
  element.classList.add("folded");
  const button = h("button", {
    type: "button", class: "link fold", "aria-expanded": "false",
    click: () => {
      const open = element.classList.toggle("folded");
      button.setAttribute("aria-expanded", String(!open));
      button.textContent = open ? "Show all" : "Show less";
    },
  }, "Show all");
  return h("div", {}, element, button);
}

/** Marks the names of members after an @, as the server reads them. @param {HTMLElement} root @param {Room} room */
function markMentions(root, room) {
  const words = [...room.members.values()]
    .flatMap((member) => [member.user_name, member.user_id])
    .filter((word) => word !== null)
    .sort((a, b) => b.length - a.length)
    .map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (words.length === 0) return;
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])@(?:${words.join("|")})(?![\\p{L}\\p{N}_-])`, "giu");
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  /** @type {Text[]} */
  const found = [];
  while (texts.nextNode()) {
    const text = /** @type {Text} */ (texts.currentNode);
    if (!text.parentElement?.closest("code, pre, a") && pattern.test(text.data)) found.push(text);
    pattern.lastIndex = 0;
  }
  for (const text of found) {
    const parts = [];
    let from = 0;
    for (const match of text.data.matchAll(pattern)) {
      parts.push(text.data.slice(from, match.index), h("span", { class: "mention" }, match[0]));
      from = match.index + match[0].length;
    }
    text.replaceWith(...parts, text.data.slice(from));
  }
}

/** The message that is answered, as a quote that leads to it. @param {number} seq @param {Room} room @param {Actions} actions */
function quote(seq, room, actions) {
  const words = h("span", {}, `message ${seq}`);
  const button = h("button", { type: "button", class: "quote", click: () => actions.jump(seq) }, icon("reply"), words);
  room.quote(seq).then((quoted) => {
    if (!quoted) return;
    const text = quoted.deleted ? "deleted message" : quoted.content.replaceAll(/```\w*|`|\*\*|\s+/g, " ").slice(0, 140);
    words.replaceChildren(h("b", {}, bdi(room.nameOf(quoted.sender_user_id, quoted.sender_user_name))), " ", bdi(text));
  });
  return button;
}

/** @param {Message} message @param {Room} room @param {Actions} actions */
function reactions(message, room, actions) {
  const given = Object.entries(message.reactions);
  if (given.length === 0 || message.deleted) return null;
  return h("div", { class: "reactions" }, given.map(([emoji, { count, by_me }]) =>
    h("button", {
      type: "button", class: by_me ? "reaction mine" : "reaction", disabled: !room.canPost,
      "aria-pressed": String(by_me), "aria-label": `${emoji}, ${count}`,
      click: () => actions.react(message, emoji, !by_me),
    }, bdi(emoji), h("span", {}, count))));
}

/** @param {Message} message */
export const inEditWindow = (message) => Date.now() / 1000 - message.created_at < EDIT_WINDOW;

/** @param {Message} message @param {Room} room @param {Actions} actions */
function tools(message, room, actions) {
  const mine = message.sender_user_id === room.userId && inEditWindow(message);
  return h("div", { class: "tools", role: "group", "aria-label": "Message actions" },
    room.canPost && iconButton("react", "React", (event) => actions.pick(message, /** @type {HTMLElement} */ (event.currentTarget))),
    room.canPost && iconButton("reply", "Reply", () => actions.reply(message)),
    iconButton("thread", "Show thread", () => actions.thread(message)),
    room.canPost && mine && iconButton("edit", "Edit", () => actions.edit(message)),
    room.canPost && mine && iconButton("trash", "Delete", () => actions.remove(message)));
}
