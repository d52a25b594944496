// The page that shows a room: finds out who is looking, and puts the parts together.

import { ApiError, call, isCode, words } from "./api.js";
import { FirstSteps, hasFirstSteps } from "./checklist.js";
import { bdi, byId, h, icon, iconButton } from "./dom.js";
import { bootError, enter, invitation, readAddress, takeKey } from "./entry.js";
import { canInvite, openInvite } from "./invites.js";
import { forgetKey, holderOf, keptKey, keyEnded, mintKey } from "./keys.js";
import { MemberMode } from "./member-mode.js";
import { memberCard, memberList } from "./members.js";
import { inEditWindow, permalink } from "./message.js";
import { Panel } from "./panel.js";
import { Pins } from "./pins.js";
import { profileForm } from "./profile.js";
import { pickReaction } from "./reactions.js";
import { retryNote, withRetries } from "./retry.js";
import { Room } from "./room.js";
import { createRoom } from "./rooms.js";
import { identity, keepSignedIn, person, signInEnded } from "./session.js";
import { openSettings } from "./settings.js";
import { Sidebar } from "./sidebar.js";
import { Thread } from "./thread.js";
import { Timeline } from "./timeline.js";
import { retry } from "./typing.js";
import { copy, notify } from "./ui.js";
import { VisitorMode, summaryView } from "./visitor-mode.js";

/** @import { Message, Summary } from "../types.js" */
/** @import { Actions } from "./message.js" */
/** @import { RoomKey } from "./keys.js" */

/** @typedef {{room: Room, timeline: Timeline, pins: Pins, mode: MemberMode | VisitorMode | null}} Open no mode while it is being opened */

/** The room on the page. @type {Open | null} */
let open = null;
/** Whom the page shows as signed in. @type {string | null} */
let drawnFor = null;
/** What a newcomer does first, in the welcome room. @type {FirstSteps | null} */
let firstSteps = null;
/** The thread in the panel. @type {Thread | null} */
let thread = null;
/** The opening of a room that is under way: another one ends it. */
let opening = new AbortController();
const panel = new Panel(() => {
  thread = null;
  if (open?.mode instanceof MemberMode) drawMembers(open.room);
});
const sidebar = new Sidebar({
  open: (id, seq) => (open?.room.id === id && seq ? jump(seq) : void openRoom(id, { seq })),
  room: () => open?.room ?? null,
  members: () => panel.toggle(),
});
const { inbox } = sidebar;
/** What the list of rooms is waited for, so that the page knows where the person has stopped reading. */
const LISTED_MS = 2000;
/** The name of whoever signs in with the link of the first start, until they choose one. */
const FIRST_NAME = "First person";

/** @param {string} id @param {{push?: boolean, seq?: number | null}} [options] the message to show */
async function openRoom(id, { push = true, seq = null } = {}) {
  opening.abort();
  const { signal } = (opening = new AbortController());
  closeRoom();
  document.body.classList.remove("rooms-open", "panel-open");
  if (push && new URLSearchParams(location.search).get("room") !== id) history.pushState(null, "", `/view?room=${encodeURIComponent(id)}`);
  const listed = sidebar.show(id);
  stage("loading");
  byId("room-name").replaceChildren(bdi(sidebar.nameOf(id) ?? "Room"));
  byId("loading").replaceChildren("Opening the room…");
  try {
    const { room, summary } = await withRetries(() => loadRoom(id), (note) => !signal.aborted && byId("loading").replaceChildren(note), signal);
    if (!inbox.of(id)) await Promise.race([listed, new Promise((resolve) => setTimeout(resolve, LISTED_MS))]);
    if (signal.aborted) return;
    await show(room, summary, seq);
  } catch (error) {
    if (!signal.aborted) refused(id, error);
  }
}

/** @param {string} id @returns {Promise<{room: Room, summary: Summary | null}>} */
async function loadRoom(id) {
  const key = await keyFor(id);
  const room = new Room(id, key);
  if (key) await Promise.all([room.loadMe(), room.loadMembers()]);
  return { room, summary: key ? null : await visit(room) };
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
  room.named = new Map(summary.members.map(({ user_name, avatar_seed }) => [user_name, avatar_seed]));
  return summary;
}

