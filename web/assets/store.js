// What the browser keeps. A browser that keeps nothing still shows the page.

const PREFIX = "sc_";

/** @param {string} key @returns {string | null} */
export function read(key) {
  try {
    return localStorage.getItem(PREFIX + key);
  } catch {
    return null;
  }
}

/** @param {string} key @param {string | null} value nothing to forget it */
export function write(key, value) {
  try {
    if (value === null) localStorage.removeItem(PREFIX + key);
    else localStorage.setItem(PREFIX + key, value);
  } catch {
    // The store is full or closed: the page goes on without it.
  }
}

/** @param {string} key @returns {any} */
export function readJson(key) {
  try {
    return JSON.parse(read(key) ?? "null");
  } catch {
    return null;
  }
}

/** @param {string} key @param {unknown} value */
export function writeJson(key, value) {
  write(key, value === null ? null : JSON.stringify(value));
}

/** Calls back when another tab has changed this. @param {string} key @param {() => void} changed */
export function onElsewhere(key, changed) {
  window.addEventListener("storage", (event) => {
    // No key: everything was cleared.
    if (event.key === PREFIX + key || event.key === null) changed();
  });
}

/** The keys that begin so. @param {string} start @returns {string[]} */
export function keys(start) {
  try {
    return Object.keys(localStorage)
      .filter((key) => key.startsWith(PREFIX + start))
      .map((key) => key.slice(PREFIX.length));
  } catch {
    return [];
  }
}
