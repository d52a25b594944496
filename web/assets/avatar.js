// Avatars drawn from a seed: the same seed gives the same picture, everywhere.

import { h, svg } from "./dom.js";

/** 32 bits from a text. @param {string} text */
function hash(text) {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  value = Math.imul(value ^ (value >>> 15), 0x2c1b3c6d);
  return (value ^ (value >>> 13)) >>> 0;
}

/**
 * A person's is round, with their picture or initials; an agent's is square.
 * @param {string} seed
 * @param {boolean} agent
 * @param {string | null} [name]
 * @param {string | null} [picture] where the one is that they chose
 */
export function avatar(seed, agent, name, picture) {
  const hue = hash(seed) % 12;
  if (picture) return h("img", { class: "avatar picture", src: picture, alt: "", width: 40, height: 40, loading: "lazy" });
  const letters = agent ? "" : initials(name ?? "");
  const shape = agent
    ? svg("rect", { width: 40, height: 40, rx: 9, class: "avatar-back" })
    : svg("circle", { cx: 20, cy: 20, r: 20, class: "avatar-back" });
  return svg("svg", { viewBox: "0 0 40 40", class: `avatar hue-${hue}`, "aria-hidden": "true" }, shape, letters ? written(letters) : pattern(seed));
}

/** The first letters of the first and the last word. @param {string} name */
function initials(name) {
  const words = name.split(/[\s_.-]+/).map((word) => /[\p{L}\p{N}]/u.exec(word)?.[0] ?? "").filter(Boolean);
  return [words[0], words.length > 1 ? words.at(-1) : ""].join("").toUpperCase();
}

/** @param {string} letters */
function written(letters) {
  const text = svg("text", { x: 20, y: 20, class: "avatar-letters", "text-anchor": "middle", "dominant-baseline": "central" });
  text.textContent = letters;
  return text;
}

/** @param {string} seed */
function pattern(seed) {
  const cells = [];
  // The left half of a 5 × 5 field, mirrored.
  for (let row = 0; row < 5; row++) {
    for (let column = 0; column < 3; column++) {
      if (((hash(`${seed}#${row}`) >> (column * 3)) & 7) < 4) continue;
      for (const x of column === 2 ? [2] : [column, 4 - column]) {
        cells.push(svg("rect", { x: 6.5 + x * 5.4, y: 6.5 + row * 5.4, width: 5.5, height: 5.5 }));
      }
    }
  }
  return svg("g", { class: "avatar-cells" }, ...cells);
}
