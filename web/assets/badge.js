// How much waits, in the tab's title and its icon.

/** @type {string | null} */
let own = null;
let shown = "";

/**
 * @param {string} title
 * @param {number} unread
 * @param {number} mentioned
 */
export function showBadge(title, unread, mentioned) {
  const count = unread > 99 ? "99+" : String(unread);
  document.title = unread > 0 ? `(${count}) ${title}` : title;
  const link = /** @type {HTMLLinkElement | null} */ (document.querySelector("link[rel=icon]"));
  if (!link) return;
  own ??= link.href;
  const wanted = unread > 0 ? `${count} ${mentioned > 0}` : "";
  if (wanted === shown) return;
  shown = wanted;
  link.href = unread > 0 ? drawn(unread > 9 ? "9+" : String(unread), mentioned > 0) : own;
}

/** The icon with a number on it; a mention is red. @param {string} count @param {boolean} urgent */
function drawn(count, urgent) {
  const colour = urgent ? "#c62828" : "#3d4fd1";
  const star = "M16 4l3 9 9 3-9 3-3 9-3-9-9-3 9-3z";
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#8a8fb5"/><path d="${star}" fill="#fff"/><circle cx="21" cy="21" r="11" fill="${colour}"/><text x="21" y="26" font-family="sans-serif" font-size="15" font-weight="700" text-anchor="middle" fill="#fff">${count}</text></svg>`;
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}
