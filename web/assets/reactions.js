// Choosing an emoji.

import { h } from "./dom.js";
import { QUICK_REACTIONS } from "./message.js";

const MORE = ["🚀", "🔥", "💡", "😂", "😍", "😮", "😢", "👏", "🙌", "💯", "⭐", "❌", "⚠️", "🐛", "🛠️", "📌", "☕", "🤖", "🧠", "🌱", "👋", "🤝", "❓", "‼️"];

/**
 * Opens the choice beside a button.
 * @param {HTMLElement} button
 * @param {(emoji: string) => void} choose
 */
export function pickReaction(button, choose) {
  const menu = h("dialog", { class: "picker", "aria-label": "Choose a reaction" });
  const pick = (/** @type {string} */ emoji) => {
    menu.close();
    choose(emoji);
  };
  const grid = h("div", { class: "emoji" }, [...QUICK_REACTIONS, ...MORE].map((emoji) => h("button", { type: "button", click: () => pick(emoji) }, emoji)));
  const field = h("input", { type: "text", maxLength: 32, placeholder: "or type one", "aria-label": "Another emoji" });
  const form = h("form", {
    class: "row",
    submit: (/** @type {Event} */ event) => {
      event.preventDefault();
      if (field.value.trim()) pick(field.value.trim());
    },
  }, field, h("button", {}, "React"));
  menu.append(grid, form);
  menu.addEventListener("close", () => {
    menu.remove();
    button.focus();
  });
  menu.addEventListener("click", (event) => event.target === menu && menu.close());
  grid.addEventListener("keydown", (event) => {
    const buttons = [...grid.querySelectorAll("button")];
    const at = buttons.indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 8, ArrowUp: -8 }[event.key];
    if (!step) return;
    event.preventDefault();
    buttons[Math.max(0, Math.min(buttons.length - 1, at + step))]?.focus();
  });
  document.body.append(menu);
  menu.showModal();
  const box = button.getBoundingClientRect();
  const size = menu.getBoundingClientRect();
  menu.style.left = `${Math.max(8, Math.min(box.right - size.width, innerWidth - size.width - 8))}px`;
  menu.style.top = `${Math.max(8, Math.min(box.bottom + 4, innerHeight - size.height - 8))}px`;
}
