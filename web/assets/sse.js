// Following a room's stream: reading its frames, and coming back after a break.

import { ApiError, refusal } from "./api.js";
import { backOff, retryDelay } from "./retry.js";
import { takeSeat } from "./seats.js";

/** @import { StreamEvent } from "../types.js" */
/** @import { Room } from "./room.js" */

const LONGEST_FRAME = 4_000_000;
/** The server gives a sign of life more often than this. */
const SILENCE_MS = 60_000;
/** How long nobody has to look at the page before its stream makes way for those of other tabs. */
const UNSEEN_MS = 10_000;

/** Reads frames from pieces of text, wherever these were cut. */
export class FrameReader {
  #rest = "";
  /** @type {string[]} */ #data = [];
  /** @type {string | null} */ #id = null;
  #event = "";
  /** How much of the frame's data was read. */
  #length = 0;

  /** @param {string} text @returns {StreamEvent[]} */
  push(text) {
    this.#rest += text;
    if (this.#length + this.#rest.length > LONGEST_FRAME) throw new Error("a frame is too long");
    /** @type {StreamEvent[]} */
    const events = [];
    // A carriage return at the end may be half of a line's end.
    const lines = this.#rest.split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line === "") {
        if (this.#data.length > 0 || this.#id !== null) {
          events.push({ id: this.#id, event: this.#event || "message", data: this.#data.join("\n") });
        }
        this.#data = [];
        this.#length = 0;
        this.#id = null;
        this.#event = "";
        continue;
      }
      const colon = line.indexOf(":");
      if (colon === 0) continue;
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "data") {
        this.#data.push(value);
        this.#length += value.length + 1;
      } else if (field === "event") this.#event = value;
      else if (field === "id") this.#id = value;
    }
    return events;
  }
}

/**
 * A room's stream. It reconnects until it is closed or refused, each time from the last event
 * that was handled.
 */
export class Stream {
  #closed = false;
  /** @type {AbortController | null} */ #request = null;
  /** Ends the wait for the next attempt. */
  #retryNow = () => {};
  #ended = new AbortController();
  #heardAt = 0;
  #attempt = 0;
  /** Whether the stream has made way for others, until somebody looks at the page. */
  #away = false;
  /** Ends that. */
  #comeBack = () => {};
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #unseen;

  /**
   * @param {object} options
   * @param {Room} options.room
   * @param {string} options.cursor
   * @param {(event: StreamEvent) => Promise<void> | void} options.onEvent
   * @param {() => void} options.onLive
   * @param {(ms: number, retryNow: () => void) => void} options.onWaiting it tries again after so long, or at once
   * @param {(error: ApiError) => void} options.onRefused
   */
  constructor(options) {
    this.options = options;
    this.cursor = options.cursor;
    this.onVisible = () => {
      clearTimeout(this.#unseen);
      if (document.visibilityState !== "visible") {
        this.#unseen = setTimeout(() => void this.#makeWay(), UNSEEN_MS);
        return;
      }
      this.#away = false;
      this.#comeBack();
      this.#retryNow();
      this.#checkSilence();
    };
    document.addEventListener("visibilitychange", this.onVisible);
    this.onVisible();
    this.watchdog = setInterval(() => this.#checkSilence(), 5000);
    void this.#run();
  }

  close() {
    this.#closed = true;
    document.removeEventListener("visibilitychange", this.onVisible);
    clearInterval(this.watchdog);
    clearTimeout(this.#unseen);
    this.#request?.abort();
    this.#ended.abort();
    this.#comeBack();
  }

  async #makeWay() {
    if ((await takeSeat()) || document.visibilityState === "visible") return;
    this.#away = true;
    this.#request?.abort();
  }

  /** Connects anew where nothing was heard for too long, as after a laptop's sleep. */
  #checkSilence() {
    if (this.#request && Date.now() - this.#heardAt > SILENCE_MS) this.#request.abort();
  }

  async #run() {
    while (!this.#closed) {
      /** @type {unknown} */
      let failed = null;
      try {
        await this.#read();
      } catch (error) {
        if (error instanceof ApiError && !error.isTransient) {
          this.close();
          this.options.onRefused(error);
          return;
        }
        failed = error;
      }
      if (this.#closed) return;
      if (this.#away) {
        await new Promise((resolve) => { this.#comeBack = () => resolve(null); });
        continue;
      }
      const ms = retryDelay(failed, this.#attempt++);
      await backOff(ms, (retryNow) => {
        this.#retryNow = retryNow;
        this.options.onWaiting(ms, retryNow);
      }, this.#ended.signal);
    }
  }

  async #read() {
    const request = new AbortController();
    this.#request = request;
    this.#heardAt = Date.now();
    const query = new URLSearchParams({ since: this.cursor, render: "html", deltas: "1" });
    try {
      const response = await this.options.room.send(`/stream?${query}`, { signal: request.signal });
      if (!response.ok) throw await refusal(response);
      if (!response.body) return;
      this.#attempt = 0;
      this.options.onLive();
      const frames = new FrameReader();
      const decoder = new TextDecoder();
      const reader = response.body.getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done || this.#closed) return;
        this.#heardAt = Date.now();
        for (const event of frames.push(decoder.decode(value, { stream: true }))) {
          if (event.data) await this.options.onEvent(event);
          if (event.id) this.cursor = event.id;
        }
      }
    } finally {
      request.abort();
      this.#request = null;
    }
  }
}
