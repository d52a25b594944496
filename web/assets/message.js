// One message on the page.

import { avatar } from "./avatar.js";
import { bdi, h, icon, iconButton, setRendered } from "./dom.js";
import { mentionsIn } from "./names.js";
import { clock, full, iso } from "./time.js";
import { copy } from "./ui.js";

/** @import { Message, Usage } from "../types.js" */
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
 * @property {(message: Message) => boolean} canEdit
 * @property {(message: Message) => void} remove
 * @property {(message: Message, emoji: string, on: boolean) => void} react
 * @property {(message: Message, button: HTMLElement) => void} pick
 * @property {(seq: number) => void} jump
 * @property {(userId: string) => void} member
 * @property {(message: Message) => boolean} canPin
 * @property {(message: Message) => boolean} isPinned
 * @property {(message: Message) => void} pin or takes the pin away
 * @property {(message: Message) => boolean} canRetry whether the agent may be asked to answer anew
 * @property {(message: Message) => void} retry
 * @property {(message: Message) => void} link copies a link to it
 */

/**
 * The inside of a message's list item.
 * @param {Message} message
 * @param {Room} room
 * @param {Actions} actions
 */
export function messageView(message, room, actions) {
  if (message.event?.kind === "tour") return h("article", { class: "tour", "aria-label": "A tour" }, content(message, room));
  if (message.type === "system") {
    return h("p", { class: "system" }, ...noticeWords(message), " ", time(message, room));
  }
  const name = room.nameOf(message.sender_user_id, message.sender_user_name);
  const body = h("div", { class: "body" },
    h("header", {},
      h("button", { type: "button", class: "name", click: () => actions.member(message.sender_user_id) }, bdi(name)),
      badge(message, room),
      time(message, room)),
    message.reply_to_seq ? quote(message.reply_to_seq, room, actions) : null,
    content(message, room),
    reactions(message, room, actions),
    message.usage && !message.deleted ? usageLine(message.usage) : null,
    h("div", { class: "answers" }));
  return h("article", { "aria-label": `${name}, ${clock(message.created_at)}` },
    avatar(room.seedOf(message.sender_user_id, message.sender_user_name), room.isAgent(message), name, room.members.get(message.sender_user_id)?.picture),
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

/** Whether it tells that somebody came or went. @param {Message | undefined} message */
export const isNotice = (message) => message?.event?.kind === "member_joined" || message?.event?.kind === "member_left";

/** Those who came and went in a row, as one line. @param {Message[]} run @param {() => void} unfold */
export function runLine(run, unfold) {
  const names = (/** @type {string} */ kind) => [...new Set(run.filter(({ event }) => event?.kind === kind).map(({ event }) => event?.user_name ?? event?.user_id ?? ""))];
  const part = (/** @type {string[]} */ those, /** @type {string} */ did) => {
    const shown = those.slice(0, 2).flatMap((name, n) => [n > 0 ? ", " : "", h("b", { class: "named" }, bdi(name))]);
    return those.length === 0 ? [] : [...shown, those.length > 2 ? ` and ${those.length - 2} more ` : " ", did];
  };
  const [came, went] = [part(names("member_joined"), "joined"), part(names("member_left"), "left")];
  return h("p", { class: "system run-line" }, ...came, came.length > 0 && went.length > 0 ? "; " : "", ...went, " ",
    h("button", { type: "button", class: "link", click: unfold }, "Show each"));
}

/** Person or agent, and where the agent comes from. @param {Message} message @param {Room} room */
function badge(message, room) {
  const member = room.members.get(message.sender_user_id);
  if (message.via === "webhook" || message.via === "import") return h("span", { class: "badge" }, message.via === "import" ? "imported" : "webhook");
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

/** Where a message is found. @param {Room} room @param {number} seq */
export const permalink = (room, seq) => `/view?room=${encodeURIComponent(room.id)}&seq=${seq}`;

/** @param {Message} message @param {Room} room */
function time(message, room) {
  const edited = message.edited_at && !message.deleted ? h("span", { class: "edited", title: full(message.edited_at) }, " (edited)") : null;
  return h("span", { class: "when" }, h("a", { class: "permalink", href: permalink(room, message.seq), title: full(message.created_at) }, h("time", { dateTime: iso(message.created_at) }, clock(message.created_at))), edited);
}

/** @param {Message} message @param {Room} room */
export function content(message, room) {
  if (message.deleted) return h("p", { class: "content gone" }, "This message was deleted.");
  const element = h("div", { class: "content", dir: "auto" });
  if (message.content_html) {
    setRendered(element, message.content_html);
    if (message.content.includes("@")) markMentions(element, room);
    for (const code of element.querySelectorAll("pre, table")) code.setAttribute("tabindex", "0");
    for (const code of element.querySelectorAll("pre")) withCopyButton(code);
  } else {
    element.classList.add("plain");
    element.textContent = message.content;
  }
  return isLong(message.content) && message.type === "chat" ? folded(element) : element;
}

/** @param {Element} code */
function withCopyButton(code) {
  const text = code.textContent ?? "";
  const frame = h("div", { class: "code" });
  code.replaceWith(frame);
  frame.append(code, iconButton("copy", "Copy the code", () => copy(text, "the code")));
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

/** Marks whom an @ means. @param {HTMLElement} root @param {Room} room */
function markMentions(root, room) {
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  /** @type {Text[]} */
  const found = [];
  while (texts.nextNode()) {
    const text = /** @type {Text} */ (texts.currentNode);
    if (text.data.includes("@") && !text.parentElement?.closest("code, pre, a")) found.push(text);
  }
  for (const text of found) {
    const parts = [];
    let at = 0;
    for (const { from, to } of mentionsIn(text.data, room)) {
      parts.push(text.data.slice(at, from), h("span", { class: "mention" }, text.data.slice(from, to)));
      at = to;
    }
    text.replaceWith(...parts, text.data.slice(at));
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

/** What the answer cost, as the agent says. @param {Usage} usage */
function usageLine({ model, seconds, input_tokens, output_tokens, cost_usd, tools }) {
  const tokens = (input_tokens ?? 0) + (output_tokens ?? 0);
  const parts = [
    model,
    seconds === undefined ? null : `${seconds.toLocaleString(undefined, { maximumFractionDigits: seconds < 10 ? 1 : 0 })} s`,
    tokens > 0 ? `${tokens.toLocaleString()} tokens` : null,
    cost_usd ? `$${cost_usd.toLocaleString(undefined, { maximumSignificantDigits: 2 })}` : null,
    tools && tools.length > 0 ? tools.join(", ") : null,
  ].filter((part) => part !== null && part !== undefined);
  const title = tokens > 0 ? `${(input_tokens ?? 0).toLocaleString()} read, ${(output_tokens ?? 0).toLocaleString()} written` : "";
  return h("p", { class: "usage", title }, bdi(parts.join(" · ")));
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
  const mine = actions.canEdit(message);
  return h("div", { class: "tools", role: "group", "aria-label": "Message actions" },
    room.canPost && iconButton("react", "React", (event) => actions.pick(message, /** @type {HTMLElement} */ (event.currentTarget))),
    room.canPost && iconButton("reply", "Reply", () => actions.reply(message)),
    iconButton("thread", "Show thread", () => actions.thread(message)),
    iconButton("link", "Copy link", () => actions.link(message)),
    actions.canPin(message) && iconButton("pin", actions.isPinned(message) ? "Unpin" : "Pin", () => actions.pin(message)),
    actions.canRetry(message) && iconButton("again", "Try again", () => actions.retry(message)),
    mine && iconButton("edit", "Edit", () => actions.edit(message)),
    mine && iconButton("trash", "Delete", () => actions.remove(message)));
}
