// Small things that every part of the page uses: notices, dialogs, countdowns, the theme.

import { words } from "./api.js";
import { asDrawnNow, h, icon, iconButton } from "./dom.js";
import { read, write } from "./store.js";

/** Tells people who do not see the page. @param {string} text */
export function announce(text) {
  const region = document.getElementById("announcer");
  if (region) region.textContent = text;
}

/**
 * Shows a notice for a while.
 * @param {string} text
 * @param {"info" | "error"} [kind]
 */
export function notify(text, kind = "info") {
  // A dialog covers the rest of the page, and has room for one.
  const within = [...document.querySelectorAll("dialog:modal > .notices")].at(-1);
  within?.replaceChildren();
  const place = within ?? document.getElementById("notices");
  if (!place) return;
  const notice = h("div", { class: `notice ${kind}`, role: kind === "error" ? "alert" : "status" }, h("span", {}, text));
  notice.append(iconButton("close", "Dismiss", () => notice.remove()));
  place.append(notice);
  setTimeout(() => notice.remove(), kind === "error" ? 12_000 : 5000);
}

/**
 * Does something, tells that it is done or why not, and shows how things stand then.
 * @param {() => Promise<void>} load
 */
export const attempting = (load) => async (/** @type {() => Promise<unknown>} */ what, /** @type {string} */ told) => {
  try {
    await what();
    if (told) notify(told);
    await load();
  } catch (error) {
    notify(words(error), "error");
  }
};

/**
 * Opens a dialog and gives it; it is gone once closed.
 * @param {string} title
 * @param {(Node | string)[]} content
 * @param {{wide?: boolean}} [options]
 */
export function dialog(title, content, { wide = false } = {}) {
  const opener = document.activeElement;
  const heading = h("h2", { id: "dialog-title" }, title);
  const element = h("dialog", { class: wide ? "wide" : undefined, "aria-labelledby": "dialog-title" });
  const notices = h("div", { class: "notices" });
  element.append(
    h("header", {}, heading, iconButton("close", "Close", () => element.close())),
    notices,
    h("div", { class: "dialog-body" }, ...content),
  );
  element.addEventListener("close", () => {
    document.getElementById("notices")?.append(...notices.children);
    element.remove();
    // The browser goes back to what was focused before, but not where that was drawn anew.
    const now = opener && !opener.isConnected && document.activeElement === document.body ? asDrawnNow(opener) : null;
    if (now instanceof HTMLElement) now.focus();
  });
  element.addEventListener("click", (event) => event.target === element && element.close());
  document.body.append(element);
  element.showModal();
  return element;
}

/**
 * Tabs, and what the chosen one shows. What was shown stays until the next is there, so nothing jumps.
 * @param {string} label
 * @param {Record<string, {title: string, show: () => Promise<Node>}>} tabs
 */
export function tabbed(label, tabs) {
  const panel = h("div", { role: "tabpanel", id: "tab-panel", tabIndex: 0 });
  const buttons = Object.entries(tabs).map(([id, { title }]) =>
    h("button", { type: "button", role: "tab", "aria-controls": "tab-panel", id: `tab-${id}`, click: () => choose(id) }, title));
  const list = h("div", { role: "tablist", class: "tabs", "aria-label": label }, buttons);
  list.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const at = buttons.indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
    if (step && at >= 0) buttons[(at + step + buttons.length) % buttons.length].focus();
  });
  // A tab that is shown already is not drawn anew: somebody may have written in it. One that failed is.
  const choose = (/** @type {string} */ id) => {
    const isShown = buttons.some((button) => button.id === `tab-${id}` && button.getAttribute("aria-selected") === "true");
    if (!isShown || panel.querySelector(":scope > [role=alert]")) void select(id);
  };
  let turn = 0;
  const fail = (/** @type {string} */ words) => panel.replaceChildren(h("p", { class: "note", role: "alert" }, words));
  const select = async (/** @type {string} */ id) => {
    const mine = ++turn;
    made.selected = id;
    for (const button of buttons) {
      const chosen = button.id === `tab-${id}`;
      button.setAttribute("aria-selected", String(chosen));
      button.tabIndex = chosen ? 0 : -1;
      // On a narrow page the tabs are wider than it.
      if (chosen) list.scrollLeft = button.offsetLeft - list.offsetLeft - (list.clientWidth - button.offsetWidth) / 2;
    }
    panel.setAttribute("aria-labelledby", `tab-${id}`);
    panel.setAttribute("aria-busy", "true");
    const content = await tabs[id].show().catch((error) => h("p", { class: "note", role: "alert" }, words(error)));
    // Another tab may have been chosen meanwhile.
    if (mine !== turn) return;
    panel.removeAttribute("aria-busy");
    panel.replaceChildren(content);
  };
  const made = { element: h("div", { class: "tabbed" }, list, panel), select, fail, selected: Object.keys(tabs)[0] };
  return made;
}

/**
 * Asks before something that cannot be taken back.
 * @param {string} title
 * @param {string} text
 * @param {string} yes
 * @param {string} [no]
 * @returns {Promise<boolean>}
 */
export function confirm(title, text, yes, no = "Cancel") {
  return new Promise((resolve) => {
    let answer = false;
    const accept = () => {
      answer = true;
      asked.close();
    };
    const asked = dialog(title, [
      h("p", {}, text),
      h("div", { class: "row end" },
        h("button", { type: "button", click: () => asked.close() }, no),
        h("button", { type: "button", class: "danger", click: accept }, yes)),
    ]);
    asked.addEventListener("close", () => resolve(answer));
  });
}

/**
 * Counts down in an element, then calls back.
 * @param {number} seconds
 * @param {(left: number) => void} tick
 * @returns {() => void} stops it
 */
export function countdown(seconds, tick) {
  const end = Date.now() + seconds * 1000;
  const step = () => {
    const left = Math.max(0, Math.ceil((end - Date.now()) / 1000));
    tick(left);
    if (left === 0) clearInterval(timer);
  };
  const timer = setInterval(step, 500);
  step();
  return () => clearInterval(timer);
}

/** A text with a button that copies it. @param {string} label @param {string} text */
export function copyField(label, text) {
  const field = h("input", { type: "text", readOnly: true, value: text, "aria-label": label, focus: () => field.select() });
  const button = h("button", { type: "button", click: () => copy(text, label) }, icon("copy"), "Copy");
  return h("div", { class: "copy-field" }, field, button);
}

/** @param {string} text @param {string} what */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    notify(`Copied: ${what}`);
  } catch {
    notify("The browser did not allow copying. Select the text and copy it by hand.", "error");
  }
}

/** Applies the chosen theme, and gives the button that changes it. */
export function themeButton() {
  const apply = (/** @type {string | null} */ theme) => {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
  };
  apply(read("theme"));
  return iconButton("theme", "Light or dark", () => {
    const dark = read("theme") ? read("theme") === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    write("theme", dark ? "light" : "dark");
    apply(read("theme"));
  });
}
