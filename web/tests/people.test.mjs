// What people choose for themselves, and what a room's owner keeps at hand.

import { Person, Server, equal, ok, screenshotOf, test } from "./harness.mjs";

const item = (seq) => `#messages > li[data-seq='${seq}']`;

test("a person changes their name and picture, and the others see both", async () => {
  const server = await new Server().start();
  const owner = server.token("u_alice", "Alice");
  const room = await server.room(owner);
  const alice = await Person.inRoom(server, "Alice", room);
  await alice.writes("hello");
  await alice.reads("hello", "#messages");
  await alice.until(() => document.querySelector("#messages .avatar-letters")?.textContent === "A");
  await alice.screenshot("for-a-picture");
  await alice.clicks("#person .you");
  await alice.fills("#own-name", "Alice Liddell");
  await alice.clicks(".profile form button");
  await alice.reads("Alice Liddell", "#person .you");
  await (await alice.page.waitForSelector("#own-picture")).uploadFile(screenshotOf("for-a-picture"));
  await alice.until(() => document.querySelector(".profile img.picture")?.naturalWidth === 128);
  await alice.screenshot("you");
  await alice.page.keyboard.press("Escape");
  await alice.page.reload();
  await alice.until(() => document.querySelector("#panel .member img.picture")?.naturalWidth === 128);
  await alice.reads("Alice Liddell", "#panel");
  // A file that is no picture is refused before it is sent.
  await alice.clicks("#person .you");
  await (await alice.page.waitForSelector("#own-picture")).uploadFile(new URL(import.meta.url).pathname);
  await alice.reads("no picture that the browser can read", "dialog");
  await alice.evaluates(() => [...document.querySelectorAll(".profile button")].find((button) => button.innerText === "No picture").click());
  await alice.until(() => document.querySelector(".profile .avatar-letters")?.textContent === "AL");
  await alice.leaves();
});

test("an owner pins messages and says what the room is about, and visitors see it", async () => {
  const server = await new Server().start();
  const owner = server.token("u_alice", "Alice");
  const room = await server.room(owner, "Plans", "public");
  const agent = await server.agent(owner, room);
  const seqs = [];
  for (const words of ["**First**, read this", "Then this"]) seqs.push(await server.says(room, agent, words));
  for (let n = 0; n < 60; n++) await server.says(room, agent, `later ${n}`);
  const alice = await Person.inRoom(server, "Alice", room);
  await alice.clicks("[aria-label='Room settings']");
  await alice.clicks("#tab-room");
  await alice.fills("#topic", "The launch in May");
  await alice.clicks("#tab-panel .primary");
  await alice.reads("The launch in May", "#room-kind");
  await alice.goes(`/view?room=${room}&seq=${seqs[0]}`);
  for (const seq of seqs) {
    await alice.sees(item(seq));
    await alice.clicks(`${item(seq)} [aria-label='Pin']`);
    await alice.page.waitForSelector(`${item(seq)} [aria-label='Unpin']`);
  }
  await alice.reads("2 pinned", "#pins");
  await alice.clicks("#jump");
  await alice.clicks("#pins button");
  await alice.reads("First, read this", "dialog");
  const lines = await alice.page.$$eval("dialog .mentions li", (items) => items.map((item) => item.offsetHeight));
  ok(lines.length === 2 && lines.every((height) => height < 100), `the lines are ${lines} high`);
  await alice.screenshot("pinned");
  await alice.clicks("dialog .mentions li:first-child button");
  await alice.until((wanted) => document.activeElement?.dataset.seq === wanted, String(seqs[0]));
  const visitor = await Person.arrives(server, { width: 400 });
  await visitor.opens(room);
  await visitor.reads("2 pinned", "#pins");
  await visitor.leaves();
  await alice.leaves();
});

test("older texts of the rules are shown as what each has changed", async () => {
  const server = await new Server().start();
  const owner = server.token("u_alice", "Alice");
  const room = await server.room(owner);
  for (const content of ["be kind\nbe brief", "be kind\nbe clear\n<b>bold</b>"]) await server.api(`/rooms/${room}/rules`, { method: "PATCH", token: owner, body: { content } });
  const alice = await Person.inRoom(server, "Alice", room);
  await alice.clicks("[aria-label='Room settings']");
  await alice.sees("#rules-text");
  await alice.clicks("#tab-panel .link");
  await alice.until(() => document.querySelectorAll("dialog .version").length === 2);
  equal(await alice.page.$$eval(".version:first-child .hl-added, .version:first-child .hl-removed", (lines) => lines.map(({ textContent }) => textContent)), ["- be brief", "+ be clear", "+ <b>bold</b>"], "what changed");
  await alice.screenshot("versions");
  await alice.leaves();
});
