// Agents as the page shows them: those that the server calls, and those that are new.

import { HeldAgent, Person, PushAgent, Server, equal, ok, test } from "./harness.mjs";

/** A room of Alice's with Bob's agent in it. */
async function called(reply) {
  const server = await new Server().start();
  const owner = server.token("u_alice", "Alice");
  const bob = server.token("u_bob", "Bob");
  const room = await server.room(owner, "Launch planning");
  const agent = await PushAgent.starts(reply);
  await agent.joins(server, owner, room, bob);
  return { server, owner, bob, room, agent };
}

/** Keeps what the page shows of agents that are writing, however short that is. */
const watchTyping = (person) => person.evaluates(() => {
  const scroller = document.querySelector("#scroller");
  globalThis.shown = [];
  new MutationObserver(() => {
    const words = document.querySelector("#typing").innerText;
    const record = { words };
    globalThis.shown.push(record);
    requestAnimationFrame(() => requestAnimationFrame(() => {
      record.below = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
    }));
  }).observe(document.querySelector("#typing"), { childList: true, subtree: true });
});

test("an agent's words are seen as they come, and become its message", async () => {
  const { server, owner, room, agent } = await called("silent");
  const key = await server.key(room, "u_alice", owner);
  let last;
  for (let n = 1; n <= 30; n++) last = await server.says(room, key, `Point ${n} of the plan`);
  await agent.wasTold(last);
  await agent.replies("slow");
  const alice = await Person.inRoom(server, "Alice", room);
  await alice.reads("Point 30", "#messages");
  await watchTyping(alice);
  await alice.writes("What do you think?");
  await alice.reads("The first half and the second", "#messages");
  await alice.until(() => document.querySelector("#typing").children.length === 0);
  const shown = await (await alice.until(() => globalThis.shown.every(({ below }) => below !== undefined) && globalThis.shown)).jsonValue();
  ok(shown.some(({ words }) => /^Bob is writing/.test(words) && words.endsWith("The first half")), `the page showed ${JSON.stringify(shown)}`);
  equal(shown.filter(({ below }) => below > 5), [], "it grew out of sight");
  equal((await alice.contents()).filter((words) => words.startsWith("The first half")), ["The first half and the second"], "the message");
  await alice.leaves();
});

test("the last words of a burst are shown while the agent pauses", async () => {
  const server = await new Server().start();
  const owner = server.token("u_alice", "Alice");
  const room = await server.room(owner, "Launch planning");
  const carol = await HeldAgent.starts();
  await carol.joins(server, owner, room, server.token("u_carol", "Carol"));
  const alice = await Person.inRoom(server, "Alice", room);
  await alice.writes("What is still open?");
  await alice.sees("#typing .content");
  for (const word of ["Give", "me", "a", "moment"]) {
    carol.writes(` ${word}`);
    // One write is one piece on the way, mostly.
    await new Promise((resolve) => setImmediate(resolve));
  }
  await alice.reads("Give me a moment", "#typing");
  carol.says(".");
  await alice.reads("Give me a moment.", "#messages");
  await alice.leaves();
});

test("an answer that breaks off leaves no words behind", async () => {
  const { server, room } = await called(`raw=data: {"text": "half an ans"}\n\nevent: error\ndata: {"type": "error"}`);
  const alice = await Person.inRoom(server, "Alice", room);
  await watchTyping(alice);
  await alice.writes("Hello");
  await alice.until(() => globalThis.shown.some(({ words }) => words.endsWith("half an ans")));
  await alice.until(() => document.querySelector("#typing").children.length === 0);
  equal(await alice.contents().then((all) => all.filter((words) => words.includes("half an ans"))), [], "half a message");
  await alice.leaves();
});

test("an agent's words are text while they come", async () => {
  const { server, room } = await called(`raw=data: ${JSON.stringify({ text: "<img src=x onerror=alert(1)> is no picture" })}\n\n`);
  const alice = await Person.inRoom(server, "Alice", room);
  await watchTyping(alice);
  await alice.writes("Hello");
  await alice.until(() => globalThis.shown.some(({ words }) => words.endsWith("<img src=x onerror=alert(1)> is no picture")));
  await alice.reads("is no picture", "#messages");
  await alice.leaves();
});

test("a refused key is told with its reason, and a new one mends it", async () => {
  const { server, bob, room, agent } = await called("status=401");
  const alice = await Person.inRoom(server, "Alice", room);
  await alice.writes("Hello");
  await alice.reads("Bob cannot be reached: ", ".notice.error");
  await alice.reads("401", ".notice.error");
  await alice.reads("cannot be reached", "#panel .member .warn");
  await alice.evaluates(() => [...document.querySelectorAll("#panel .member")].find((row) => row.innerText.includes("Bob")).click());
  await alice.reads("401", "dialog .warn");
  await alice.page.keyboard.press("Escape");
  await agent.replies("always");
  await server.api(`/rooms/${room}/members/u_bob/endpoint`, { method: "PUT", token: bob, body: { akm_key: "sk_new" } });
  await alice.until(() => !document.querySelector("#panel .member .warn"));
  await alice.reads("An answer to", "#messages");
  await alice.leaves();
});

test("a member's card in the welcome room tells which checks are passed", async () => {
  const server = await new Server().start();
  const { invite_code } = await server.post("/rooms/rm_welcome/auto-invite");
  const joined = await server.post("/rooms/rm_welcome/join", null, { invite_code, adapter_type: "pull", user_id: "newcomer_agent-0a1b2c3d", display_name: "Newcomer" });
  const seq = await server.says("rm_welcome", joined.member_token, "Hello, I am new here");
  await server.post(`/rooms/rm_welcome/messages/${seq}/reactions`, joined.member_token, { emoji: "👋" });
  await server.post("/rooms/rm_welcome/checklist/refresh", joined.member_token);
  const alice = await Person.inRoom(server, "Alice", "rm_welcome");
  await alice.clicks(".invitation .primary");
  await alice.reads("2 of 6 checks", "#panel");
  await alice.evaluates(() => [...document.querySelectorAll("#panel .member")].find((row) => row.innerText.includes("Newcomer")).click());
  await alice.reads("2 of 6 checks passed", "dialog");
  const checks = (state) => alice.evaluates((wanted) => [...document.querySelectorAll(`dialog .checks ${wanted}`)].map((item) => item.innerText.replace(/^\W+/, "")), state);
  equal((await checks(".passed")).sort(), ["post message", "react"], "passed");
  equal((await checks("li:not(.passed)")).length, 4, "not passed");
  await alice.reads("points, place 1", "dialog");
  await alice.screenshot("welcome-card");
  await alice.leaves();
});
