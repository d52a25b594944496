// Where the page stands: at its end, unless the reader went elsewhere.
//
// The browser moves a page by itself too: where something shrinks, what is below comes up. Both look the
// same afterwards, and the event that tells of either comes only with the next frame. So what the reader
// does is noted when it is done, and before the page is brought to its end, it is asked who moved it.

/** Whoever scrolls down so near to the end is at it. */
const PINNED_PX = 60;
/** What is rounded in the browser's measures. */
const ROUNDED_PX = 2;
/** What the reader does moves the page within this time. */
const MOVES_WITHIN_MS = 1000;
const KEYS_UP = new Set(["PageUp", "ArrowUp", "Home", "Tab", " "]);

export class Place {
  /** Whether the page keeps to its end. Only the reader changes this, by scrolling. */
  pinned = true;
  /** Where the page was last known to be. */
  #top = 0;
  /** When the reader last did what moves a page up. */
  #movedAt = Number.NEGATIVE_INFINITY;
  /** Whether the reader holds the page or its bar. */
  #held = false;

  /**
   * @param {HTMLElement} scroller
   * @param {object} options
   * @param {() => boolean} options.atEnd whether the newest message is on the page
   * @param {() => void} options.onMoved the reader may be elsewhere now
   * @param {AbortSignal} options.signal
   */
  constructor(scroller, { atEnd, onMoved, signal }) {
    this.scroller = scroller;
    this.atEnd = atEnd;
    this.onMoved = onMoved;
    const passive = { passive: true, signal };
    const moves = () => (this.#movedAt = performance.now());
    scroller.addEventListener("scroll", () => this.#scrolled(), passive);
    scroller.addEventListener("wheel", ({ deltaY }) => deltaY < 0 && moves(), passive);
    scroller.addEventListener("touchmove", moves, passive);
    scroller.addEventListener("pointerdown", () => (this.#held = true), passive);
    for (const end of ["pointerup", "pointercancel", "blur"]) window.addEventListener(end, () => (this.#held = false), passive);
    window.addEventListener("keydown", (event) => KEYS_UP.has(event.key) && !isField(event.target) && moves(), passive);
    const keep = () => this.#keep();
    const resized = new ResizeObserver(keep);
    for (const part of [scroller, ...scroller.children]) resized.observe(part);
    // What shrinks and grows again before the next frame is told by nobody later: each change is looked at.
    const mutated = new MutationObserver(keep);
    const attributeFilter = ["class", "hidden", "style"];
    mutated.observe(scroller.parentElement ?? scroller, { subtree: true, childList: true, characterData: true, attributeFilter });
    signal.addEventListener("abort", () => {
      resized.disconnect();
      mutated.disconnect();
    });
  }

  /** How much of the page lies below what is seen. */
  get below() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    return scrollHeight - scrollTop - clientHeight;
  }

  toEnd() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.#top = this.scroller.scrollTop;
  }

  /** Whether the reader is at the end, after having gone somewhere. */
  settle() {
    this.pinned = this.atEnd() && this.below < PINNED_PX;
  }

  /** Looks where the page is now. */
  look() {
    const { below } = this;
    const up = this.scroller.scrollTop < this.#top && below > ROUNDED_PX;
    this.#top = this.scroller.scrollTop;
    if (up || !this.atEnd()) this.pinned = false;
    else if (below < PINNED_PX) this.pinned = true;
  }

  /** Changes the list while what the reader looks at stays where it is. @param {Iterable<HTMLElement>} items in their order @param {() => void} change */
  hold(items, change) {
    if (this.pinned && this.atEnd()) return change();
    const top = this.scroller.getBoundingClientRect().top;
    const anchor = [...items].find((item) => item.getBoundingClientRect().bottom > top);
    // Its lower edge: what stands above its text may come or go with the message before it.
    const was = anchor?.getBoundingClientRect().bottom ?? 0;
    change();
    if (anchor?.isConnected) this.scroller.scrollTop += anchor.getBoundingClientRect().bottom - was;
  }

  #scrolled() {
    this.look();
    this.onMoved();
  }

  /** Something has changed: the page goes to its end, unless the reader is just leaving it. */
  #keep() {
    if (!this.pinned) return;
    const reader = this.#held || performance.now() - this.#movedAt < MOVES_WITHIN_MS;
    if (reader && this.scroller.scrollTop < this.#top && this.below > ROUNDED_PX) this.#scrolled();
    else this.toEnd();
  }
}

/** @param {EventTarget | null} target */
const isField = (target) => target instanceof Element && target.matches("input, textarea, select, [contenteditable]");
