// What wakes an agent, and what it may spend in a day: as its owner sets it, and the room's owner.

import { words } from "./api.js";
import { h } from "./dom.js";
import { clock } from "./time.js";
import { notify } from "./ui.js";

/** @import { Budget, Member, WakePolicy, WakeView } from "../types.js" */
/** @import { Room } from "./room.js" */

/** @type {Record<WakePolicy["wake"], string>} */
const WAKES = { everything: "every message", threads: "mentions, and threads it takes part in", mentions: "mentions", nothing: "nothing" };

/** The part of a member's card about this. @param {Room} room @param {Member} member */
export function wakeView(room, member) {
  const place = h("section", { class: "wake", "aria-label": "What wakes it" }, h("p", { class: "note" }, "…"));
  const path = `/members/${encodeURIComponent(member.user_id)}/wake`;
  const draw = (/** @type {WakeView} */ view) => place.replaceChildren(...parts(room, view, save));
  const save = async (/** @type {WakePolicy} */ body) => {
    try {
      draw(await room.manage(path, { method: "PUT", body }));
      notify("Saved");
      await room.loadMembers();
    } catch (error) {
      notify(words(error), "error");
    }
  };
  room.manage(path).then(draw, (error) => place.replaceChildren(h("p", { class: "note", role: "alert" }, words(error))));
  return place;
}

/** @param {Room} room @param {WakeView} view @param {(policy: WakePolicy) => void} save */
function parts(room, view, save) {
  const { effective, spent, used_up, day_ends_at, yours } = view;
  const limits = budgetWords(effective.budget);
  const used = budgetWords(spent);
  const facts = h("dl", {},
    h("dt", {}, "Wakes on"), h("dd", {}, WAKES[effective.wake]),
    h("dt", {}, "A day"), h("dd", {}, limits ? `at most ${limits}` : "no limit"),
    h("dt", {}, "Today"), h("dd", { class: used_up ? "warn" : undefined }, used_up ? `${used}: used up until ${clock(day_ends_at)}` : used));
  if (!yours) return [facts];
  return [facts, h("details", {}, h("summary", {}, yours === "room" ? "Set what it may do in this room" : "Set what it may do"),
    ...otherSide(view), form(view[yours], save)),
    ...(room.archived ? [h("p", { class: "note" }, "This room is archived.")] : [])];
}

/** What the other of the two has set: the tighter holds. @param {WakeView} view */
function otherSide({ yours, own, room }) {
  const other = yours === "room" ? own : room;
  const limits = budgetWords(other.budget);
  if (other.wake === "everything" && !limits) return [];
  const set = [`wakes on ${WAKES[other.wake]}`, limits && `at most ${limits} a day`].filter(Boolean).join(", ");
  return [h("p", { class: "note" }, `${yours === "room" ? "Its owner" : "The room's owner"} has set: ${set}. Of both, the tighter holds.`)];
}

/** @param {WakePolicy} policy @param {(policy: WakePolicy) => void} save */
function form({ wake, budget }, save) {
  const chosen = h("select", { id: "wake-on" }, Object.entries(WAKES).map(([value, label]) => h("option", { value, selected: value === wake }, label)));
  const number = (/** @type {string} */ id, /** @type {number | undefined} */ value, step = "1") =>
    h("input", { type: "number", id, min: "0", step, placeholder: "no limit", value: value === undefined ? "" : String(value) });
  const turns = number("wake-turns", budget.turns);
  const tokens = number("wake-tokens", budget.tokens);
  const cost = number("wake-cost", budget.cost_usd, "0.01");
  const of = (/** @type {HTMLInputElement} */ field) => (field.value === "" ? undefined : Number(field.value));
  return h("form", {
    class: "grid",
    submit: (/** @type {Event} */ event) => {
      event.preventDefault();
      save({ wake: /** @type {WakePolicy["wake"]} */ (chosen.value), budget: { turns: of(turns), tokens: of(tokens), cost_usd: of(cost) } });
    },
  },
    h("label", { for: "wake-on" }, "It wakes on"), chosen,
    h("div", { class: "thirds" },
      h("label", {}, "Answers a day", turns),
      h("label", {}, "Tokens a day", tokens),
      h("label", {}, "Dollars a day", cost)),
    h("button", { class: "primary" }, "Save"));
}

/** @param {Budget} budget */
const budgetWords = ({ turns, tokens, cost_usd }) => [
  turns !== undefined && counted(turns, "answer"),
  tokens !== undefined && counted(tokens, "token"),
  cost_usd !== undefined && dollars(cost_usd),
].filter(Boolean).join(", ");

/** @param {number} number @param {string} what */
const counted = (number, what) => `${number.toLocaleString()} ${what}${number === 1 ? "" : "s"}`;

/** @param {number} cost */
const dollars = (cost) => `$${cost.toLocaleString(undefined, { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
