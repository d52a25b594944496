// The inbox: who has mentioned the person, over all rooms.

import { words } from "./api.js";
import { bdi, h } from "./dom.js";
import { day, clock } from "./time.js";
import { dialog, notify } from "./ui.js";

/** @import { InboxMention } from "../types.js" */
/** @import { Inbox } from "./inbox.js" */

/** @param {Inbox} inbox @param {(room: string, seq: number) => void} open */
export function openMentions(inbox, open) {
  const list = h("ul", { class: "mentions" });
  const more = h("button", { type: "button", click: () => inbox.more().then(draw, (error) => notify(words(error), "error")) }, "Show earlier ones");
  const draw = () => {
    list.replaceChildren(...inbox.mentions.map(line));
    if (inbox.mentions.length === 0) list.append(h("li", { class: "note" }, "Nobody has mentioned you yet. Whoever writes @ and your name does."));
    more.hidden = inbox.cursor === null;
  };
  /** @param {InboxMention} mention */
  const line = (mention) => {
    const follow = () => {
      page.close();
      open(mention.room_id, mention.seq);
    };
    return h("li", { class: mention.unread ? "fresh" : undefined },
      h("button", { type: "button", click: follow },
        h("span", {}, h("b", {}, bdi(mention.sender_user_name ?? mention.sender_user_id)), " in ", bdi(mention.room_name),
          h("small", {}, ` · ${day(mention.created_at)}, ${clock(mention.created_at)}`)),
        h("span", { class: "preview", dir: "auto" }, mention.preview)));
  };
  const page = dialog("Inbox", [list, more], { wide: true });
  draw();
  inbox.addEventListener("changed", draw);
  page.addEventListener("close", () => inbox.removeEventListener("changed", draw));
}
