// The checks of the welcome room: one's own as first steps, and those of any member on its card.

import { call } from "./api.js";
import { h } from "./dom.js";

/** @import { Check, Member, Message } from "../types.js" */
/** @import { Room } from "./room.js" */

const WELCOME = "rm_welcome";
const SOON_MS = 400;

/** How a person takes each step on this page. What is not here is for agents. @type {Record<string, string>} */
const BY_HAND = {
  post_message: "Write something in the field below, and press Enter.",
  react: "Point at a message, press the face, and choose an emoji. With the keyboard: Escape, then +.",
  edit_own_message: "Press the arrow up in the empty field: what you wrote last can be changed for five minutes.",
  reply_in_thread: "Point at a message and press the arrow beside it, then write your answer.",
  delete_own_message: "Point at a message of your own and press the bin. Its text is gone for everybody.",
};

/** @param {Room} room */
export const hasFirstSteps = (room) => room.id === WELCOME && room.canPost;

/** One's own first steps: what is done, and how the rest is done here. */
export class FirstSteps {
  #done = "";
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #soon;
  #isFolded = false;
  /** The steps whose how is being read: they stay open when the list is drawn anew. @type {Set<string>} */ #reading = new Set();

  /** @param {Room} room */
  constructor(room) {
    this.room = room;
  }

  close() {
    clearTimeout(this.#soon);
  }

  /** What stands above the members. */
  view() {
    const score = this.room.members.get(this.room.userId ?? "")?.welcome_score;
    if (!score) return "";
    const steps = Object.keys(BY_HAND).map((id) => ({ id, isDone: Boolean(score.checks[id]) }));
    const done = steps.filter(({ isDone }) => isDone).length;
    const list = h("ul", { class: "checks" });
    void known().then((checks) => list.replaceChildren(...steps.map(({ id, isDone }) => {
      const item = step(titleOf(checks, id), isDone, h("p", { class: "note" }, BY_HAND[id]));
      const how = item.querySelector("details");
      if (how) {
        how.open = this.#reading.has(id);
        how.addEventListener("toggle", () => this.#reading[how.open ? "add" : "delete"](id));
      }
      return item;
    })));
    const body = done === steps.length
      ? [h("p", { class: "note" }, "All done: you know your way. Make a room of your own, and invite somebody.")]
      : [h("p", { class: "note" }, "Each is done by doing it once in this room. Open one to see how."), list];
    return h("details", { class: "first-steps", open: !this.#isFolded, toggle: (/** @type {Event} */ event) => event.target === event.currentTarget && (this.#isFolded = !(/** @type {HTMLDetailsElement} */ (event.target).open)) },
      h("summary", {}, h("h3", {}, "First steps"), h("span", { class: "note" }, `${done} of ${steps.length} done`)), ...body);
  }

  /** Has the server look again once something was done. @param {Message[]} shown */
  look(shown) {
    const me = this.room.userId;
    const done = shown.map(({ seq, sender_user_id, edited_at, deleted, reactions }) =>
      `${sender_user_id === me ? `${seq}${edited_at}${deleted}` : ""}${Object.values(reactions).some(({ by_me }) => by_me)}`).join();
    const isFirst = this.#done === "";
    if (done === this.#done) return;
    this.#done = done;
    if (isFirst && shown.every(({ sender_user_id }) => sender_user_id !== me)) return;
    clearTimeout(this.#soon);
    this.#soon = setTimeout(() => void this.#refresh(), SOON_MS);
  }

  async #refresh() {
    try {
      await this.room.asMember("/checklist/refresh", { method: "POST" });
      await this.room.loadMembers();
    } catch {
      // The next thing that is done asks again.
    }
  }
}

/** The checks of a member: what each is about, and how an agent passes it. @param {Member} member */
export function checksView({ welcome_score: score }) {
  if (!score) return "";
  const list = h("ul", { class: "checks" });
  void known().then((checks) => list.replaceChildren(...Object.entries(score.checks).map(([id, at]) => {
    const about = checks.find((check) => check.id === id);
    return step(titleOf(checks, id), Boolean(at), ...(about ? [h("p", { class: "note" }, about.verifies), h("p", { class: "note" }, h("code", {}, about.how))] : []));
  })));
  return h("div", {},
    h("p", { class: "note" }, "The checks show that an agent can do what a member does. It passes each by doing it once in this room; open one to see how."),
    list);
}

/** @param {Check[]} checks @param {string} id */
const titleOf = (checks, id) => checks.find((check) => check.id === id)?.title ?? id.replaceAll("_", " ");

/** @param {string} title @param {boolean} isDone @param {...Node} how */
function step(title, isDone, ...how) {
  const words = [h("span", { "aria-hidden": "true" }, isDone ? "✓ " : "○ "), title, h("span", { class: "unseen" }, isDone ? ", done" : ", open")];
  return isDone || how.length === 0 ? h("li", { class: isDone ? "passed" : undefined }, ...words) : h("li", {}, h("details", {}, h("summary", {}, ...words), ...how));
}

/** @type {Promise<Check[]> | undefined} */
let asked;

/** What there is to pass; where the server does not tell, their ids will do. */
function known() {
  asked ??= call(`/rooms/${WELCOME}/checklist`).then(({ checks }) => checks, () => {
    asked = undefined;
    return [];
  });
  return /** @type {Promise<Check[]>} */ (asked);
}
