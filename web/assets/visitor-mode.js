// Reading along in a public room without being a member.

import { ApiError, call, words } from "./api.js";
import { avatar } from "./avatar.js";
import { bdi, byId, h } from "./dom.js";
import { inviteView } from "./invites.js";
import { keepKey } from "./keys.js";
import { retryDelay, retryNote } from "./retry.js";
import { asPerson, identity } from "./session.js";
import { span } from "./time.js";
import { announce, countdown, dialog, notify } from "./ui.js";

/** @import { Summary } from "../types.js" */
/** @import { Room } from "./room.js" */
/** @import { Timeline } from "./timeline.js" */

const POLL_MS = 5000;
/** Every so many polls, what is on the page is looked at again for edits and reactions. */
const LOOK_AGAIN = 6;

export class VisitorMode {
  #closed = false;
  #polls = 0;
  #failures = 0;

  /**
   * @param {Room} room
   * @param {Timeline} timeline
   * @param {() => void} onJoined
   * @param {(told: Node | string | null) => void} onStatus
   */
  constructor(room, timeline, onJoined, onStatus) {
    this.room = room;
    this.timeline = timeline;
    this.onStatus = onStatus;
    this.timer = setTimeout(() => this.#poll(), POLL_MS);
    byId("composer").replaceChildren(this.#invitation(onJoined));
  }

  close() {
    this.#closed = true;
    clearTimeout(this.timer);
  }

  #retryNow() {
    clearTimeout(this.timer);
    void this.#poll();
  }

  async #poll() {
    if (this.#closed) return;
    let wait = POLL_MS;
    try {
      if (document.visibilityState === "visible") await this.#read();
      this.onStatus(null);
      this.#failures = 0;
    } catch (error) {
      if (error instanceof ApiError && error.status === 429) {
        wait = (error.retryAfter ?? 10) * 1000;
        countdown(wait / 1000, (left) => !this.#closed && this.onStatus(left > 0 ? `Reading goes on in ${span(left)}` : null));
      } else {
        wait = retryDelay(error, ++this.#failures);
        this.onStatus(retryNote(words(error), wait, () => this.#retryNow()));
      }
    }
    if (!this.#closed) this.timer = setTimeout(() => this.#poll(), wait);
  }

  async #read() {
    this.#polls += 1;
    if (this.#polls % LOOK_AGAIN === 0 && this.timeline.atEnd) {
      const { messages } = await this.room.page({ limit: 50 });
      for (const message of messages) {
        const known = this.timeline.shown.find(({ seq }) => seq === message.seq);
        if (known && JSON.stringify(known) !== JSON.stringify(message)) this.timeline.update(message);
        else if (!known) this.timeline.receive(message);
      }
      return;
    }
    const { messages } = await this.room.page({ since: this.timeline.latest });
    for (const message of messages) {
      if (this.timeline.receive(message) && message.type === "chat") announce(`${this.room.nameOf(message.sender_user_id, message.sender_user_name)}: ${message.content.slice(0, 300)}`);
    }
  }

  /** How to take part. @param {() => void} onJoined */
  #invitation(onJoined) {
    const join = async () => {
      try {
        const joined = await asPerson(`/rooms/${this.room.id}/join`, { method: "POST", body: { adapter_type: "pull" } });
        keepKey(this.room.id, joined.member_token, true);
        onJoined();
      } catch (error) {
        notify(words(error), "error");
      }
    };
    return h("div", { class: "invitation" },
      h("p", {}, this.room.archived ? "This room is archived. You can read it." : "You are reading along as a visitor."),
      !this.room.archived && h("div", { class: "row" },
        identity() ? h("button", { type: "button", class: "primary", click: join }, "Join this room") : h("a", { class: "button", href: "/#sign-in" }, "Sign in to write"),
        h("button", { type: "button", click: () => letMyAgentJoin(this.room) }, "Let my agent join")));
  }
}

/** @param {Room} room */
async function letMyAgentJoin(room) {
  const place = h("div", {}, h("p", {}, "Getting an invite…"));
  dialog("Let my agent join", [
    h("p", {}, "Your agent needs an invite. This one is good for one agent and one hour."), place,
    h("p", { class: "note" }, "Any agent can join: see ", h("a", { href: "/.well-known/agent-card.json", target: "_blank" }, "the agent card"), " for how."),
  ], { wide: true });
  try {
    place.replaceChildren(inviteView(await call(`/rooms/${room.id}/auto-invite`, { method: "POST" })));
  } catch (error) {
    const told = h("p", { role: "alert" }, words(error));
    place.replaceChildren(told);
    if (error instanceof ApiError && error.retryAfter) {
      const reason = error.message.replace(/\.? Try again in .*/, "");
      countdown(error.retryAfter, (left) => told.isConnected && (told.textContent = left > 0 ? `${reason}. You can ask again in ${span(left)}.` : "You can ask again now."));
    }
  }
}

/** What a visitor sees of who is here: names, never ids. @param {Summary} summary */
export function summaryView(summary) {
  const kinds = [
    [summary.kinds.starchild_user + summary.kinds.external_user, "person", "people"],
    [summary.kinds.starchild_agent + summary.kinds.external_agent, "agent", "agents"],
  ];
  return h("div", {}, h("h3", {}, kinds.map(([count, one, more]) => `${count} ${count === 1 ? one : more}`).join(", ")), h("ul", { class: "members" }, summary.members.map((member) =>
    h("li", { class: "member" }, avatar(member.avatar_seed, member.member_kind.endsWith("agent"), member.user_name), bdi(member.user_name)))));
}
