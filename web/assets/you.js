// What belongs to the person who is signed in: name, picture, notifications, sessions.

import { h, icon } from "./dom.js";
import { notificationForm } from "./notifications.js";
import { profileForm } from "./profile.js";
import { identity, signOut } from "./session.js";
import { openSessions } from "./sessions.js";
import { dialog } from "./ui.js";

/** Opens the person's own page. */
export function openYou() {
  const who = identity();
  if (!who) return;
  const choose = (/** @type {() => void} */ what) => () => {
    page.close();
    what();
  };
  const leave = async () => {
    await signOut();
    location.assign("/");
  };
  const page = dialog("You", [
    profileForm(),
    h("h3", {}, "Notifications"), notificationForm(),
    h("h3", {}, "Signed in as ", h("code", {}, who.userId)),
    h("div", { class: "you-menu" },
      h("button", { type: "button", id: "your-sessions", click: choose(() => void openSessions()) }, icon("lock"), "Your sessions"),
      h("button", { type: "button", id: "sign-out", click: leave }, icon("out"), "Sign out")),
  ]);
}
