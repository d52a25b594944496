// Messages that the room's owner keeps at hand, in a line above the others.

import { words } from "./api.js";
import { bdi, h, icon, iconButton } from "./dom.js";
import { day } from "./time.js";
import { dialog, notify } from "./ui.js";

/** @import { Message, Pin } from "../types.js" */
/** @import { Room } from "./room.js" */

export class Pins {
  /** @type {Pin[]} */ #pins = [];

  /** @param {Room} room @param {HTMLElement} place @param {(seq: number) => void} jump */
  constructor(room, place, jump) {
    this.room = room;
    this.place = place;
    this.jump = jump;
    place.hidden = true;
  }

  /** @param {number} seq */
  has(seq) {
    return this.#pins.some((pin) => pin.seq === seq);
  }

  async load() {
    try {
      const { pins } = await this.room.call("/pins");
      if (!this.place.isConnected || (pins.length === 0 && this.#pins.length === 0)) return;
      this.#pins = pins;
      this.#draw();
    } catch {
      // The next change is told, and they are read with it.
    }
  }

  /** @param {Message} message */
  async toggle(message) {
    try {
      await this.room.manage(`/pins/${message.seq}`, { method: this.has(message.seq) ? "DELETE" : "PUT" });
      notify(this.has(message.seq) ? "The message is no longer pinned" : "The message is pinned");
      await this.load();
    } catch (error) {
      notify(words(error), "error");
    }
  }

  #draw() {
    const last = this.#pins.at(-1);
    this.place.hidden = !last;
    if (!last) return;
    const count = this.#pins.length;
    this.place.replaceChildren(h("button", { type: "button", click: () => (count === 1 ? this.jump(last.seq) : this.#list()) },
      icon("pin"), h("b", {}, count === 1 ? "Pinned" : `${count} pinned`), h("span", { class: "cut grow" }, bdi(shortened(last)))));
  }

  #list() {
    const line = (/** @type {Pin} */ message) => {
      const go = () => {
        page.close();
        this.jump(message.seq);
      };
      const unpin = async () => {
        await this.toggle(message);
        page.close();
      };
      return h("li", { class: "row" },
        h("button", { type: "button", class: "grow", click: go },
          h("span", {}, h("b", {}, bdi(this.room.nameOf(message.sender_user_id, message.sender_user_name))), h("small", {}, ` · ${day(message.created_at)}`)),
          h("span", { class: "preview", dir: "auto" }, shortened(message))),
        this.room.isOwner && iconButton("close", "Unpin", unpin));
    };
    const page = dialog("Pinned", [h("ul", { class: "mentions" }, this.#pins.map(line))], { wide: true });
  }
}

/** @param {Message} message */
const shortened = (message) => (message.deleted ? "deleted message" : message.content.replaceAll(/[#*`>]+/g, "").replaceAll(/\s+/g, " ").trim().slice(0, 200));
