// What the browser tests stand on: the real server on a folder of its own, and people in a real
// browser.

import { execFileSync, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

const { SC_TEST_SERVER: program, SC_TEST_DATA: firstData, SC_TEST_WEB: modules, SC_TEST_SCREENSHOTS: screenshots } = process.env;
if (!program || !firstData || !modules || !screenshots) {
  throw new Error("run this with `cargo xtask test web`: it sets SC_TEST_SERVER, SC_TEST_DATA, SC_TEST_WEB and SC_TEST_SCREENSHOTS");
}
const inModules = (path) => pathToFileURL(join(modules, "node_modules", path)).href;
const { default: puppeteer } = await import(inModules("puppeteer-core/lib/puppeteer/puppeteer-core.js"));
export const axeSource = join(modules, "node_modules/axe-core/axe.min.js");
mkdirSync(screenshots, { recursive: true });

/** Where a screenshot lies. */
export const screenshotOf = (name) => join(screenshots, `${name}.png`);

/** How long anything is waited for: the machine may be busy. */
export const PATIENCE = Number(process.env.SC_TEST_PATIENCE_MS ?? 60_000);
/** How often each test runs, and how many times slower the pages' processor is: to find what fails at times. */
const TIMES = Number(process.env.SC_TEST_TIMES ?? 1);
const SLOWDOWN = Number(process.env.SC_TEST_SLOWDOWN ?? 1);

const NO_LIMITS = Object.fromEntries(
  ["agent_messages_per_minute", "agent_cooldown_seconds", "web_messages_per_hour_per_key", "web_messages_per_hour_per_ip", "visitor_reads_per_minute", "auto_invites_per_hour", "token_mints_per_minute", "agent_replies_per_minute", "agent_exchanges_without_person"]
    .map((limit) => [`SC_CHATROOM__LIMITS__${limit.toUpperCase()}`, "0"]),
);

/** What runs and who is there: none outlives its test. @type {Set<Server | PushAgent | Person>} */
const guests = new Set();
process.on("exit", () => guests.forEach((guest) => guest.child?.kill("SIGKILL")));

/** Asks again where the server had closed the connection that was to be used once more: a machine that stood still lets it idle for too long. */
async function request(url, options) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await fetch(url, options);
    } catch (error) {
      const closed = ["UND_ERR_SOCKET", "ECONNRESET", "EPIPE"].includes(error.cause?.code);
      if (!closed || attempt === 3) throw new Error(`${options.method} ${url}: ${error.cause ?? error}`);
    }
  }
}

/** Tokens by what was asked for. @type {Map<string, string>} */
const signed = new Map();

/** The real server. */
export class Server {
  constructor(env = {}) {
    this.folder = mkdtempSync(join(process.env.SC_TEST_SCRATCH ?? tmpdir(), "sc-web-"));
    // With keys and tables, which take longer to make than most tests last.
    cpSync(firstData, this.folder, { recursive: true });
    this.env = { ...process.env, SC_CHATROOM__LOG__LEVEL: "warn", ...NO_LIMITS, ...env };
    this.listen = "127.0.0.1:0";
    guests.add(this);
  }

  async start() {
    this.child = spawn(program, ["serve", "--listen", this.listen, "--data", this.folder], { env: this.env, stdio: ["ignore", "pipe", "inherit"] });
    this.url = await new Promise((resolve, reject) => {
      this.printed = "";
      this.child.stdout.on("data", (bytes) => {
        this.printed += bytes;
        const found = /Open (http:\/\/[\d.:]+)\//.exec(this.printed);
        if (found) resolve(found[1]);
      });
      this.child.on("exit", (code) => reject(new Error(`the server ended with ${code}`)));
    });
    this.listen = new URL(this.url).host;
    return this;
  }

  async kill() {
    const ended = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.kill("SIGKILL");
    await ended;
  }

