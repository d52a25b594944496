// The front page: the public rooms, and signing in.

import { call, words } from "./api.js";
import { bdi, byId, h } from "./dom.js";
import { withRetries } from "./retry.js";
import { asPerson, identity, signInEnded } from "./session.js";
import { day } from "./time.js";
import { themeButton } from "./ui.js";

/** @import { MyRoom, PublicRoom } from "../types.js" */

async function showPublicRooms() {
  const list = byId("public");
  try {
    const { rooms } = await withRetries(() => call("/rooms/public?limit=50"), (note) => list.replaceChildren(h("li", {}, note)));
    list.replaceChildren(...rooms.map((/** @type {PublicRoom} */ room) => row(room, day(room.created_at))));
    if (rooms.length === 0) list.append(h("li", { class: "note" }, "There is no public room yet."));
  } catch (error) {
    list.replaceChildren(h("li", { class: "note", role: "alert" }, words(error)));
  }
}

/** @param {{room_id: string, name: string}} room @param {string} note */
const row = (room, note) => h("li", {}, h("a", { href: `/view?room=${room.room_id}` }, h("span", { class: "cut" }, bdi(room.name)), h("small", {}, note)));

/** Whoever is signed in sees their rooms where others sign in. */
async function showPerson() {
  const who = identity();
  if (signInEnded()) byId("person").replaceChildren("Your sign-in has ended. Open a new link, or paste it below.");
  byId("sign-in").hidden = who !== null;
  byId("yours").hidden = who === null;
  if (!who) return;
  byId("person").replaceChildren("You are signed in as ", bdi(who.name ?? who.userId), ". ", h("a", { class: "button primary", href: "/view" }, "To your rooms"));
  const list = byId("your-rooms");
  try {
    const { rooms } = await withRetries(() => asPerson("/rooms"), (note) => list.replaceChildren(h("li", {}, note)));
    list.replaceChildren(...rooms.map((/** @type {MyRoom} */ room) => row(room, room.archived ? "archived" : room.role)));
    if (rooms.length === 0) list.append(h("li", { class: "note" }, "You are in no room yet."));
  } catch (error) {
    if (identity()) list.replaceChildren(h("li", { class: "note", role: "alert" }, words(error)));
    else void showPerson();
  }
}

/** Follows a link of this server, wherever it was made; another server's is refused. @param {Event} event */
function follow(event) {
  event.preventDefault();
  const field = /** @type {HTMLInputElement} */ (byId("link"));
  const target = wayIn(field.value.trim());
  byId("paste-note").textContent = target ? "" : "This is no sign-in link, room link or invite of this server.";
  if (target) location.assign(target);
}

/** @param {string} text */
function wayIn(text) {
  if (/^i_[\w-]{8}$/.test(text)) return `/view#invite=${text}`;
  if (/^rm_[\w-]{1,64}$/.test(text)) return `/view?room=${text}`;
  try {
    const url = new URL(text, location.origin);
    const known = url.pathname === "/view" || /^\/k\/ck_[\w-]+$/.test(url.pathname);
    return known && url.origin === location.origin && (url.search || url.hash || url.pathname !== "/view") ? url.pathname + url.search + url.hash : null;
  } catch {
    return null;
  }
}

byId("theme").append(themeButton());
byId("paste").addEventListener("submit", follow);
void showPerson();
void showPublicRooms();
