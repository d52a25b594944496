// The side of the page that is the same in every room: search, the inbox, one's rooms, oneself.

import { showBadge } from "./badge.js";
import { bdi, byId, h, icon, iconButton, redraw } from "./dom.js";
import { Inbox } from "./inbox.js";
import { canInvite, openInvite } from "./invites.js";
import { openMentions } from "./mentions.js";
import { tellOf } from "./notifications.js";
import { openPalette } from "./palette.js";
import { RoomList, count, createRoom } from "./rooms.js";
import { identity, person } from "./session.js";
import { openSettings } from "./settings.js";
import { COMMAND_K, listenForKeys, showShortcuts } from "./shortcuts.js";
import { themeButton } from "./ui.js";
import { openYou } from "./you.js";

/** @import { InboxMention } from "../types.js" */
/** @import { Room } from "./room.js" */

export class Sidebar {
  inbox = new Inbox();
  /** What is unread in the room that is open, as the page knows it. */
  #here = 0;

  /**
   * @param {object} options
   * @param {(room: string, seq?: number) => void} options.open
   * @param {() => Room | null} options.room the one that is open
   * @param {() => void} options.members shows or hides who is there
   */
  constructor({ open, room, members }) {
    this.open = open;
    this.room = room;
    this.members = members;
    this.rooms = new RoomList(byId("rooms"), this.inbox, open);
    this.inbox.addEventListener("changed", () => this.#drawCounts());
    this.inbox.addEventListener("mention", (event) => {
      const mention = /** @type {CustomEvent<InboxMention>} */ (event).detail;
      tellOf(mention, () => open(mention.room_id, mention.seq));
    });
    person.addEventListener("renamed", () => this.showPerson());
    listenForKeys({ search: () => this.#search(), step: (by) => this.rooms.step(by) });
  }

  /** Brings the list of rooms up to date. @param {string | null} current */
  show(current) {
    this.#here = 0;
    return this.rooms.show(current);
  }

  /** The name of a room, where it is in the list. @param {string} id */
  nameOf(id) {
    return this.inbox.of(id)?.name ?? null;
  }

  /** Shows who is signed in; gives their id. */
  showPerson() {
    const who = identity();
    byId("person").replaceChildren(
      who
        ? h("button", { type: "button", class: "you grow", title: who.userId, click: openYou }, h("span", { class: "cut" }, bdi(who.name ?? who.userId)))
        : h("a", { class: "grow", href: "/#sign-in" }, "Sign in"),
      h("a", { class: "icon-button", href: "/leaderboard.html", "aria-label": "Leaderboard", title: "Leaderboard" }, icon("trophy")),
      themeButton(),
      iconButton("keys", "Keys", showShortcuts));
    this.#drawCounts();
    return who?.userId ?? null;
  }

  /** @param {number} unread in the room that is open */
  showCount(unread) {
    this.#here = unread;
    this.#drawCounts();
  }

  #drawCounts() {
    const { inbox } = this;
    const room = this.room();
    const elsewhere = inbox.rooms.filter(({ room_id }) => room_id !== room?.id).reduce((sum, { unread }) => sum + unread, 0);
    showBadge(room?.name ?? "Starchild", this.#here + elsewhere, inbox.mentioned);
    const mentions = inbox.mentioned > 0 && count("", inbox.mentioned, "mention you", "pip urgent");
    redraw(
      byId("places"),
      h("button", { type: "button", id: "open-search", click: () => this.#search() }, icon("search"), h("span", { class: "grow" }, "Search"), h("kbd", { "aria-hidden": "true" }, COMMAND_K)),
      ...(identity() ? [h("button", { type: "button", id: "open-inbox", click: () => this.#showInbox() }, icon("bell"), h("span", { class: "grow" }, "Inbox"), mentions)] : []));
  }

  #showInbox() {
    openMentions(this.inbox, this.open);
  }

  #search() {
    openPalette({ room: this.room(), rooms: this.rooms.rooms, open: this.open, commands: this.#commands() });
  }

  /** What can be done from here. */
  #commands() {
    const room = this.room();
    const who = identity();
    /** @type {[unknown, string, string, () => void][]} */
    const all = [
      [who, "Inbox", "bell", () => this.#showInbox()],
      [who, "New room", "plus", () => createRoom(this.open)],
      [room && canInvite(room), "Invite a person or an agent", "invite", () => room && openInvite(room)],
      [room?.key, room?.isOwner ? "Room settings" : "Rules and data", "settings", () => room && openSettings(room)],
      [room, "Members", "people", this.members],
      [who, "You: notifications, sessions, sign out", "lock", openYou],
      [true, "Leaderboard", "trophy", () => location.assign("/leaderboard.html")],
      [true, "Keys", "keys", showShortcuts],
    ];
    return all.filter(([possible]) => possible).map(([, title, picture, what]) => ({ title, icon: picture, do: what }));
  }
}
