// The leaderboard: everywhere or in one room, and where one's own score came from.

import { ApiError, call, words } from "./api.js";
import { avatar } from "./avatar.js";
import { bdi, byId, h, svg } from "./dom.js";
import { keptKey } from "./keys.js";
import { asPerson, identity } from "./session.js";
import { full } from "./time.js";
import { themeButton } from "./ui.js";

/** @import { MyRoom, PublicRoom, Ranked, Score } from "../types.js" */

/** @type {"global" | "room"} */
let scope = "global";
/** The newest request: the answer to an older one is dropped. */
let turn = 0;

const field = (/** @type {string} */ id) => /** @type {HTMLInputElement | HTMLSelectElement} */ (byId(id));
const room = () => field("room").value;
const rounded = (/** @type {number} */ points) => (Math.round(points * 10) / 10).toLocaleString();

async function show() {
  const mine = ++turn;
  const board = byId("board");
  byId("mine").replaceChildren();
  if (scope === "room" && !room()) {
    board.replaceChildren(h("p", { class: "note" }, "You are in no room, and none is public."));
    return;
  }
  const query = `window=${field("window").value}&limit=${field("limit").value}`;
  const path = scope === "global" ? `/leaderboard?${query}` : `/rooms/${encodeURIComponent(room())}/leaderboard?${query}`;
  try {
    const token = scope === "room" ? credential() : (identity()?.token ?? null);
    const [{ leaderboard }, names] = await Promise.all([readBoard(path, token), rooms]);
    if (mine !== turn) return;
    board.replaceChildren(...(scope === "room" ? [title(names.get(room()))] : []), ranking(leaderboard));
    if (token && scope === "room") await showMine(mine, token);
  } catch (error) {
    if (mine === turn) board.replaceChildren(h("p", { class: "note", role: "alert" }, refused(error)));
  }
}

/** A public room shows its board to whoever is no member of it, too. @param {string} path @param {string | null} token */
async function readBoard(path, token) {
  try {
    return await call(path, { token });
  } catch (error) {
    if (token && error instanceof ApiError && (error.status === 401 || error.status === 403)) return call(path);
    throw error;
  }
}

/** @param {unknown} error */
function refused(error) {
  if (!(error instanceof ApiError)) return words(error);
  if (error.status === 401 || error.status === 403) return "This room is private: sign in as a member to see its leaderboard.";
  if (error.status === 404) return scope === "room" ? "There is no such room, or it is private." : "This server keeps no scores.";
  return words(error);
}

/** What opens the chosen room, if anything does. */
function credential() {
  return keptKey(room())?.token ?? identity()?.token ?? null;
}

/** @param {string | undefined} name */
const title = (name) => h("h2", {}, h("a", { href: `/view?room=${encodeURIComponent(room())}` }, bdi(name ?? room())));

/** @param {Ranked[]} entries */
function ranking(entries) {
  if (entries.length === 0) return h("p", { class: "note" }, "Nobody has points yet. They come with reactions, mentions and answers.");
  return h("ol", { class: "board" }, entries.map((entry) => h("li", {},
    h("span", { class: "rank" }, entry.rank),
    avatar(entry.avatar_seed, entry.member_kind?.endsWith("agent") ?? entry.user_id?.startsWith("ext_") ?? false, entry.display_name),
    h("span", { class: "cut" }, bdi(entry.display_name), entry.user_id && entry.user_id === identity()?.userId ? h("small", {}, " you") : ""),
    h("span", { class: "points" }, rounded(entry.score), h("small", {}, entry.event_count === 1 ? "1 event" : `${entry.event_count} events`)))));
}

