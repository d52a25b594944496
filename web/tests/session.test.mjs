// Keeping the session: keys and sign-ins are renewed while the page is open, and what ends says so.

import { Person, Server, equal, eventually, ok, test } from "./harness.mjs";

const IDENTITY = "sc_workroom_platform_token";

/** What a token says of itself. */
const claims = (token) => JSON.parse(Buffer.from(token.split(".")[1], "base64url"));
const keyOf = async (person, room) => JSON.parse(await person.evaluates((name) => localStorage.getItem(name), `sc_room_key:${room}`)).token;
const identityOf = (person) => person.evaluates((name) => localStorage.getItem(name), IDENTITY);
const isOver = (token) => eventually("the token ends", () => Date.now() / 1000 > claims(token).exp + 1);
/** The page is the one that was marked: it was not loaded again. */
const mark = (person) => person.evaluates(() => { globalThis.marked = true; });
const isMarked = (person) => person.evaluates(() => globalThis.marked === true);

/** A signed-in owner and a guest in one room, whose keys last this many seconds. */
async function two(seconds) {
  const server = await new Server({ SC_CHATROOM__TOKENS__ROOM_KEY_TTL_SECONDS: String(seconds) }).start();
  const owner = server.token("u_alice", "Alice");
  const room = await server.room(owner, "Long talks");
  const alice = await Person.inRoom(server, "Alice", room);
  const { short_code } = await server.post(`/rooms/${room}/invites`, owner, {});
  const gus = await Person.arrives(server);
  await gus.goes(`/view#invite=${short_code}`);
  await gus.fills("#guest-name", "Gus");
  await gus.clicks("form .primary");
  await gus.sees("#compose");
  return { server, owner, room, alice, gus };
}

test("people go on reading and writing when the keys of their room end", async () => {
  const { room, alice, gus } = await two(12);
  const said = [];
  for (const person of [alice, gus]) await mark(person);
  for (let life = 1; life <= 2; life++) {
    const old = [await keyOf(alice, room), await keyOf(gus, room)];
    await alice.page.focus("#compose");
    await alice.page.keyboard.type(`from Alice in life ${life}`);
    for (const token of old) await isOver(token);
    equal(await alice.page.$eval("#compose", (field) => [field.value, document.activeElement === field]), [`from Alice in life ${life}`, true], "the draft");
    await alice.page.keyboard.press("Enter");
    await gus.writes(`from Gus in life ${life}`);
    said.push(`from Alice in life ${life}`, `from Gus in life ${life}`);
    for (const person of [alice, gus]) {
      for (const words of said.slice(-2)) await person.reads(words, "#messages");
    }
    ok((await keyOf(alice, room)) !== old[0] && (await keyOf(gus, room)) !== old[1], "the keys were not renewed");
  }
  for (const person of [alice, gus]) {
    equal(await isMarked(person), true, "the page was not loaded again");
    equal((await person.contents()).sort(), [...said].sort(), "each message once");
    await person.page.reload();
    await person.reads(said.at(-1), "#messages");
    await person.sees("#compose");
    await person.leaves();
  }
});

test("a guest who comes back after the key has ended is let in again", async () => {
  const { room, gus, alice } = await two(10);
  const key = await keyOf(gus, room);
  await gus.goes("/");
  await isOver(key);
  await alice.writes("said meanwhile");
  await gus.opens(room);
  await gus.reads("said meanwhile", "#messages");
  await gus.writes("I am back");
  await alice.reads("I am back", "#messages");
  await alice.leaves();
  await gus.leaves();
});

test("a key that ended while the laptop slept is replaced when it wakes, and nothing is lost", async () => {
  const { server, owner, room, alice, gus } = await two(9);
  await mark(alice);
  const key = await keyOf(alice, room);
  await alice.page.focus("#compose");
  await alice.page.setOfflineMode(true);
  await alice.page.keyboard.type("written before the sleep");
  await alice.page.keyboard.press("Enter");
  await alice.reads("cannot be reached", "#outbox");
  await alice.page.keyboard.type("half a thou");
  const meanwhile = await server.key(room, "u_alice", owner);
  await server.says(room, meanwhile, "said meanwhile");
  await isOver(key);
  await alice.page.setOfflineMode(false);
  await alice.reads("said meanwhile", "#messages");
  await alice.reads("written before the sleep", "#messages");
  await gus.reads("written before the sleep", "#messages");
  await alice.page.keyboard.type("ght");
  await alice.page.keyboard.press("Enter");
  await gus.reads("half a thought", "#messages");
  equal((await gus.contents()).sort(), ["half a thought", "said meanwhile", "written before the sleep"], "each message once");
  equal(await isMarked(alice), true, "the page was not loaded again");
  await alice.leaves();
  await gus.leaves();
});