/** @param {Room} room @param {Summary | null} summary for visitors @param {number | null} seq the message to show */
async function show(room, summary, seq) {
  const timeline = new Timeline(room, byId("scroller"), byId("messages"), actions(room));
  const lastRead = Math.max(room.lastRead, room.identity ? (inbox.of(room.id)?.read_seq ?? 0) : 0);
  room.readBefore = lastRead;
  if (room.identity && room.key) room.onRead = (read) => inbox.read(room.id, read);
  const here = { room, timeline, pins: new Pins(room, byId("pins"), jump), mode: /** @type {Open["mode"]} */ (null) };
  open = here;
  await withRetries(() => timeline.showNewest(), (note) => byId("loading").replaceChildren(note), timeline.ended.signal);
  // Another room may have been chosen meanwhile.
  if (open !== here) return;
  stage("room");
  // After the messages: a visitor may read only so often.
  void here.pins.load();
  await timeline.toNewest();
  const unreadFrom = timeline.markUnread(lastRead);
  byId("empty").hidden = timeline.latest > 0;
  const status = (/** @type {Node | string | null} */ told) => {
    // What stays as it is is not touched: a change brings the page back to its end.
    if (!told && byId("status").hidden) return;
    byId("status").replaceChildren(told ?? "");
    byId("status").hidden = !told;
  };
  status(null);
  here.mode = summary
    ? new VisitorMode(room, timeline, () => openRoom(room.id), status)
    : new MemberMode(room, timeline, {
        onLive: () => {
          status(null);
          thread?.seen();
        },
        onWaiting: (ms, retryNow) => status(retryNote(navigator.onLine ? "Reconnecting." : "You are offline. What you write is sent once you are back.", ms, retryNow)),
        onRefused: (error) => lost(room, error),
        onAddressed: () => inbox.soon(),
        onElsewhere: () => inbox.soon(),
        onRead: (position) => inbox.readElsewhere(position),
        onPinned: () => void here.pins.load(),
      });
  timeline.addEventListener("changed", () => {
    drawJump(timeline, room);
    thread?.take(timeline.shown);
    firstSteps?.look(timeline.shown);
  });
  timeline.addEventListener("received", (event) => thread?.take([/** @type {CustomEvent<Message>} */ (event).detail]));
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
  firstSteps = hasFirstSteps(room) ? new FirstSteps(room) : null;
  firstSteps?.look(timeline.shown);
  if (summary) panel.put("Members", summaryView(summary));
  else drawMembers(room);
  if (seq) jump(seq);
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
  firstSteps?.close();
  firstSteps = null;
  byId("unread-jump").hidden = true;
  byId("status").hidden = true;
  byId("pins").hidden = true;
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
  if (signInEnded() && (ended || isCode(error, "not_found"))) {
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
  const isMine = (/** @type {number} */ seq) => open?.timeline.shown.some((message) => message.seq === seq && message.sender_user_id === room.userId) ?? false;
  const member = () => (open?.mode instanceof MemberMode ? open.mode : null);
  return {
    reply: (message) => member()?.reply(message),
    edit: (message) => member()?.edit(message),
    canEdit: (message) => room.canPost && message.sender_user_id === room.userId && !message.deleted && inEditWindow(message),
    canPin: (message) => room.isOwner && !room.archived && message.type === "chat",
    isPinned: (message) => open?.pins.has(message.seq) ?? false,
    pin: (message) => void open?.pins.toggle(message).then(() => open?.timeline.redraw()),
    canRetry: (message) => room.canPost && message.via === "agent" && message.reply_to_seq !== null && (room.isOwner || isMine(message.reply_to_seq)),
    retry: (message) => void (message.reply_to_seq && retry(room, message.reply_to_seq, message.sender_user_id)),
    link: (message) => copy(new URL(permalink(room, message.seq), location.origin).href, "a link to the message"),
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
  const mode = open?.mode instanceof MemberMode ? open.mode : null;
  thread = new Thread(room, message.seq, () => (open?.room === room ? open.timeline.shown : []), {
    jump: (seq) => {
      document.body.classList.remove("panel-open");
      jump(seq);
    },
    send: (content, replyTo) => mode?.send(content, replyTo),
    typing: () => mode?.typing.tell(),
    isShown: () => panel.isOpen,
    seen: (seqs) => open?.room === room && open.timeline.answersRead(seqs),
    leave: () => {
      panel.close();
      jump(message.seq);
    },
  });
  panel.put("Thread", thread.element);
  panel.open();
  byId("panel-title").focus();
}

/** @param {Room} room */
function drawMembers(room) {
  byId("member-count").textContent = String(room.members.size);
  if (thread && panel.isOpen) return;
  thread = null;
  panel.put("Members", h("div", {}, firstSteps?.view() ?? "", memberList(room, (userId) => memberCard(room, userId))));
}

/** @param {Room} room @param {Summary | null} summary */
function drawHeader(room, summary) {
  byId("room-name").replaceChildren(bdi(room.name));
  byId("room-kind").replaceChildren(icon(room.visibility === "public" ? "globe" : "lock"), room.archived ? "archived" : room.visibility, ...(room.topic ? [h("span", { class: "topic cut" }, "· ", bdi(room.topic))] : []));
  const people = h("button", { type: "button", id: "members-button", class: "icon-button counted", title: "Members", click: () => panel.toggle() },
    icon("people"), h("span", { id: "member-count" }, summary?.member_count ?? room.members.size), h("span", { class: "unseen" }, " members"));
  const invite = () => canInvite(room) && h("button", { type: "button", class: "invite-button", click: () => openInvite(room) }, icon("invite"), h("span", {}, "Invite"));
  const about = summary ? null : iconButton(room.isOwner ? "settings" : "book", room.isOwner ? "Room settings" : "Rules and data", () => openSettings(room));
  byId("room-tools").replaceChildren(...[invite(), people, about].filter((part) => part instanceof Node));
  const first = invite();
  byId("empty").replaceChildren(
    h("p", {}, room.canPost ? "Nothing has been said here yet. Write the first message, or invite somebody." : "Nothing has been said here yet."),
    ...(first ? [first] : []));
}

/** @param {Timeline} timeline @param {Room} room */
function drawJump(timeline, room) {
  const button = byId("jump");
  button.hidden = timeline.pinned;
  button.replaceChildren(icon("down"), timeline.missed > 0 ? `${timeline.missed} new` : "Newest");
  byId("empty").hidden = timeline.latest > 0;
  const unread = document.visibilityState === "hidden" || !timeline.pinned ? Math.max(0, timeline.latest - room.lastRead) : 0;
  sidebar.showCount(unread);
}


function home() {
  const who = identity();
  void sidebar.show(null);
  stage("entry");
  if (signInEnded()) signInAgain();
  else if (!who) {
    byId("entry").replaceChildren(bootError("This link leads to no room", h("p", {}, "A link to a room names it. Ask whoever sent it for the whole link, or look at the public rooms.")));
  } else {
    const isUnnamed = who.name === FIRST_NAME;
    byId("entry").replaceChildren(h("div", { class: "entry" },
      ...(isUnnamed
        ? [h("h1", {}, "Welcome"), h("p", {}, "You are the first person here. What shall others call you?"), profileForm()]
        : [h("h1", {}, "Hello, ", bdi(who.name ?? who.userId))]),
      h("p", {}, "Choose one of your rooms, or make a new one. The welcome room has a tour."),
      h("div", { class: "row" },
        h("button", { type: "button", class: "primary", click: () => createRoom((id) => void openRoom(id)) }, "New room"),
        h("button", { type: "button", click: () => void openRoom("rm_welcome") }, "Take the tour"))));
  }
}

function listen() {
  byId("skip").onclick = (event) => {
    event.preventDefault();
    (document.getElementById("compose") ?? byId("scroller")).focus();
  };
  byId("menu").onclick = () => document.body.classList.toggle("rooms-open");
  byId("close-rooms").onclick = () => document.body.classList.remove("rooms-open");
  byId("jump").onclick = () => attempt(open?.timeline.toNewest());
  byId("scrim").onclick = () => document.body.classList.remove("rooms-open", "panel-open");
  window.addEventListener("popstate", start);
  byId("messages").addEventListener("click", (event) => {
    const link = event.target instanceof Element && !event.metaKey && !event.ctrlKey && !event.shiftKey ? event.target.closest("a.permalink") : null;
    const seq = Number(link?.closest("li")?.dataset.seq);
    if (!seq) return;
    event.preventDefault();
    jump(seq);
  });
  window.addEventListener("keydown", (event) => {
    if (event.key === "Escape") document.body.classList.remove("rooms-open", "panel-open");
  });
  document.addEventListener("visibilitychange", () => open && drawJump(open.timeline, open.room));
  document.addEventListener("visibilitychange", () => {
    if (open?.timeline.pinned && document.visibilityState === "visible") open.room.lastRead = open.timeline.latest;
    thread?.seen();
  });
  person.addEventListener("changed", personChanged);
}

/** Somebody signed in or out, or was renewed. A room that is open stays so while its key is theirs. */
function personChanged() {
  keepSignedIn();
  if ((identity()?.userId ?? null) === drawnFor) return;
  drawnFor = sidebar.showPerson();
  const room = open?.room;
  if (room?.key && keptKey(room.id)?.userId === room.key.userId) void sidebar.show(room.id);
  else void start();
}

async function start() {
  const { room, seq, token, invite, userJwt } = readAddress();
  const failed = userJwt ? await enter(userJwt) : null;
  keepSignedIn();
  drawnFor = sidebar.showPerson();
  if (failed) {
    fail("You could not be signed in", h("p", {}, failed));
    return;
  }
  if (invite) {
    stage("entry");
    void sidebar.show(null);
    try {
      byId("entry").replaceChildren(await invitation(invite, (id) => void openRoom(id)));
    } catch (error) {
      fail("This invite does not work", h("p", {}, words(error)));
    }
  } else if (room) {
    if (token) await takeKey(room, token);
    await openRoom(room, { push: false, seq });
  } else {
    closeRoom();
    home();
  }
}

listen();
void start();
