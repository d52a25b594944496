// Links that open the room as the person who made them.

import { h } from "./dom.js";
import { full, until } from "./time.js";
import { attempting, confirm, copyField } from "./ui.js";

/** @import { RoomKeyView } from "../types.js" */
/** @import { Room } from "./room.js" */

/** @type {Record<string, string>} */
const SCOPES = { view: "reads", "view+post": "reads and writes" };

/** @param {Room} room */
export async function linksTab(room) {
  const made = h("div", {});
  const list = h("ul", { class: "plain-list" });
  const load = async () => {
    const { room_keys } = await room.manage("/room-keys");
    list.replaceChildren(...room_keys.map(line));
    if (room_keys.length === 0) list.append(h("li", { class: "note" }, "No link of yours is open."));
  };
  const attempt = attempting(load);
  /** @param {RoomKeyView} key */
  const line = (key) => h("li", { class: "row" },
    h("span", { class: "grow" }, `${SCOPES[key.scope] ?? key.scope}, made ${full(key.issued_at)}, ends ${until(key.expires_at)}`),
    h("button", { type: "button", click: () => attempt(() => room.manage(`/room-keys/${encodeURIComponent(key.jti)}`, { method: "DELETE" }), "The link is revoked") }, "Revoke"));
  const scope = h("select", { id: "link-scope" }, h("option", { value: "view" }, "read this room"), h("option", { value: "view+post" }, "read and write, as you"));
  const make = async (/** @type {Event} */ event) => {
    event.preventDefault();
    await attempt(async () => {
      const key = await room.manage("/room-keys", { method: "POST", body: { for_user_id: room.userId, scope: scope.value } });
      made.replaceChildren(copyField("the link", key.viewer_url), h("p", { class: "note" }, `Ends ${until(key.expires_at)}. It is shown this once.`));
    }, "");
  };
  const revokeAll = async () => {
    if (await confirm("Revoke all your links?", "Whoever came with one of them is out at once. Your own browsers stay.", "Revoke all")) await attempt(() => room.manage("/room-keys", { method: "DELETE" }), "All links are revoked");
  };
  await load();
  return h("div", {},
    h("p", {}, "A link lets whoever has it act as you in this room, for a week at most. To let people in as themselves, invite them."),
    h("form", { class: "row", submit: make }, h("label", { for: "link-scope" }, "With it one can"), scope, h("button", { class: "primary" }, "Make a link")),
    made,
    h("h3", {}, "Your links to this room"), list,
    h("div", { class: "row end" }, h("button", { type: "button", class: "danger", click: revokeAll }, "Revoke all")));
}
