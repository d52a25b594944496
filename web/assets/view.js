// The page that shows a room: finds out who is looking, and puts the parts together.

import { ApiError, call, isCode, words } from "./api.js";
import { bdi, byId, h, icon, iconButton } from "./dom.js";
import { bootError, enter, invitation, readAddress, takeKey } from "./entry.js";
import { forgetKey, holderOf, keptKey, keyEnded, mintKey } from "./keys.js";
import { MemberMode } from "./member-mode.js";
import { memberCard, memberList } from "./members.js";
import { pickReaction } from "./reactions.js";
import { Room } from "./room.js";
import { createRoom, showRooms } from "./rooms.js";
import { identity, keepSignedIn, person, signInEnded, signOut } from "./session.js";
import { openSessions } from "./sessions.js";
import { openSettings } from "./settings.js";
import { Thread } from "./thread.js";
import { span } from "./time.js";
import { Timeline } from "./timeline.js";
import { countdown, notify, themeButton } from "./ui.js";
import { VisitorMode, summaryView } from "./visitor-mode.js";

/** @import { Message, Summary } from "../types.js" */
/** @import { Actions } from "./message.js" */
/** @import { RoomKey } from "./keys.js" */

/** @typedef {{room: Room, timeline: Timeline, mode: MemberMode | VisitorMode | null}} Open no mode while it is being opened */

/** The room on the page. @type {Open | null} */
let open = null;
/** Whom the page shows as signed in. @type {string | null} */
let drawnFor = null;
/** The thread in the panel. @type {Thread | null} */
let thread = null;
/** Which opening of a room is the newest: an older one that ends late is dropped. */
let opening = 0;

/** @param {string} id */
async function openRoom(id, push = true) {
  const turn = ++opening;
  closeRoom();
  document.body.classList.remove("rooms-open", "panel-open");
  if (push && new URLSearchParams(location.search).get("room") !== id) history.pushState(null, "", `/view?room=${encodeURIComponent(id)}`);
  void showRooms(byId("rooms"), id, openRoom);
  stage("loading");
  try {
    const key = await keyFor(id);
    const room = new Room(id, key);
    if (key) await Promise.all([room.loadMe(), room.loadMembers()]);
    const summary = key ? null : await visit(room);
    if (turn !== opening) return;
    await show(room, summary);
  } catch (error) {
    if (turn === opening) refused(id, error);
  }
}

/** The key to a room, if the person has or gets one. @param {string} id @returns {Promise<RoomKey | null>} */
async function keyFor(id) {
  const kept = keptKey(id);
  const userId = identity()?.userId ?? holderOf(id);
  if (kept || !userId) return kept;
  try {
    return await mintKey(id, userId);
  } catch (error) {
    if (isCode(error, "not_found", "forbidden", "identity_invalid", "token_invalid", "key_invalid")) return null;
    throw error;
  }
}

/** @param {Room} room */
async function visit(room) {
  const summary = /** @type {Summary} */ (await call(`/rooms/${room.id}/public-summary`));
  room.name = summary.name;
  room.archived = summary.archived;
  room.visibility = "public";
  return summary;
}

/** @param {Room} room @param {Summary | null} summary for visitors */
async function show(room, summary) {
  const timeline = new Timeline(room, byId("scroller"), byId("messages"), actions(room));
  const { lastRead } = room;
  const here = { room, timeline, mode: /** @type {Open["mode"]} */ (null) };
  open = here;
  stage("room");
  await timeline.showNewest();
  // Another room may have been chosen meanwhile.
  if (open !== here) return;
  const unreadFrom = timeline.markUnread(lastRead);
  byId("empty").hidden = timeline.latest > 0;
  const status = (/** @type {string | null} */ text) => {
    byId("status").textContent = text ?? "";
    byId("status").hidden = !text;
  };
  status(null);
  here.mode = summary
    ? new VisitorMode(room, timeline, () => openRoom(room.id), status)
    : new MemberMode(room, timeline, (live) => status(live ? null : "Reconnecting…"), (error) => lost(room, error));
  timeline.addEventListener("changed", () => {
    drawJump(timeline, room);
    thread?.take(timeline.shown);
  });
  room.addEventListener("changed", () => reopenIfNeeded(room));
  room.addEventListener("members", () => open?.room === room && drawMembers(room));
  drawHeader(room, summary);
  drawJump(timeline, room);
  if (!room.canPost && here.mode instanceof MemberMode) {
    byId("composer").replaceChildren(h("p", { class: "note" }, room.archived ? "This room is archived: it can be read, but nobody can write." : "This link lets you read the room, but not write in it."));
  }
  if (unreadFrom > 0 && !timeline.has(unreadFrom)) {
    byId("unread-jump").hidden = false;
    byId("unread-jump").onclick = () => {
      byId("unread-jump").hidden = true;
      jump(unreadFrom);
    };
  }
  if (summary) byId("panel-body").replaceChildren(summaryView(summary));
  else drawMembers(room);
}

