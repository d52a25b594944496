// Writing: the draft, answers, edits, and completing names.

import { avatar } from "./avatar.js";
import { words } from "./api.js";
import { bdi, h, iconButton } from "./dom.js";
import { inEditWindow } from "./message.js";
import { read, readJson, write, writeJson } from "./store.js";
import { announce, notify } from "./ui.js";

/** @import { Member, Message } from "../types.js" */
/** @import { Room } from "./room.js" */

const MAX_BYTES = 4096;
const WARN_BYTES = 3600;
const MOST_NAMES = 6;
const encoder = new TextEncoder();

export class Composer {
  /** @type {Message | null} */ #replyTo = null;
  /** @type {Message | null} */ #editing = null;
  /** @type {Member[]} */ #names = [];
  #chosen = 0;

  /**
   * @param {Room} room
   * @param {HTMLElement} place
   * @param {object} options
   * @param {(content: string, replyTo: number | null) => void} options.send
   * @param {() => Message | undefined} [options.lastOwn]
   * @param {() => void} options.leave where the focus goes with Escape
   * @param {() => void} [options.typing] something was written
   * @param {Message} [options.thread] what all that is written here answers
   */
  constructor(room, place, { send, lastOwn, leave, typing, thread }) {
    this.room = room;
    this.send = send;
    this.lastOwn = lastOwn;
    this.leave = leave;
    this.typing = typing;
    this.thread = thread;
    this.id = thread ? "compose-answer" : "compose";
    this.draft = `draft:${room.id}:${room.userId}${thread ? `:${thread.seq}` : ""}`;
    this.text = h("textarea", {
      id: this.id, rows: 1, placeholder: thread ? "Answer" : "Write a message", "aria-label": thread ? "Answer in this thread" : `Write to ${room.name}`,
      "aria-autocomplete": "list", "aria-haspopup": "listbox", "aria-controls": `${this.id}-names`, dir: "auto",
      input: () => {
        this.#typed();
        if (this.text.value && !this.#editing) this.typing?.();
      }, keydown: (/** @type {KeyboardEvent} */ event) => this.#key(event),
      blur: () => setTimeout(() => this.#showNames([]), 150),
    });
    this.context = h("div", { class: "context", hidden: true });
    this.count = h("span", { class: "count", role: "status" });
    this.list = h("ul", { id: `${this.id}-names`, class: "names", role: "listbox", "aria-label": "Members", hidden: true });
    this.button = iconButton("send", "Send", () => this.#submit(), { class: "icon-button primary" });
    place.replaceChildren(this.list, this.context, h("div", { class: "compose-row" }, this.text, this.count, this.button));
    this.text.value = read(this.draft) ?? "";
    const reply = readJson(`${this.draft}:reply`);
    if (reply) this.reply(reply, false);
    this.#typed();
  }

  focus() {
    this.text.focus();
  }

  /** @param {Message} message @param {boolean} [focus] */
  reply(message, focus = true) {
    this.#editing = null;
    this.#replyTo = message;
    writeJson(`${this.draft}:reply`, { ...message, content_html: undefined });
    const name = this.room.nameOf(message.sender_user_id, message.sender_user_name);
    this.#showContext("Answering ", bdi(name), ": ", bdi(message.content.slice(0, 120)));
    if (focus) this.focus();
  }

  /** @param {Message} message */
  edit(message) {
    this.#replyTo = null;
    this.#editing = message;
    this.text.value = message.content;
    this.#showContext("Editing your message");
    this.#typed();
    this.focus();
  }

  /** Puts a text back that could not be sent. @param {string} content */
  restore(content) {
    this.text.value = [this.text.value, content].filter(Boolean).join("\n");
    this.#typed();
    this.focus();
  }

  /** @param {...(Node | string)} words */
  #showContext(...words) {
    this.context.hidden = false;
    this.context.replaceChildren(h("span", { class: "cut" }, ...words), iconButton("close", "Cancel", () => this.#cancel()));
  }

  #cancel() {
    if (this.#editing) this.text.value = "";
    this.#editing = null;
    this.#replyTo = null;
    write(`${this.draft}:reply`, null);
    this.context.hidden = true;
    this.#typed();
    this.focus();
  }

  #typed() {
    if (!this.#editing) write(this.draft, this.text.value || null);
    this.#fit();
    const bytes = encoder.encode(this.text.value).length;
    const left = MAX_BYTES - bytes;
    this.count.textContent = bytes < WARN_BYTES ? "" : left >= 0 ? `${left} left` : `${-left} too many`;
    this.count.classList.toggle("over", left < 0);
    this.button.disabled = left < 0 || this.text.value.trim() === "";
    this.#complete();
  }

  /** As high as what is written. The row keeps its height meanwhile, so that nothing around it moves. */
  #fit() {
    const row = /** @type {HTMLElement} */ (this.text.parentElement);
    row.style.height = `${row.offsetHeight}px`;
    this.text.style.height = "auto";
    this.text.style.height = `${Math.min(this.text.scrollHeight, 240)}px`;
    row.style.height = "";
  }

  async #submit() {
    if (this.button.disabled) return;
    const content = this.text.value.trim();
    const editing = this.#editing;
    if (!editing) {
      this.send(content, this.#replyTo?.seq ?? this.thread?.seq ?? null);
      this.text.value = "";
      this.#cancel();
      return;
    }
    try {
      await this.room.call(`/messages/${editing.seq}`, { method: "PATCH", body: { content } });
      this.#cancel();
    } catch (error) {
      notify(words(error), "error");
    }
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.isComposing) return;
    if (this.#names.length > 0 && this.#keyInNames(event)) {
      event.preventDefault();
      return;
    }
    const touch = matchMedia("(pointer: coarse)").matches;
    if (event.key === "Enter" && !event.shiftKey && !touch) {
      event.preventDefault();
      void this.#submit();
    } else if (event.key === "Escape") {
      event.stopPropagation();
      if (this.#editing || this.#replyTo) this.#cancel();
      else this.leave();
    } else if (event.key === "ArrowUp" && this.text.value === "") {
      const last = this.lastOwn?.();
      if (last && inEditWindow(last)) this.edit(last);
      event.preventDefault();
    }
  }

  /** @param {KeyboardEvent} event */
  #keyInNames(event) {
    const count = this.#names.length;
    if (event.key === "ArrowDown") this.#choose((this.#chosen + 1) % count);
    else if (event.key === "ArrowUp") this.#choose((this.#chosen + count - 1) % count);
    else if (event.key === "Enter" || event.key === "Tab") this.#insert(this.#names[this.#chosen]);
    else if (event.key === "Escape") this.#showNames([]);
    else return false;
    return true;
  }

  /** Offers the members whose name begins with what stands after an @. */
  #complete() {
    const before = this.text.value.slice(0, this.text.selectionStart ?? 0);
    const match = /(?:^|[^\p{L}\p{N}])@([\p{L}\p{N}_.-]{0,32})$/u.exec(before);
    if (!match || document.activeElement !== this.text) return this.#showNames([]);
    const begun = match[1].toLowerCase();
    const fits = (/** @type {string | null} */ word) => word?.toLowerCase().split(/[\s(_.-]+/).some((part) => part.startsWith(begun)) || word?.toLowerCase().startsWith(begun);
    const members = [...this.room.members.values()].filter((member) => member.user_id !== this.room.userId);
    this.#showNames(members.filter((member) => fits(member.user_name) || fits(member.user_id)).slice(0, MOST_NAMES));
  }

  /** @param {Member[]} members */
  #showNames(members) {
    this.#names = members;
    this.list.hidden = members.length === 0;
    if (members.length > 0) announce(members.length === 1 ? "1 name" : `${members.length} names`);
    this.list.replaceChildren(...members.map((member, at) =>
      h("li", { id: `${this.id}-name-${at}`, role: "option", mousedown: (/** @type {Event} */ event) => { event.preventDefault(); this.#insert(member); } },
        avatar(member.avatar_seed, member.member_kind.endsWith("agent"), member.user_name, member.picture), bdi(member.user_name ?? member.user_id))));
    this.#choose(0);
  }

  /** @param {number} at */
  #choose(at) {
    this.#chosen = at;
    [...this.list.children].forEach((item, n) => item.setAttribute("aria-selected", String(n === at)));
    if (this.#names.length > 0) this.text.setAttribute("aria-activedescendant", `${this.id}-name-${at}`);
    else this.text.removeAttribute("aria-activedescendant");
  }

  /** @param {Member} member */
  #insert(member) {
    const at = this.text.selectionStart ?? this.text.value.length;
    const before = this.text.value.slice(0, at).replace(/@[^@]*$/u, `@${member.user_name ?? member.user_id} `);
    this.text.value = before + this.text.value.slice(at);
    this.text.setSelectionRange(before.length, before.length);
    this.#showNames([]);
    this.#typed();
  }
}
