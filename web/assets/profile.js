// One's own name and picture.

import { ApiError, words } from "./api.js";
import { avatar } from "./avatar.js";
import { h } from "./dom.js";
import { asPerson, keepName } from "./session.js";
import { notify } from "./ui.js";

/** @import { Account } from "../types.js" */

/** Pictures are made this small before they are sent: that also leaves out where they were taken. */
const SIDE_PX = 128;

/** The form in which they are chosen. */
export function profileForm() {
  const place = h("div", { class: "profile" }, h("p", { class: "note" }, "Loading…"));
  const show = (/** @type {Account} */ account) => {
    keepName(account.user_id, account.display_name);
    const name = h("input", { type: "text", id: "own-name", maxLength: 64, required: true, value: account.display_name ?? "", autocomplete: "nickname" });
    const file = h("input", { type: "file", id: "own-picture", accept: "image/png,image/jpeg,image/webp,image/gif", class: "unseen", change: () => file.files?.[0] && attempt(() => upload(/** @type {File} */ (file.files?.[0])), "Your picture is changed") });
    const rename = (/** @type {Event} */ event) => {
      event.preventDefault();
      void attempt(() => asPerson("/me", { method: "PATCH", body: { display_name: name.value } }), "Your name is changed");
    };
    place.replaceChildren(
      h("div", { class: "row" },
        avatar(account.avatar_seed, false, account.display_name ?? account.user_id, account.picture && `${account.picture}?${Date.now()}`),
        h("label", { for: "own-picture", class: "button" }, "Change picture"), file,
        account.picture && h("button", { type: "button", click: () => attempt(() => asPerson("/me/picture", { method: "DELETE" }), "Your picture is gone") }, "No picture")),
      h("form", { class: "row", submit: rename }, h("label", { for: "own-name" }, "Name"), name, h("button", {}, "Save")));
  };
  const attempt = async (/** @type {() => Promise<Account>} */ what, /** @type {string} */ told) => {
    try {
      show(await what());
      notify(told);
    } catch (error) {
      notify(words(error), "error");
    }
  };
  asPerson("/me").then(show, (error) => place.replaceChildren(h("p", { class: "note", role: "alert" }, words(error))));
  return place;
}

/** @param {File} file @returns {Promise<Account>} */
async function upload(file) {
  return asPerson("/me/picture", { method: "PUT", body: await small(file) });
}

const unreadable = () => new ApiError(400, "bad_picture", "This file is no picture that the browser can read.");

/** The middle of a picture, as a small square. @param {File} file @returns {Promise<Blob>} */
async function small(file) {
  const picture = await createImageBitmap(file).catch(() => { throw unreadable(); });
  const side = Math.min(picture.width, picture.height);
  const canvas = h("canvas", { width: SIDE_PX, height: SIDE_PX });
  canvas.getContext("2d")?.drawImage(picture, (picture.width - side) / 2, (picture.height - side) / 2, side, side, 0, 0, SIDE_PX, SIDE_PX);
  return new Promise((resolve, reject) => canvas.toBlob((blob) => (blob ? resolve(blob) : reject(unreadable())), "image/png"));
}