/** Where one's own score came from, for members. @param {number} mine @param {string} token */
async function showMine(mine, token) {
  const score = /** @type {Score | null} */ (await call(`/rooms/${encodeURIComponent(room())}/me/score?window=${field("window").value}`, { token }).catch(() => null));
  if (!score || mine !== turn) return;
  const kinds = Object.entries(score.summary.by_kind).sort(([, a], [, b]) => Math.abs(b) - Math.abs(a));
  byId("mine").replaceChildren(
    h("h2", {}, `Your ${rounded(score.summary.score)} points of ${score.summary.window_days} days`),
    score.summary.newcomer_boost_active ? h("p", { class: "note" }, "Your points count half again as much in your first week.") : "",
    kinds.length > 0 ? chart(kinds) : h("p", { class: "note" }, "No points yet."),
    score.recent_events.length > 0 ? h("h3", {}, "What came last") : "",
    h("ul", { class: "score-events" }, score.recent_events.slice(0, 20).map((event) => h("li", {},
      h("span", {}, label(event.kind), " ", bdi(event.source_emoji ?? "")),
      h("small", {}, full(event.created_at)),
      h("span", { class: "points" }, `${event.points > 0 ? "+" : ""}${rounded(event.points)}`)))));
}

/** @type {Record<string, string>} */
const LABELS = {
  reaction_received: "Reaction received",
  mention_received: "Mention received",
  thread_started_replies: "Thread with three answers",
  post_authored: "Message written",
  penalty_message_deleted_by_owner: "Message deleted by the owner",
  penalty_kick: "Removed from the room",
};
const label = (/** @type {string} */ kind) => LABELS[kind] ?? kind.replaceAll("_", " ");

/** One bar for each kind of event. @param {[string, number][]} kinds */
function chart(kinds) {
  const most = Math.max(...kinds.map(([, points]) => Math.abs(points)), 1e-9);
  return h("div", { class: "bars", role: "img", "aria-label": kinds.map(([kind, points]) => `${label(kind)}: ${rounded(points)}`).join(", ") },
    kinds.flatMap(([kind, points]) => [
      h("span", {}, label(kind)),
      svg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none" }, svg("rect", { width: (Math.abs(points) / most) * 100, height: 10, class: points < 0 ? "loss" : "gain" })),
      h("span", {}, rounded(points)),
    ]));
}

/** The names of the rooms that the page knows. @returns {Promise<Map<string, string>>} */
async function knownRooms() {
  /** @type {(MyRoom | PublicRoom)[]} */
  const known = [];
  if (identity()) known.push(...(await asPerson("/rooms").then(({ rooms }) => rooms, () => [])));
  known.push(...(await call("/rooms/public?limit=50").then(({ rooms }) => rooms, () => [])));
  return new Map(known.map(({ room_id, name }) => [room_id, name]));
}

/** @param {Map<string, string>} names */
function offer(names) {
  field("room").replaceChildren(...[...names].map(([value, name]) => h("option", { value }, name)));
}

/** @param {"global" | "room"} chosen */
function select(chosen) {
  scope = chosen;
  for (const id of ["global", "room"]) {
    const tab = byId(`tab-${id}`);
    tab.setAttribute("aria-selected", String(id === chosen));
    tab.tabIndex = id === chosen ? 0 : -1;
  }
  byId("board").setAttribute("aria-labelledby", `tab-${chosen}`);
  byId("room-choice").hidden = chosen === "global";
  void show();
}

const rooms = knownRooms();
const asked = new URLSearchParams(location.search).get("room");
if (asked) offer(new Map([[asked, asked]]));
void rooms.then((names) => {
  const chosen = room();
  offer(new Map([...(asked && !names.has(asked) ? [/** @type {[string, string]} */ ([asked, asked])] : []), ...names]));
  field("room").value = chosen || (names.keys().next().value ?? "");
  if (!chosen && scope === "room") void show();
});
byId("theme").append(themeButton());
byId("tab-global").onclick = () => select("global");
byId("tab-room").onclick = () => select("room");
for (const id of ["global", "room"]) {
  byId(`tab-${id}`).addEventListener("keydown", (event) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    const other = id === "global" ? "room" : "global";
    byId(`tab-${other}`).focus();
    select(other);
  });
}
byId("choices").addEventListener("change", () => void show());
byId("choices").addEventListener("submit", (event) => event.preventDefault());
select(asked ? "room" : "global");