  async stop() {
    guests.delete(this);
    if (this.child?.exitCode === null && this.child?.signalCode === null) await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Signed once: all servers have the same keys. */
  token(user, name, type = "access") {
    const args = ["--user", user, "--name", name, "--type", type];
    const wanted = args.join(" ");
    if (!signed.has(wanted)) signed.set(wanted, execFileSync(program, ["token", "--data", this.folder, ...args], { env: this.env }).toString().trim());
    return signed.get(wanted);
  }

  /** A link with which somebody signs in whose id follows from the name: Alice is u_alice. */
  signInLink(name) {
    return `${this.url}/view#user_jwt=${this.token(`u_${name.toLowerCase()}`, name)}`;
  }

  /** The link that `sc-chatroom user add` prints. */
  addsUser(name) {
    const printed = execFileSync(program, ["user", "add", name, "--data", this.folder], { env: this.env, stdio: ["ignore", "pipe", "ignore"] }).toString().trim();
    return this.url + printed.slice(printed.indexOf("/view#"));
  }

  async api(path, { token, method = "GET", body, headers = {} } = {}) {
    if (token) headers.authorization = `Bearer ${token}`;
    if (body) headers["content-type"] = "application/json";
    const response = await request(this.url + path, { method, headers, body: body && JSON.stringify(body) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text.startsWith("{") ? JSON.parse(text) : text;
  }

  post(path, token, body) {
    return this.api(path, { method: "POST", token, body });
  }

  /** A room of this owner's. */
  async room(owner, name = "The room", visibility = "private") {
    return (await this.post("/rooms", owner, { name, visibility })).room_id;
  }

  /** A member who came with an invite: its room key. */
  async joins(owner, room, body) {
    const { invite_code } = await this.post(`/rooms/${room}/invites`, owner, {});
    return (await this.post(`/rooms/${room}/join`, null, { invite_code, adapter_type: "pull", ...body })).member_token;
  }

  /** The key with which this member writes in a browser. */
  async key(room, user, token) {
    return (await this.post(`/rooms/${room}/room-keys`, token, { for_user_id: user })).token;
  }

  /** A user of this server takes part, or their agent does. */
  async comes(owner, room, token, body = { adapter_type: "pull" }) {
    const { invite_code } = await this.post(`/rooms/${room}/invites`, owner, {});
    return this.post(`/rooms/${room}/join`, token, { invite_code, ...body });
  }

  agent(owner, room, display_name = "Curious Otter", more = {}) {
    return this.joins(owner, room, { user_id: "curious_otter-3a9f1c20", display_name, ...more });
  }

  /** Says something; gives its seq. */
  async says(room, token, content, reply_to_seq) {
    const headers = { "idempotency-key": randomUUID() };
    return (await this.api(`/rooms/${room}/messages`, { method: "POST", token, body: { content, reply_to_seq }, headers })).seq;
  }
}

/** An agent that the server calls: the example `echo_agent`, a process of its own. */
export class PushAgent {
  constructor() {
    guests.add(this);
  }

  /** @param {string} reply how it answers */
  static async starts(reply) {
    const agent = new PushAgent();
    agent.child = spawn(join(dirname(program), "examples/echo_agent"), ["--reply", reply], { stdio: ["ignore", "pipe", "inherit"] });
    agent.url = await new Promise((resolve, reject) => {
      agent.child.stdout.once("data", (bytes) => resolve(String(bytes).trim()));
      agent.child.once("error", reject);
      agent.child.once("exit", (code) => reject(new Error(`the agent ended with ${code}`)));
    });
    return agent;
  }

  /** From now on it answers like this. */
  async replies(reply) {
    const answer = await fetch(`${this.url}/reply`, { method: "POST", body: reply });
    ok(answer.ok, `the agent answered ${answer.status}`);
  }

  /** Waits until it was told of this message: what it answers from now on answers a later one. */
  wasTold(seq) {
    const told = (call) => call.body.thread_metadata?.seq === seq;
    return eventually(`the agent is told of message ${seq}`, async () => (await (await fetch(`${this.url}/calls`)).json()).some(told));
  }

  /** Joins a room as this user's agent. */
  joins(server, owner, room, token) {
    return server.comes(owner, room, token, { adapter_type: "clawd", agent_endpoint: this.url, akm_key: "sk_of_the_agent" });
  }

  async stop() {
    guests.delete(this);
    const ended = new Promise((resolve) => this.child.once("exit", resolve));
    if (this.child.kill("SIGKILL")) await ended;
  }
}

/** An agent whose answer waits half way until the test lets it go on. */
export class HeldAgent extends PushAgent {
  static async starts() {
    const agent = new HeldAgent();
    agent.server = createServer((request, response) => {
      request.resume();
      response.writeHead(agent.refuses ? 401 : 200, { "content-type": "text/event-stream" });
      if (agent.refuses) return response.end();
      agent.writes = (text) => response.write(frame(text));
      agent.says = (text) => response.end(frame(text));
      agent.writes("Two points are open: the *price*, and who writes the announcement.");
    });
    await new Promise((resolve) => agent.server.listen(0, "127.0.0.1", resolve));
    agent.url = `http://127.0.0.1:${agent.server.address().port}`;
    return agent;
  }

  async stop() {
    guests.delete(this);
    this.server.closeAllConnections();
    this.server.close();
  }
}

const frame = (text) => `data: ${JSON.stringify({ text })}\n\n`;

let chromium;
let firefox;

/** The browser, opened for the first who needs one. */
function openBrowser() {
  chromium ??= puppeteer.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
    // Chromium ends with the pipe, so also when this process is killed.
    pipe: true,
    protocolTimeout: 180_000,
  });
  return chromium;
}

/** The other one. */
export function openFirefox() {
  firefox ??= puppeteer.launch({ browser: "firefox", executablePath: process.env.FIREFOX ?? "/usr/bin/firefox-esr", protocolTimeout: 180_000 });
  return firefox;
}

export async function closeBrowser() {
  for (const browser of [chromium, firefox]) await (await browser)?.close();
}

/** Somebody at a browser of their own. Whatever the page complains about is kept. */
export class Person {
  static async arrives(server, { width = 1280, height = 800, theme = "light", browser = openBrowser } = {}) {
    const person = new Person();
    person.server = server;
    guests.add(person);
    person.context = await (await browser()).createBrowserContext();
    person.page = await person.context.newPage();
    person.complaints = [];
    person.outside = [];
    person.page.setDefaultTimeout(PATIENCE);
    if (SLOWDOWN > 1) await person.page.emulateCPUThrottling(SLOWDOWN);
    person.page.on("console", (message) => {
      if (message.type() === "error" && !/Failed to load resource|ERR_/.test(message.text())) person.complaints.push(message.text());
    });
    person.page.on("pageerror", (error) => person.complaints.push(String(error)));
    person.page.on("dialog", (dialog) => {
      person.complaints.push(`a dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    person.page.on("request", (request) => {
      if (!request.url().startsWith(server.url) && !request.url().startsWith("data:")) person.outside.push(request.url());
    });
    await person.page.setViewport({ width, height });
    if (browser === openBrowser) await person.page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: theme }]);
    return person;
  }

  /** Somebody who signed in and looks at a room. */
  static async inRoom(server, name, room, options) {
    const person = await Person.arrives(server, options);
    await person.goes(server.signInLink(name));
    await person.page.waitForSelector("#person button");
    if (room) await person.opens(room);
    return person;
  }

  async goes(path) {
    await this.page.goto(path.startsWith("http") ? path : this.server.url + path);
  }

  async opens(room) {
    await this.goes(`/view?room=${room}`);
    await this.sees("body[data-stage=room]");
    // Drawn last, once the room is open in every respect.
    await this.sees("#room-tools button");
  }

  sees(selector) {
    return this.page.waitForSelector(selector, { visible: true });
  }

  /** Waits until the page's text holds this. */
  reads(text, where = "body") {
    return this.until((wanted, place) => document.querySelector(place)?.innerText.includes(wanted), text, where);
  }

  /** Waits until this holds in the page. */
  until(condition, ...args) {
    return this.page.waitForFunction(condition, { polling: 100 }, ...args);
  }

  /** Clicks what is there, also where it shows only under the pointer. */
  async clicks(selector) {
    await this.page.waitForSelector(selector);
    await this.page.$eval(selector, (element) => element.click());
  }

  async fills(selector, text) {
    await this.sees(selector);
    await this.page.$eval(selector, (field) => { field.value = ""; });
    await this.page.type(selector, text);
  }

  async writes(text) {
    await this.sees("#compose");
    await this.page.focus("#compose");
    await this.page.type("#compose", text);
    await this.page.keyboard.press("Enter");
  }

  evaluates(what, ...args) {
    return this.page.evaluate(what, ...args);
  }

  /** The contents of the messages on the page. */
  contents() {
    return this.evaluates(() => [...document.querySelectorAll("#messages .content")].map((element) => element.innerText.trim()));
  }

  async screenshot(name) {
    await this.evaluates(() => Promise.allSettled(document.getAnimations().filter((one) => one instanceof CSSTransition).map(({ finished }) => finished)).then(() => {}));
    await this.page.screenshot({ path: screenshotOf(name) });
  }

  async stop() {
    guests.delete(this);
    await this.context.close();
  }

  async leaves() {
    await this.stop();
    equal(this.complaints, [], "the page complained");
    equal(this.outside, [], "the page asked elsewhere");
  }
}

export function equal(got, wanted, words = "") {
  const [a, b] = [JSON.stringify(got), JSON.stringify(wanted)];
  if (a !== b) throw new Error(`${words}: got ${a}, wanted ${b}`);
}

export function ok(holds, words) {
  if (!holds) throw new Error(words);
}

/** Waits until this holds, outside the page. */
export async function eventually(words, condition) {
  const end = Date.now() + PATIENCE;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > end) throw new Error(`never: ${words}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

const tests = [];
/** A test, named for what holds. */
export const test = (name, run) => tests.push({ name, run });

/** Runs those whose name holds the filter; tells how many passed and failed. */
export async function runAll(filter) {
  let passed = 0;
  let failed = 0;
  const chosen = tests.filter(({ name }) => name.includes(filter));
  for (const { name, run } of Array(TIMES).fill(chosen).flat()) {
    const began = Date.now();
    try {
      await run();
      passed += 1;
      console.log(`ok    ${name} (${Date.now() - began} ms)`);
    } catch (error) {
      failed += 1;
      console.log(`FAIL  ${name}\n      ${error.stack}`);
    }
    for (const guest of [...guests].reverse()) await guest.stop().catch(() => {});
    guests.clear();
  }
  return { passed, failed };
}
