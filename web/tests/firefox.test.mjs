// The same pages in Firefox.

import { Person, Server, equal, openFirefox, test } from "./harness.mjs";

test("Firefox: a person signs in, writes, loses the server, and goes on", async () => {
  const server = await new Server().start();
  const owner = server.token("u_alice", "Alice");
  const room = await server.room(owner, "Launch planning");
  const agent = await server.agent(owner, room);
  const seq = await server.says(room, agent, "Both do the same:\n\n```rust\nfn main() {}\n```");
  const alice = await Person.inRoom(server, "Alice", room, { browser: openFirefox });
  await alice.sees("#messages .hl-keyword");
  await alice.writes("hello **Otter**");
  await alice.reads("hello Otter", "#messages");
  await server.says(room, agent, "and hello to you", seq);
  await alice.reads("and hello to you", "#messages");
  await alice.clicks(`#messages > li[data-seq='${seq}'] [aria-label='Show thread']`);
  await alice.fills("#compose-answer", "in the thread");
  await alice.page.keyboard.press("Enter");
  await alice.reads("in the thread", "#panel .thread");
  await server.kill();
  await alice.reads("Trying again in", "#status");
  await alice.writes("while it was gone");
  await server.start();
  await alice.reads("while it was gone", "#messages");
  await alice.until(() => document.querySelector("#status").hidden);
  await alice.clicks(".invite-button");
  await alice.reads("works only on this machine", "dialog");
  await alice.page.setViewport({ width: 360, height: 740 });
  equal(await alice.evaluates(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0, "it scrolls sideways");
  await alice.screenshot("firefox");
  await alice.leaves();
});
