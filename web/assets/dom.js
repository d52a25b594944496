// Making elements. All text goes in as text; markup comes from the server's renderer alone.

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * Makes an element. A property that is a function is a listener, `class` and `aria-…` are
 * attributes, and anything else is set as a property.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, any>} [props]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else if (name === "class" || name === "role" || name === "for" || name.includes("-")) {
      element.setAttribute(name, value === true ? "" : String(value));
    } else Reflect.set(element, name, value);
  }
  element.append(...children.flat().filter(isShown).map((child) => (child instanceof Node ? child : String(child))));
  return element;
}

/** @param {Child} child @returns {child is Node | string | number} */
function isShown(child) {
  return child !== null && child !== undefined && child !== false;
}

/**
 * A name or another short text that somebody else wrote: it cannot turn the text around it.
 * @param {string} text
 */
export function bdi(text) {
  return h("bdi", {}, text);
}

/** The element, or what was drawn in its place since: what has the same id, key or address. @param {Element} element */
export function asDrawnNow(element) {
  if (element.isConnected) return element;
  const found = ["id", "data-key", "href"].find((name) => element.getAttribute(name));
  return found ? document.querySelector(`[${found}="${CSS.escape(element.getAttribute(found) ?? "")}"]`) : null;
}

/** Draws a place anew. Whoever is in it with the keyboard stays where they are. @param {Element} place @param {...(Node | string)} children */
export function redraw(place, ...children) {
  const focused = place.contains(document.activeElement) ? document.activeElement : null;
  place.replaceChildren(...children);
  const now = focused && asDrawnNow(focused);
  if (now instanceof HTMLElement) now.focus({ preventScroll: true });
}

const SVG = "http://www.w3.org/2000/svg";

/**
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 * @param {...SVGElement} children
 */
export function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** The icons, each one path in a square of 24. @type {Record<string, string>} */
const ICONS = {
  menu: "M4 6h16M4 12h16M4 18h16",
  people: "M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7M2.5 20c.5-4 3-6 6.5-6s6 2 6.5 6M16 4.500a3.5 3.5 0 0 1 0 6.500M18 14.500c2 .8 3.2 2.6 3.5 5.5",
  settings: "M4 7h9M17 7h3M4 17h3M11 17h9M15 4.500v5M9 14.500v5",
  book: "M5 4h11a3 3 0 0 1 3 3v13H8a3 3 0 0 1-3-3zM5 17a3 3 0 0 1 3-3h11",
  close: "M6 6l12 12M18 6L6 18",
  reply: "M10 6L4 12l6 6M4.5 12H14a6 6 0 0 1 6 6",
  thread: "M5 5h14v10H10l-5 4z",
  react: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M8.5 14c1.8 2.6 5.2 2.6 7 0M9 9.500v.1M15 9.500v.1",
  edit: "M4 20l1-4L16 5l3 3L8 19zM14 7l3 3",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  link: "M10 14l4-4M9 8l2-2a4 4 0 0 1 6 6l-2 2M15 16l-2 2a4 4 0 0 1-6-6l2-2",
  check: "M5 12.500l4.500 4.500L19 7",
  stop: "M7 7h10v10H7z",
  again: "M19 12a7 7 0 1 1-2-5M17 3v4h-4",
  invite: "M10 11a3.500 3.500 0 1 0 0-7 3.500 3.500 0 0 0 0 7M3 20c.5-4 3-6 7-6 2 0 3.500.5 4.700 1.500M18 13v7M14.500 16.500h7",
  search: "M10.500 4a6.500 6.500 0 1 0 0 13 6.500 6.500 0 0 0 0-13M15.500 15.500L20 20",
  bell: "M6 16V11a6 6 0 0 1 12 0v5l1.500 2h-15zM10 20.500h4",
  pin: "M9 4h6l-1 6 3 3H7l3-3zM12 13v7",
  keys: "M3 7h18v10H3zM7 10.500v.1M11 10.500v.1M15 10.500v.1M8 14h8",
  copy: "M9 9h10v11H9zM5 15V4h10",
  send: "M4 12l16-8-6 17-3-7z",
  down: "M12 5v14M6 13l6 6 6-6",
  plus: "M12 5v14M5 12h14",
  theme: "M12 4a8 8 0 1 0 8 8 6 6 0 0 1-8-8",
  out: "M10 5H5v14h5M14 8l4 4-4 4M18 12H9",
  trophy: "M8 4h8v6a4 4 0 0 1-8 0zM8 6H4c0 3 1.5 5 4 5M16 6h4c0 3-1.5 5-4 5M12 14v4M8 20h8",
  lock: "M6 11h12v9H6zM8.5 11V8a3.5 3.5 0 0 1 7 0v3",
  globe: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M3 12h18M12 3c3 3 3 15 0 18M12 3c-3 3-3 15 0 18",
};

/** @param {string} name */
export function icon(name) {
  return svg(
    "svg",
    { viewBox: "0 0 24 24", width: 20, height: 20, "aria-hidden": "true", class: "icon" },
    svg("path", { d: ICONS[name] ?? "", fill: "none", stroke: "currentColor", "stroke-width": 1.7, "stroke-linecap": "round", "stroke-linejoin": "round" }),
  );
}

/**
 * A button that shows an icon and says what it does.
 * @param {string} name
 * @param {string} label
 * @param {(event: MouseEvent) => void} click
 * @param {Record<string, any>} [props]
 */
export function iconButton(name, label, click, props = {}) {
  return h("button", { type: "button", class: "icon-button", "aria-label": label, title: label, click, ...props }, icon(name));
}

/** The element with this id, which the page has. @param {string} id @returns {HTMLElement} */
export function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no #${id}`);
  return element;
}

/**
 * Puts the server's rendered text into an element: the only markup that is ever parsed.
 * @param {Element} element
 * @param {string} html
 */
export function setRendered(element, html) {
  element.innerHTML = /** @type {string} */ (/** @type {unknown} */ (POLICY ? POLICY.createHTML(html) : html));
}

/** @type {{createHTML: (html: string) => unknown} | undefined} */
const POLICY = /** @type {any} */ (globalThis).trustedTypes?.createPolicy("sc-render", {
  createHTML: (/** @type {string} */ html) => html,
});