/** Whoever may write, or the name, has changed: the parts are made anew. @param {Room} room */
function reopenIfNeeded(room) {
  if (open?.room === room) void openRoom(room.id);
}

function closeRoom() {
  open?.mode?.close();
  open?.timeline.close();
  open = null;
  thread = null;
  byId("unread-jump").hidden = true;
  byId("composer").replaceChildren();
}

/** The key no longer opens the room, and there is no other. @param {Room} room @param {ApiError} error */
function lost(room, error) {
  closeRoom();
  if (room.visibility !== "public") return refused(room.id, error);
  // What is left is to read along.
  forgetKey(room.id);
  void openRoom(room.id);
}

/** @param {string} id @param {unknown} error */
function refused(id, error) {
  const ended = isCode(error, "key_invalid", "token_invalid") || (isCode(error, "not_found") && keyEnded(id));
  if (error instanceof ApiError && error.status === 429) {
    const told = h("p", {});
    fail("Please wait a moment", told);
    countdown(error.retryAfter ?? 60, (left) => {
      told.textContent = `The server lets you in again in ${span(left)}.`;
      if (left === 0 && told.isConnected) void openRoom(id);
    });
  } else if (signInEnded() && (ended || isCode(error, "not_found"))) {
    signInAgain();
  } else if (ended) {
    fail("Your access to this room has ended", h("p", {}, "Keys last for a week, and can be revoked. Ask for a new link, or sign in."));
  } else if (isCode(error, "not_found")) {
    fail("There is no such room for you", h("p", {}, "The link may be old, or the room is private and you are not a member. Ask whoever sent it for an invite."));
  } else fail("The room cannot be opened", h("p", {}, words(error)), h("button", { type: "button", click: () => openRoom(id) }, "Try again"));
}

function signInAgain() {
  fail("Your sign-in has ended",
    h("p", {}, "Sign in again with a new link, which whoever runs this server makes. What you have not sent yet is kept."),
    h("p", {}, h("a", { class: "button primary", href: "/#sign-in" }, "Sign in again")));
}

/** @param {string} title @param {...(Node | string)} content */
function fail(title, ...content) {
  stage("entry");
  byId("entry").replaceChildren(bootError(title, ...content));
}

/** @param {"loading" | "room" | "entry"} name */
function stage(name) {
  document.body.dataset.stage = name;
}

/** @param {Room} room @returns {Actions} */
function actions(room) {
  const member = () => (open?.mode instanceof MemberMode ? open.mode : null);
  return {
    reply: (message) => member()?.reply(message),
    edit: (message) => member()?.edit(message),
    remove: (message) => member()?.remove(message),
    react: (message, emoji, on) => member()?.react(message, emoji, on),
    pick: (message, button) => pickReaction(button, (emoji) => member()?.react(message, emoji, true)),
    jump,
    thread: (message) => showThread(room, message),
    member: (userId) => (room.key ? memberCard(room, userId) : undefined),
  };
}

/** Tells why something did not come about, unless the room was left. @param {Promise<unknown> | undefined} what */
function attempt(what) {
  what?.catch((error) => error.name !== "AbortError" && notify(words(error), "error"));
}

/** @param {number} seq */
function jump(seq) {
  attempt(open?.timeline.jump(seq));
}

/** @param {Room} room @param {Message} message */
function showThread(room, message) {
  panel("Thread");
  thread = new Thread(room, message.seq, () => (open?.room === room ? open.timeline.shown : []), {
    jump: (seq) => {
      document.body.classList.remove("panel-open");
      jump(seq);
    },
    reply: (target) => {
      document.body.classList.remove("panel-open");
      if (open?.mode instanceof MemberMode) open.mode.reply(target);
    },
  });
  byId("panel-body").replaceChildren(thread.element);
  byId("panel-title").focus();
}

/** @param {string} title */
function panel(title) {
  byId("panel-title").textContent = title;
  byId("panel-body").dataset.shows = title;
  document.body.classList.add("panel-open");
}

/** @param {Room} room */
function drawMembers(room) {
  byId("member-count").textContent = String(room.members.size);
  const body = byId("panel-body");
  if (body.dataset.shows === "Thread" && document.body.classList.contains("panel-open")) return;
  thread = null;
  byId("panel-title").textContent = "Members";
  body.dataset.shows = "Members";
  body.replaceChildren(memberList(room, (userId) => memberCard(room, userId)));
}

