/** A room's events as they happen: each once, in order, over broken connections and restarts. */

import { StarchildError } from "./errors.js";
import { Backoff, type Http, isTransient, refusal, sleep } from "./http.js";
import type { Message } from "./index.js";

const MOST_CHARS = 4 * 1024 * 1024;
// The server says something every 15 seconds.
const SILENCE = 45_000;

/** What happened: `message`, `message_edited`, `reaction_added`, … `id` is where to go on from. */
export interface Event {
  name: string;
  data: any;
  id?: string;
}

/** Text of a stream to events, as the HTML standard reads them. */
export class Decoder {
  #rest = "";
  #afterCr = false;
  #name = "";
  #data: string[] = [];
  #id: string | undefined;
  #size = 0;

  *feed(text: string): Generator<Event> {
    if (this.#afterCr && text.startsWith("\n")) text = text.slice(1);
    if (text) this.#afterCr = text.endsWith("\r");
    const lines = (this.#rest + text).split(/\r\n|\r|\n/);
    this.#rest = lines.pop() ?? "";
    if (this.#rest.length + this.#size > MOST_CHARS) throw new StarchildError("an event of the stream is too large");
    for (const line of lines) {
      const event = this.#line(line);
      if (event) yield event;
    }
  }

  #line(line: string): Event | undefined {
    if (line === "") return this.#event();
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    this.#size += value.length;
    if (field === "event") this.#name = value;
    else if (field === "data") this.#data.push(value);
    else if (field === "id") this.#id = value;
    return undefined;
  }

  #event(): Event | undefined {
    const [name, data, id] = [this.#name || "message", this.#data, this.#id];
    [this.#name, this.#data, this.#id, this.#size] = ["", [], undefined, 0];
    return data.length ? { name, data: parsed(data.join("\n")), ...(id !== undefined && { id }) } : undefined;
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Whether one place comes after another: `43` is the message, `43.1` what happened after it. */
export function isAfter(one: string, other: string): boolean {
  const [[a = 0, b = 0], [c = 0, d = 0]] = [one, other].map((place) => place.split(".").map(Number)) as [number[], number[]];
  return a > c || (a === c && b > d);
}

/** Everything after `since`. It ends only with the signal, or where the server refuses for good. */
export async function* events(http: Http, room: string, since: string, signal?: AbortSignal): AsyncGenerator<Event> {
  let cursor = since;
  const backoff = new Backoff();
  for (;;) {
    let later: Response | undefined;
    try {
      const response = await connect(http, room, cursor, signal);
      if (isTransient(response.response)) later = response.response;
      else if (!response.response.ok) throw await refusal(response.response);
      else {
        for await (const event of response.events()) {
          backoff.reset();
          if (event.name === "resync") {
            for await (const missed of missedMessages(http, room, Number.parseInt(cursor, 10))) {
              cursor = missed.id ?? cursor;
              yield missed;
            }
          } else if (event.id === undefined) {
            yield event;
          } else if (isAfter(event.id, cursor)) {
            cursor = event.id;
            yield event;
          }
        }
      }
    } catch (error) {
      if (signal?.aborted || error instanceof StarchildError) throw error;
    }
    await later?.body?.cancel();
    await sleep(backoff.wait(later), signal);
  }
}

/** One connection, and its events until it ends or falls silent. */
async function connect(http: Http, room: string, cursor: string, signal?: AbortSignal) {
  const silent = new AbortController();
  const stop = () => silent.abort(signal?.reason);
  if (signal?.aborted) stop();
  signal?.addEventListener("abort", stop, { once: true });
  let timer = setTimeout(() => silent.abort(), SILENCE);
  const end = () => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", stop);
    silent.abort();
  };
  const headers = { Accept: "text/event-stream", "Last-Event-ID": cursor };
  let response: Response;
  try {
    response = await http.fetch(`/rooms/${room}/stream`, { headers, signal: silent.signal });
  } catch (error) {
    end();
    throw error;
  }
  async function* events(): AsyncGenerator<Event> {
    const decoder = new Decoder();
    try {
      for await (const text of (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
        clearTimeout(timer);
        timer = setTimeout(() => silent.abort(), SILENCE);
        yield* decoder.feed(text);
      }
    } finally {
      end();
    }
  }
  if (!response.ok) clearTimeout(timer);
  return { response, events };
}

/** The messages that a stream could not replay, read anew. */
async function* missedMessages(http: Http, room: string, since: number): AsyncGenerator<Event> {
  for (;;) {
    const path = `/rooms/${room}/messages?since=${since}&limit=200`;
    const { messages } = await http.request<{ messages: Message[] }>("GET", path);
    for (const message of messages) {
      since = message.seq;
      yield { name: "message", data: message, id: String(since) };
    }
    if (messages.length < 200) return;
  }
}
