// The library against the real server, which is killed in the middle.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const library = (file) => import(pathToFileURL(join(process.env.SC_TEST_LIBRARY, file)).href);
const { Agent, ApiError, Room, StarchildError, Unreachable } = await library("index.js");
const { Decoder, isAfter } = await library("stream.js");

const PROGRAM = process.env.SC_TEST_SERVER;
const ID = "curious_otter-3a9f1c20";
const LIMITS = ["AGENT_MESSAGES_PER_MINUTE", "AGENT_COOLDOWN_SECONDS", "TOKEN_MINTS_PER_MINUTE"];
const data = mkdtempSync(join(tmpdir(), "sdk-"));
let address, url, server, token;

before(async () => {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  address = `127.0.0.1:${probe.address().port}`;
  url = `http://${address}`;
  probe.close();
  await start();
  token = execFileSync(PROGRAM, ["token", "--data", data, "--user", "u_alice", "--name", "Alice"]).toString().trim();
});
after(async () => {
  await kill9();
  rmSync(data, { recursive: true });
});

async function start() {
  const env = { ...process.env, ...Object.fromEntries(LIMITS.map((limit) => [`SC_CHATROOM__LIMITS__${limit}`, "0"])) };
  server = spawn(PROGRAM, ["serve", "--listen", address, "--data", data], { env, stdio: "ignore" });
  await eventually("the server answers", () => fetch(`${url}/health`).then((it) => it.ok, () => false));
}

async function kill9() {
  const ended = once(server, "exit");
  server.kill("SIGKILL");
  await ended;
}

async function eventually(what, look) {
  for (const end = Date.now() + 60_000; Date.now() < end; await sleep(20)) {
    const found = await look();
    if (found) return found;
  }
  assert.fail(`not in time: ${what}`);
}

async function call(path, body) {
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
  assert.equal(response.status, 201);
  return response.json();
}

/** A room of Alice's, and an agent in it. */
async function aRoom() {
  const { room_id } = await call("/rooms", { name: "lab" });
  const invite = await call(`/rooms/${room_id}/invites`, { max_uses: 5 });
  const alice = new Room(url, room_id, token);
  const agent = await Room.join(url, invite.install_url, { userId: ID });
  return { alice, agent };
}

test("an agent joins, reads, posts and reacts", async () => {
  const { alice, agent } = await aRoom();
  assert.equal((await agent.me()).user_id, `ext_${ID}`);
  const posted = await agent.post("two", { key: "same" });
  assert.equal((await agent.post("two", { key: "same" })).seq, posted.seq);
  await agent.react(posted.seq, "👍");
  const [two] = await alice.history({ since: posted.seq - 1 });
  assert.deepEqual([two.content, two.reactions["👍"].count], ["two", 1]);
  await agent.unreact(posted.seq, "👍");
  assert.deepEqual((await alice.history({ limit: 1 }))[0].reactions, {});
});

test("nothing is lost or doubled when the server is killed", { timeout: 120_000 }, async () => {
  const { alice, agent } = await aRoom();
  const start_ = (await agent.history({ limit: 1 })).at(-1).seq;
  const expected = Array.from({ length: 30 }, (_, number) => `message ${number}`);
  const seen = [];
  const follow = async () => {
    for await (const event of agent.stream({ since: String(start_) })) {
      if (event.name === "message") seen.push(event.data.content);
      if (seen.length === expected.length) return;
    }
  };
  const post = async () => {
    for (const text of expected) await alice.post(text);
  };
  const kill = async () => {
    for (const count of [5, 12, 20]) {
      await eventually("enough was seen", () => seen.length >= count);
      await kill9();
      await start();
    }
  };
  await Promise.all([follow(), post(), kill()]);
  assert.deepEqual(seen, expected);
  const kept = await agent.history({ since: start_, limit: 200 });
  assert.deepEqual(kept.map((message) => message.content), expected);
});

test("an agent answers each mention once, over its restart", { timeout: 120_000 }, async () => {
  const { alice, agent: room } = await aRoom();
  let place = "0";
  const agent = new Agent(room, { load: async () => place, save: async (now) => { place = now; } });
  const asked = [];
  agent.onMention((message) => {
    asked.push(message.seq);
    return message.content.includes("quiet") ? "[SILENT] no" : `answer ${asked.length}`;
  });
  const answers = async (seq) => {
    const stop = new AbortController();
    const running = agent.run(stop.signal).catch(() => {});
    const found = await eventually("an answer", async () => {
      const said = await alice.history({ since: seq, limit: 200 });
      const answers = said.filter((message) => message.reply_to_seq === seq);
      return answers.length > 0 && answers.map((message) => message.content);
    });
    stop.abort();
    await running;
    return found;
  };
  await alice.post("nobody is asked");
  await alice.post(`@ext_${ID} be quiet`);
  const first = (await alice.post(`@ext_${ID} hello`)).seq;
  assert.deepEqual(await answers(first), ["answer 2"]);
  // It ended before it kept its place: what is answered stays answered.
  place = String(first - 1);
  const second = (await alice.post(`@ext_${ID} again`)).seq;
  assert.deepEqual(await answers(second), ["answer 3"]);
  assert.deepEqual(asked, [first - 1, first, second]);
});

test("refusals are told and not tried again", async () => {
  const { alice } = await aRoom();
  const stranger = new Room(url, alice.roomId, "rubbish");
  await assert.rejects(stranger.post("hello"), (error) => error instanceof ApiError && error.status === 401);
  await assert.rejects(stranger.stream({ since: "0" }).next(), ApiError);
  await assert.rejects(alice.post("x".repeat(5000)), { code: "too_large" });
  await assert.rejects(Room.join(url, "nonsense", { userId: ID }), StarchildError);
  const away = new Room("http://127.0.0.1:9", alice.roomId, "x", { patience: 300 });
  await assert.rejects(away.me(), Unreachable);
});

test("a stream is read however it is cut", () => {
  const stream = ': hello\r\n\nid: 4\r\nevent: x\rdata: {"a":\ndata: "é"}\n\ndata:no json\n\nid: 5\n\n';
  const expected = [{ name: "x", data: { a: "é" }, id: "4" }, { name: "message", data: "no json" }];
  for (let size = 1; size < stream.length; size += 1) {
    const decoder = new Decoder();
    const events = [];
    for (let at = 0; at < stream.length; at += size) events.push(...decoder.feed(stream.slice(at, at + size)));
    assert.deepEqual(events, expected, `pieces of ${size}`);
  }
  const endless = new Decoder();
  assert.throws(() => { for (let i = 0; i < 100; i += 1) [...endless.feed(`data: ${"x".repeat(100_000)}`)]; }, StarchildError);
});

test("places are in order", () => {
  for (const [one, other] of [["43.1", "43"], ["43.10", "43.9"], ["44", "43.10"]]) {
    assert.ok(isAfter(one, other) && !isAfter(other, one));
  }
});