/** @param {Room} room @param {Summary | null} summary */
function drawHeader(room, summary) {
  document.title = room.name;
  byId("room-name").replaceChildren(bdi(room.name));
  byId("room-kind").replaceChildren(icon(room.visibility === "public" ? "globe" : "lock"), room.archived ? "archived" : room.visibility);
  const people = h("button", {
    type: "button", id: "members-button", class: "icon-button counted", title: "Members",
    click: () => {
      if (byId("panel-body").dataset.shows === "Members" || summary) document.body.classList.toggle("panel-open");
      else {
        byId("panel-body").dataset.shows = "Members";
        drawMembers(room);
        panel("Members");
      }
    },
  }, icon("people"), h("span", { id: "member-count" }, summary?.member_count ?? room.members.size), h("span", { class: "unseen" }, " members"));
  const about = summary ? null : iconButton(room.isOwner ? "settings" : "book", room.isOwner ? "Room settings" : "Rules and data", () => openSettings(room));
  byId("room-tools").replaceChildren(people, ...(about ? [about] : []));
}

/** @param {Timeline} timeline @param {Room} room */
function drawJump(timeline, room) {
  const button = byId("jump");
  button.hidden = timeline.pinned;
  button.replaceChildren(icon("down"), timeline.missed > 0 ? `${timeline.missed} new` : "Newest");
  byId("empty").hidden = timeline.latest > 0;
  const unread = document.visibilityState === "hidden" || !timeline.pinned ? Math.max(0, timeline.latest - room.lastRead) : 0;
  document.title = unread > 0 ? `(${unread}) ${room.name}` : room.name;
}

function drawPerson() {
  const who = identity();
  drawnFor = who?.userId ?? null;
  const leave = async () => {
    await signOut();
    location.assign("/");
  };
  byId("person").replaceChildren(
    who ? h("span", { class: "cut grow", title: who.userId }, bdi(who.name ?? who.userId)) : h("a", { class: "grow", href: "/#sign-in" }, "Sign in"),
    h("a", { class: "icon-button", href: "/leaderboard.html", "aria-label": "Leaderboard", title: "Leaderboard" }, icon("trophy")),
    themeButton(),
    ...(who ? [iconButton("lock", "Your sessions", () => void openSessions()), iconButton("out", "Sign out", leave)] : []),
  );
}

function home() {
  const who = identity();
  void showRooms(byId("rooms"), null, openRoom);
  stage("entry");
  if (signInEnded()) signInAgain();
  else if (!who) {
    byId("entry").replaceChildren(bootError("This link leads to no room", h("p", {}, "A link to a room names it. Ask whoever sent it for the whole link, or look at the public rooms.")));
  } else byId("entry").replaceChildren(h("div", { class: "entry" }, h("h1", {}, "Hello, ", bdi(who.name ?? who.userId)), h("p", {}, "Choose one of your rooms, or make a new one."), h("button", { type: "button", class: "primary", click: () => createRoom(openRoom) }, "New room")));
}

function listen() {
  byId("skip").onclick = (event) => {
    event.preventDefault();
    (document.getElementById("compose") ?? byId("scroller")).focus();
  };
  byId("menu").onclick = () => document.body.classList.toggle("rooms-open");
  byId("close-rooms").onclick = () => document.body.classList.remove("rooms-open");
  byId("close-panel").onclick = () => {
    document.body.classList.remove("panel-open");
    if (open && open.mode instanceof MemberMode) {
      byId("panel-body").dataset.shows = "Members";
      drawMembers(open.room);
    }
  };
  byId("jump").onclick = () => attempt(open?.timeline.toNewest());
  byId("scrim").onclick = () => document.body.classList.remove("rooms-open", "panel-open");
  window.addEventListener("popstate", start);
  window.addEventListener("keydown", (event) => {
    if (event.key === "Escape") document.body.classList.remove("rooms-open", "panel-open");
  });
  document.addEventListener("visibilitychange", () => open && drawJump(open.timeline, open.room));
  document.addEventListener("visibilitychange", () => {
    if (open?.timeline.pinned && document.visibilityState === "visible") open.room.lastRead = open.timeline.latest;
  });
  person.addEventListener("changed", personChanged);
}

/** Somebody signed in or out, or was renewed. A room that is open stays so while its key is theirs. */
function personChanged() {
  keepSignedIn();
  if ((identity()?.userId ?? null) === drawnFor) return;
  drawPerson();
  const room = open?.room;
  if (room?.key && keptKey(room.id)?.userId === room.key.userId) void showRooms(byId("rooms"), room.id, openRoom);
  else void start();
}

async function start() {
  const { room, token, invite, userJwt } = readAddress();
  const failed = userJwt ? await enter(userJwt) : null;
  keepSignedIn();
  drawPerson();
  if (failed) {
    fail("You could not be signed in", h("p", {}, failed));
    return;
  }
  if (invite) {
    stage("entry");
    void showRooms(byId("rooms"), null, openRoom);
    try {
      byId("entry").replaceChildren(await invitation(invite, openRoom));
    } catch (error) {
      fail("This invite does not work", h("p", {}, words(error)));
    }
  } else if (room) {
    if (token) await takeKey(room, token);
    await openRoom(room, false);
  } else {
    closeRoom();
    home();
  }
}

listen();
void start();
