// The panel at the side: who is here, or a thread. On a narrow page it lies over the rest.

import { byId, redraw } from "./dom.js";
import { read, write } from "./store.js";

const narrow = matchMedia("(max-width: 1100px)");

/** @typedef {"Members" | "Thread"} Shows */

export class Panel {
  /** @param {() => void} onClosed what is shown when somebody closes it is gone */
  constructor(onClosed) {
    this.onClosed = onClosed;
    document.body.classList.toggle("panel-closed", read("panel") === "closed");
    byId("close-panel").onclick = () => this.close();
  }

  /** @returns {Shows} */
  get shows() {
    return byId("panel-body").dataset.shows === "Thread" ? "Thread" : "Members";
  }

  get isOpen() {
    return document.body.classList.contains(narrow.matches ? "panel-open" : "panel-closed") === narrow.matches;
  }

  /** Puts something into the panel, which may stay closed. @param {Shows} title @param {Node} content */
  put(title, content) {
    byId("panel-title").textContent = title;
    byId("panel-body").dataset.shows = title;
    redraw(byId("panel-body"), content);
  }

  open() {
    document.body.classList.add("panel-open");
    document.body.classList.remove("panel-closed");
  }

  /** Where it lies over the page it goes; beside it, a thread makes way for the members. */
  close() {
    const wasThread = this.shows === "Thread";
    document.body.classList.remove("panel-open");
    if (!narrow.matches && !wasThread) this.#keepClosed(true);
    this.onClosed();
  }

  /** The button for the members. */
  toggle() {
    const shut = this.isOpen && this.shows === "Members";
    if (narrow.matches) document.body.classList.toggle("panel-open", !shut);
    else this.#keepClosed(shut);
    if (this.shows === "Thread") this.onClosed();
  }

  /** @param {boolean} closed */
  #keepClosed(closed) {
    document.body.classList.toggle("panel-closed", closed);
    write("panel", closed ? "closed" : null);
  }
}
