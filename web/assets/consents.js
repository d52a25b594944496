// Agents that ask for a yes: a card for each, which the agent's owner decides.

import { words } from "./api.js";
import { avatar } from "./avatar.js";
import { diffLines } from "./diff.js";
import { bdi, h } from "./dom.js";
import { until } from "./time.js";
import { announce, notify } from "./ui.js";

/** @import { Consent } from "../types.js" */
/** @import { Room } from "./room.js" */

/** @type {Record<string, string>} */
const OUTCOMES = { allowed: "allowed", always: "allowed, now and from now on,", denied: "refused", expired: "waited too long", withdrawn: "no longer needed" };

export class ConsentCards {
  /** @type {Map<string, HTMLElement>} */ #cards = new Map();

  /** @param {Room} room @param {HTMLElement} place */
  constructor(room, place) {
    this.room = room;
    this.place = place;
    place.replaceChildren();
    void this.load();
  }

  close() {
    this.place.replaceChildren();
  }

  /** Shows what waits now. */
  async load() {
    try {
      const { consents } = await this.room.manage("/consents?state=open");
      const open = new Set(consents.map((/** @type {Consent} */ { consent_id }) => consent_id));
      for (const [id, card] of this.#cards) {
        if (open.has(id)) continue;
        card.remove();
        this.#cards.delete(id);
      }
      for (const consent of consents.reverse()) this.#show(consent);
    } catch {
      // The stream tells of the next one, and what waits is loaded with it.
    }
  }

  /** Something was asked or decided; the event tells who, the server what. @param {Consent} event */
  async updated(event) {
    if (event.state !== "open") return this.#closed(event);
    try {
      this.#show(await this.room.manage(`/consents/${encodeURIComponent(event.consent_id)}`));
    } catch {
      this.#show(event);
    }
  }

  /** @param {Consent} consent */
  #show(consent) {
    if (consent.state !== "open") return;
    const name = this.room.nameOf(consent.user_id);
    const fresh = !this.#cards.has(consent.consent_id);
    const card = this.#cards.get(consent.consent_id) ?? h("li", { class: "consent" });
    this.#cards.set(consent.consent_id, card);
    card.replaceChildren(
      avatar(this.room.seedOf(consent.user_id), true),
      h("div", { class: "body" },
        h("p", {}, h("b", {}, bdi(name)), " asks to use ", h("code", {}, consent.tool)),
        consent.summary ? h("p", { dir: "auto" }, consent.summary) : null,
        consent.detail ? h("pre", { class: "detail", tabIndex: 0, dir: "auto" }, h("code", {}, ...diffLines(consent.detail))) : null,
        consent.mine_to_decide ? this.#buttons(consent) : h("p", { class: "note" }, "It waits for ", bdi(this.room.nameOf(consent.owner_user_id)), "."),
        h("p", { class: "note" }, `Ends ${until(consent.expires_at)}, which is a no.`)));
    if (!card.isConnected) this.place.append(card);
    if (fresh) announce(`${name} asks to use ${consent.tool}`);
  }

  /** @param {Consent} consent */
  #buttons(consent) {
    const decide = (/** @type {"allow" | "always" | "deny"} */ decision) => async () => {
      row.querySelectorAll("button").forEach((button) => { button.disabled = true; });
      try {
        this.#closed(await this.room.manage(`/consents/${encodeURIComponent(consent.consent_id)}`, { method: "POST", body: { decision } }));
      } catch (error) {
        notify(words(error), "error");
        await this.load();
      }
    };
    const row = h("div", { class: "row" },
      h("button", { type: "button", class: "primary", click: decide("allow") }, "Allow once"),
      h("button", { type: "button", click: decide("always") }, "Always"),
      h("button", { type: "button", class: "danger", click: decide("deny") }, "Deny"));
    return row;
  }

  /** @param {Consent} consent */
  #closed(consent) {
    const card = this.#cards.get(consent.consent_id);
    this.#cards.delete(consent.consent_id);
    if (!card) return;
    card.classList.add("closed");
    card.replaceChildren(h("p", { class: "note", role: "status" },
      bdi(this.room.nameOf(consent.user_id)), " · ", h("code", {}, consent.tool), ` ${OUTCOMES[consent.state] ?? consent.state}`,
      ...(consent.decided_by ? [" by ", bdi(this.room.nameOf(consent.decided_by))] : [])));
    setTimeout(() => card.remove(), 30_000);
  }
}
