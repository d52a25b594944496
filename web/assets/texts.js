// A room's rules and data: read by members, written by the owner, each version after the other.

import { isCode, words } from "./api.js";
import { diffView } from "./diff.js";
import { bdi, h } from "./dom.js";
import { full } from "./time.js";
import { dialog, notify } from "./ui.js";

/** @import { RoomText } from "../types.js" */
/** @import { Room } from "./room.js" */

const MAX_TEXT_BYTES = 16_384;

/** @param {Room} room @param {"rules" | "data"} which */
export async function textTab(room, which) {
  let shown = /** @type {RoomText} */ (await room.call(`/${which}`));
  const stamp = h("p", { class: "note" });
  const history = h("button", { type: "button", class: "link", click: () => void openHistory(room, which) }, "Earlier versions");
  const tell = () => {
    stamp.replaceChildren(...stampWords(room, shown));
    history.hidden = shown.version <= 1;
  };
  tell();
  const about = which === "rules" ? "How everybody behaves here. Agents read the rules anew when their version changes." : "What agents and people should know in this room.";
  if (!room.isOwner || room.archived) {
    return h("div", {}, h("p", {}, about), h("pre", { class: "text", dir: "auto", tabIndex: 0 }, shown.content || "Nothing is written here yet."), stamp, history);
  }
  const field = h("textarea", { rows: 14, value: shown.content, id: `${which}-text`, dir: "auto" });
  const take = (/** @type {RoomText} */ now) => {
    shown = now;
    tell();
  };
  const save = async () => {
    if (new TextEncoder().encode(field.value).length > MAX_TEXT_BYTES) {
      notify("This is too long: at most 16 KB fit.", "error");
      return;
    }
    try {
      take(await room.manage(`/${which}`, { method: "PATCH", body: { content: field.value }, headers: { "if-match": `"${shown.version}"` } }));
      notify(`Saved as version ${shown.version}`);
    } catch (error) {
      if (isCode(error, "precondition_failed")) await settle();
      else notify(words(error), "error");
    }
  };
  /** Somebody else has saved meanwhile: which text is to stay? */
  const settle = async () => {
    const mine = field.value;
    const now = /** @type {RoomText} */ (await room.call(`/${which}`));
    const chosen = await changedMeanwhile(now, mine);
    if (chosen !== null) take(now);
    if (chosen === "theirs") field.value = now.content;
    if (chosen === "mine") await save();
  };
  return h("div", {}, h("label", { for: `${which}-text` }, about), field,
    h("div", { class: "row between" }, stamp, history, h("button", { type: "button", class: "primary", click: save }, "Save")));
}

/** @param {Room} room @param {RoomText} text */
const stampWords = (room, text) => [
  `Version ${text.version}`,
  text.updated_at ? `, changed ${full(text.updated_at)} by ` : "",
  text.updated_by ? bdi(room.nameOf(text.updated_by)) : "",
];

/** Asks which text is to stay, and shows what the other changes. @param {RoomText} now @param {string} mine @returns {Promise<"mine" | "theirs" | null>} */
function changedMeanwhile(now, mine) {
  return new Promise((resolve) => {
    /** @type {"mine" | "theirs" | null} */
    let answer = null;
    const button = (/** @type {"mine" | "theirs"} */ which, /** @type {string} */ label, /** @type {string} */ kind) =>
      h("button", { type: "button", class: kind, click: () => { answer = which; asked.close(); } }, label);
    const asked = dialog("Changed meanwhile", [
      h("p", {}, `Version ${now.version} was saved while you were writing. With yours it would change like this:`),
      diffView(now.content, mine),
      h("div", { class: "row end" },
        h("button", { type: "button", click: () => asked.close() }, "Cancel"),
        button("theirs", `Go on from version ${now.version}`, ""),
        button("mine", "Replace it with mine", "danger")),
    ], { wide: true });
    asked.addEventListener("close", () => resolve(answer));
  });
}

/** The versions of a text, each as what it changed. @param {Room} room @param {"rules" | "data"} which */
async function openHistory(room, which) {
  const body = h("div", {}, h("p", { class: "note" }, "Loading…"));
  dialog(`Versions of the ${which}`, [body], { wide: true });
  try {
    const { versions } = /** @type {{versions: RoomText[]}} */ (await room.call(`/${which}/history`));
    body.replaceChildren(...versions.map((text, n) => h("details", { class: "version", open: n === 0 },
      h("summary", {}, ...stampWords(room, text)),
      diffView(versions[n + 1]?.content ?? "", text.content))));
  } catch (error) {
    body.replaceChildren(h("p", { class: "note", role: "alert" }, words(error)));
  }
}
