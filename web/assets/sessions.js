// What acts for the person who is signed in, and ending it.

import { words } from "./api.js";
import { h } from "./dom.js";
import { asPerson, signOut } from "./session.js";
import { full } from "./time.js";
import { confirm, dialog, notify } from "./ui.js";

/** @import { Session } from "../types.js" */

/** @type {Record<string, string>} */
const KINDS = { identity: "Sign-in", member_token: "Key to a room", shared_key: "Shared key or link", cli_key: "Command line" };

/** Shows the person's sessions in a dialog. */
export async function openSessions() {
  const list = h("ul", { class: "sessions" });
  const endOthers = h("button", { type: "button", click: () => act(() => asPerson("/auth/sessions?keep=current", { method: "DELETE" })) }, "End all others");
  const endAll = h("button", { type: "button", class: "danger", click: everywhere }, "Sign out everywhere");
  const shown = dialog("Your sessions", [list, h("div", { class: "row end" }, endOthers, endAll)]);
  await draw();

  async function draw() {
    try {
      const { sessions } = await asPerson("/auth/sessions");
      list.replaceChildren(...sessions.map(line));
    } catch (error) {
      notify(words(error), "error");
    }
  }

  /** @param {Session} session */
  function line(session) {
    const about = [KINDS[session.kind] ?? session.kind, session.room_id, session.label].filter(Boolean).join(" · ");
    const end = () => act(() => asPerson(`/auth/sessions/${encodeURIComponent(session.id)}`, { method: "DELETE" }));
    return h("li", { class: "row" },
      h("span", { class: "grow" }, about, h("br"), h("small", {}, `since ${full(session.issued_at)}, until ${full(session.expires_at)}`)),
      session.current ? h("b", {}, "this one") : h("button", { type: "button", click: end }, "End"));
  }

  /** @param {() => Promise<unknown>} change */
  async function act(change) {
    try {
      await change();
    } catch (error) {
      notify(words(error), "error");
    }
    await draw();
  }

  async function everywhere() {
    const sure = await confirm("Sign out everywhere?", "Every sign-in, key and link of yours ends now, this one too.", "Sign out everywhere");
    if (!sure) return;
    await asPerson("/auth/sessions", { method: "DELETE" }).catch((error) => notify(words(error), "error"));
    shown.close();
    await signOut();
    location.assign("/");
  }
}
