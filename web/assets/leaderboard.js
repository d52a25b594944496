// The leaderboard: everywhere or in one room, and where one's own score came from.

import { ApiError, call, words } from "./api.js";
import { avatar } from "./avatar.js";
import { bdi, byId, h, svg } from "./dom.js";
import { identity, keptKey } from "./session.js";
import { full } from "./time.js";
import { themeButton } from "./ui.js";

/** @import { MyRoom, PublicRoom, Ranked, Score } from "../types.js" */

/** @type {"global" | "room"} */
let scope = "global";
/** The newest request: the answer to an older one is dropped. */
let turn = 0;

const field = (/** @type {string} */ id) => /** @type {HTMLInputElement | HTMLSelectElement} */ (byId(id));
const room = () => field("room").value.trim();
const rounded = (/** @type {number} */ points) => (Math.round(points * 10) / 10).toLocaleString();

async function show() {
  const mine = ++turn;
  const board = byId("board");
  byId("mine").replaceChildren();
  if (scope === "room" && !room()) {
    board.replaceChildren(h("p", { class: "note" }, "Choose a room."));
    return;
  }
  const query = `window=${field("window").value}&limit=${field("limit").value}`;
  const path = scope === "global" ? `/leaderboard?${query}` : `/rooms/${encodeURIComponent(room())}/leaderboard?${query}`;
  try {
    const { leaderboard } = await call(path, { token: scope === "room" ? credential() : null });
    if (mine !== turn) return;
    board.replaceChildren(ranking(leaderboard));
    if (scope === "room") await showMine(mine);
  } catch (error) {
    if (mine === turn) board.replaceChildren(h("p", { class: "note", role: "alert" }, refused(error)));
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

/** @param {Ranked[]} entries */
function ranking(entries) {
  if (entries.length === 0) return h("p", { class: "note" }, "Nobody has points yet. They come with reactions, mentions and answers.");
  return h("ol", { class: "board" }, entries.map((entry) => h("li", {},
    h("span", { class: "rank" }, entry.rank),
    avatar(entry.avatar_seed ?? entry.user_id ?? entry.display_name ?? "", entry.user_id?.startsWith("ext_") ?? false),
    h("span", { class: "cut" }, bdi(entry.display_name ?? entry.user_id ?? "somebody")),
    h("span", { class: "points" }, rounded(entry.score), h("small", {}, `${entry.event_count} events`)))));
}

/** Where one's own score came from, for members. @param {number} mine */
async function showMine(mine) {
  const token = credential();
  if (!token) return;
  const score = /** @type {Score | null} */ (await call(`/rooms/${encodeURIComponent(room())}/me/score`, { token }).catch(() => null));
  if (!score || mine !== turn) return;
  const kinds = Object.entries(score.summary.by_kind).sort(([, a], [, b]) => Math.abs(b) - Math.abs(a));
  byId("mine").replaceChildren(
    h("h2", {}, `Your ${rounded(score.summary.score)} points`),
    score.summary.newcomer_boost_active ? h("p", { class: "note" }, "Your points count half again as much in your first week.") : "",
    kinds.length > 0 ? chart(kinds) : h("p", { class: "note" }, "No points yet."),
    h("ul", { class: "room-list" }, score.recent_events.slice(0, 20).map((event) => h("li", { class: "note" },
      `${full(event.created_at)}: ${label(event.kind)} ${event.source_emoji ?? ""} ${event.points > 0 ? "+" : ""}${rounded(event.points)}`))));
}

/** @param {string} kind */
const label = (kind) => kind.replaceAll("_", " ");

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

async function offerRooms() {
  const who = identity();
  /** @type {(MyRoom | PublicRoom)[]} */
  const known = [];
  if (who) known.push(...(await call("/rooms", { token: who.token }).then(({ rooms }) => rooms, () => [])));
  known.push(...(await call("/rooms/public?limit=50").then(({ rooms }) => rooms, () => [])));
  const names = new Map(known.map(({ room_id, name }) => [room_id, name]));
  byId("known-rooms").replaceChildren(...[...names].map(([value, name]) => h("option", { value, label: name })));
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
const asked = new URLSearchParams(location.search).get("room");
if (asked) field("room").value = asked;
select(asked ? "room" : "global");
void offerRooms();