test("whoever is signed in stays in a room whose link was revoked", async () => {
  const server = await new Server().start();
  const owner = server.token("u_alice", "Alice");
  const room = await server.room(owner, "Linked");
  const { code } = await server.post(`/rooms/${room}/room-keys`, owner, { for_user_id: "u_alice" });
  const alice = await Person.inRoom(server, "Alice");
  await alice.goes(`/k/${code}`);
  await alice.sees("#compose");
  await mark(alice);
  await alice.page.focus("#compose");
  await alice.page.keyboard.type("a draft");
  await server.api(`/rooms/${room}/room-keys`, { method: "DELETE", token: owner });
  const link = await keyOf(alice, room);
  await eventually("there is another key", async () => (await keyOf(alice, room)) !== link);
  await alice.page.keyboard.press("Enter");
  await alice.reads("a draft", "#messages");
  equal(await isMarked(alice), true, "the page was not loaded again");
  await alice.leaves();
});

test("a sign-in is renewed while the page is open, and after a reload", async () => {
  const server = await new Server({ SC_CHATROOM__TOKENS__IDENTITY_TTL_SECONDS: "30" }).start();
  const alice = await Person.inRoom(server, "Alice");
  await mark(alice);
  const first = await identityOf(alice);
  await isOver(first);
  const second = await identityOf(alice);
  ok(second && second !== first, "the sign-in was not renewed");
  await alice.clicks("#rooms .wide-button");
  await alice.fills("#create-name", "One");
  await alice.clicks("dialog .primary");
  await alice.reads("One", "#room-name");
  equal(await isMarked(alice), true, "the page was not loaded again");
  await alice.page.reload();
  await alice.reads("One", ".rooms");
  await alice.reads("Alice", "#person");
  await alice.leaves();
});

test("a sign-in that is over says so, and a new one brings everything back", async () => {
  const server = await new Server().start();
  const owner = server.token("u_alice", "Alice");
  const [here, other] = [await server.room(owner, "Here"), await server.room(owner, "Other")];
  const alice = await Person.inRoom(server, "Alice", here);
  const token = await identityOf(alice);
  await alice.page.focus("#compose");
  await alice.page.keyboard.type("half a thought");
  await server.api(`/agent-identity/${claims(token).jti}`, { method: "DELETE", token });
  await alice.reads("Your sign-in has ended", "#rooms");
  await alice.reads("Sign in", "#person");
  await alice.reads("What you have not sent yet is kept", "#entry");
  await alice.goes(`/view?room=${other}`);
  await alice.reads("Your sign-in has ended", "#entry");
  await alice.screenshot("sign-in-ended");
  await alice.clicks("#entry .primary");
  await alice.reads("Your sign-in has ended", "#person");
  await alice.goes(`/view?room=${other}`);
  await alice.reads("Your sign-in has ended", "#entry");
  const tab = await alice.context.newPage();
  await tab.goto(server.signInLink("Alice"));
  await alice.page.bringToFront();
  await alice.reads("Other", "#room-name");
  await alice.sees("#compose");
  await alice.opens(here);
  await alice.until(() => document.querySelector("#compose")?.value === "half a thought");
  await alice.leaves();
});

test("signing out in one tab signs out in all", async () => {
  const server = await new Server().start();
  const room = await server.room(server.token("u_alice", "Alice"), "Here");
  const alice = await Person.inRoom(server, "Alice", room);
  const tab = await alice.context.newPage();
  await tab.goto(`${server.url}/view?room=${room}`);
  await tab.waitForSelector("#compose");
  await tab.$eval("#person .you", (button) => button.click());
  await tab.$eval("#sign-out", (button) => button.click());
  await alice.reads("There is no such room for you", "#entry");
  equal(await alice.page.$("#compose"), null, "the composer");
  await alice.leaves();
});
