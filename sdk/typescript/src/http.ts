/** Requests that are tried again while that may help and does no harm. */

import { ApiError, Unreachable } from "./errors.js";

const FIRST_WAIT = 250, LONGEST_WAIT = 30_000, LONGEST_ASKED = 600_000, ANSWER_TIME = 30_000;
const TRANSIENT = [429, 502, 503, 504];

/** How long to wait before the next try: twice as long each time, with jitter. */
export class Backoff {
  #next = FIRST_WAIT;

  reset(): void {
    this.#next = FIRST_WAIT;
  }

  /** In milliseconds. The server's own Retry-After, where it gives one, is waited for. */
  wait(response?: Response): number {
    const wait = this.#next * (0.5 + Math.random() / 2);
    this.#next = Math.min(this.#next * 2, LONGEST_WAIT);
    const asked = Number(response?.headers.get("retry-after") ?? 0) * 1000 || 0;
    return Math.max(wait, Math.min(asked, LONGEST_ASKED));
  }
}

export const isTransient = (response: Response): boolean => TRANSIENT.includes(response.status);

/** Waits, or ends early with the signal's reason. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const stop = () => { clearTimeout(timer); reject(signal?.reason); };
    const timer = setTimeout(() => { signal?.removeEventListener("abort", stop); resolve(); }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** One server, with one credential. */
export class Http {
  readonly server: string;

  constructor(server: string, readonly token = "", readonly patience = 120_000) {
    this.server = server.replace(/\/+$/, "");
  }

  fetch(path: string, init: RequestInit & { headers?: Record<string, string> } = {}): Promise<Response> {
    const headers = { ...init.headers, ...(this.token && { Authorization: `Bearer ${this.token}` }) };
    return fetch(this.server + path, { redirect: "error", ...init, headers });
  }

  /** The answer's JSON. Give a key to whatever must not happen twice. */
  async request<T>(method: string, path: string, body?: unknown, key?: string): Promise<T> {
    const response = await this.send(method, path, body, key);
    return (await response.json()) as T;
  }

  /** A good answer, however often it has to be asked for. */
  async send(method: string, path: string, body?: unknown, key?: string): Promise<Response> {
    const end = Date.now() + this.patience, backoff = new Backoff();
    const headers: Record<string, string> = {
      ...(body !== undefined && { "Content-Type": "application/json" }),
      ...(key && { "Idempotency-Key": key }),
    };
    for (;;) {
      let response: Response | undefined, why: unknown;
      try {
        const signal = AbortSignal.timeout(ANSWER_TIME);
        response = await this.fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), signal });
      } catch (error) {
        why = error;
      }
      if (response?.ok) return response;
      if (response && !isTransient(response)) throw await refusal(response);
      const wait = backoff.wait(response);
      if (Date.now() + wait > end) {
        throw response ? await refusal(response) : new Unreachable(`cannot reach ${this.server}`, { cause: why });
      }
      await response?.body?.cancel();
      await sleep(wait);
    }
  }
}

export async function refusal(response: Response): Promise<ApiError> {
  try {
    const { error, message } = await response.json() as { error: string; message: string };
    return new ApiError(response.status, String(error), String(message));
  } catch {
    return new ApiError(response.status, "unknown", "the server gave no reason; is the address right?");
  }
}
