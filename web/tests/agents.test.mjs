// Agents as the page shows them: those that the server calls, and those that are new.

import { HeldAgent, Person, PushAgent, Server, equal, eventually, ok, test } from "./harness.mjs";

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
  await alice.until(() => !document.querySelector("#typing .typing"));
  const shown = await (await alice.until(() => globalThis.shown.every(({ below }) => below !== undefined) && globalThis.shown)).jsonValue();
  ok(shown.some(({ words }) => /^Bob\s+is (writing|thinking)/.test(words) && words.endsWith("The first half")), `the page showed ${JSON.stringify(shown)}`);
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
  await alice.until(() => !document.querySelector("#typing .content"));
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

test("an agent that reads for itself is seen thinking from the moment it says so, and is stopped", async () => {
  const server = await new Server().start();
  const owner = server.token("u_alice", "Alice");
  const room = await server.room(owner, "Launch planning");
  const otter = await server.agent(owner, room);
  const alice = await Person.inRoom(server, "Alice", room);
  await alice.writes("@Curious Otter what is open?");
  await alice.reads("what is open?", "#messages");
  const seq = await alice.page.$eval("#messages > li:last-child", (item) => Number(item.dataset.seq));
  const says = (body) => server.post(`/rooms/${room}/typing`, otter, { reply_to_seq: seq, ...body });
  await says({ state: "thinking", activity: "reads src/main.rs" });
  await alice.until(() => /^Curious Otter\s+is thinking · \d+:\d\d/.test(document.querySelector("#typing .note")?.innerText ?? ""));
  await alice.reads("reads src/main.rs", "#typing");
  // Time passes on the page too.
  await alice.until(() => /· 0:0[1-9]/.test(document.querySelector("#typing .note").innerText));
  await says({ state: "writing", text: "Two points:\n\n- the **price**\n- `main.rs`\n\n<img src=x onerror=alert(1)>" });
  await alice.sees("#typing .content li strong");
  equal(await alice.evaluates(() => [...document.querySelectorAll("#typing .content *")].map((part) => part.tagName).join(" ")), "P UL LI STRONG LI CODE P", "the words, rendered");
  await alice.screenshot("thinking");
  await alice.clicks("#typing .stop");
  await alice.reads("Curious Otter was stopped by Alice", "#typing");
  equal(await alice.page.$("#typing .content"), null, "words of the answer stayed");
  await eventually("the agent is told", async () => (await says({ state: "thinking" })).stop === true);
  await alice.leaves();
});

test("who writes is seen by the others, not by themselves", async () => {
  const server = await new Server().start();
  const owner = server.token("u_alice", "Alice");
  const room = await server.room(owner);
  const { short_code } = await server.post(`/rooms/${room}/invites`, owner, {});
  const alice = await Person.inRoom(server, "Alice", room);
  const bob = await Person.arrives(server, { width: 400 });
  await bob.goes(`/view#invite=${short_code}`);
  await bob.fills("#guest-name", "Bob");
  await bob.clicks("form .primary");
  await bob.sees("#compose");
  await bob.page.type("#compose", "half a thou");
  await alice.reads("Bob is writing", "#typing");
  equal(await bob.page.$eval("#typing", ({ innerText }) => innerText), "", "Bob sees himself writing");
  await bob.page.type("#compose", "ght");
  await bob.page.keyboard.press("Enter");
  await alice.reads("half a thought", "#messages");
  await alice.until(() => !document.querySelector("#typing").innerText.includes("Bob"));
  await bob.leaves();
  await alice.leaves();
});

test("an agent's owner decides on a phone what it may do, and others see only that it waits", async () => {
  const server = await new Server().start();
  const owner = server.token("u_alice", "Alice");
  const room = await server.room(owner, "Launch planning");
  const otter = await server.agent(owner, room);
  const { short_code } = await server.post(`/rooms/${room}/invites`, owner, {});
  const alice = await Person.inRoom(server, "Alice", room, { width: 360, height: 740 });
  const gus = await Person.arrives(server);
  await gus.goes(`/view#invite=${short_code}`);
  await gus.fills("#guest-name", "Gus");
  await gus.clicks("form .primary");
  await gus.sees("#compose");
  const ask = (tool) => server.post(`/rooms/${room}/consents`, otter, { tool, summary: "Change the price", detail: "--- a/price\n+++ b/price\n@@ -1 +1 @@\n-400\n+450\n<b>x</b>" });
  const asked = await ask("edit_file");
  await alice.reads("asks to use edit_file", "#consents");
  await alice.reads("+450", "#consents .hl-added");
  equal(await alice.evaluates(() => [document.querySelectorAll("#consents b").length, document.documentElement.scrollWidth - document.documentElement.clientWidth]), [1, 0], "the card");
  await alice.screenshot("consent");
  await gus.reads("asks to use edit_file", "#consents");
  equal(await gus.page.$eval("#consents", (place) => [place.innerText.includes("450"), place.querySelectorAll("button").length]), [false, 0], "what others see");
  await alice.clicks("#consents .primary");
  await alice.reads("allowed by Alice", "#consents");
  await gus.reads("allowed", "#consents .closed");
  equal((await server.api(`/rooms/${room}/consents/${asked.consent_id}`, { token: otter })).state, "allowed", "what the agent learns");
  // One that is there when the page is opened.
  await ask("run_command");
  await alice.page.reload();
  await alice.reads("asks to use run_command", "#consents");
  await alice.clicks("#consents .danger");
  await alice.reads("refused by Alice", "#consents");
  await gus.leaves();
  await alice.leaves();
});

test("an answer tells its model, time, tokens and cost, and can be asked for again", async () => {
  const server = await new Server().start();
  const owner = server.token("u_alice", "Alice");
  const room = await server.room(owner, "Launch planning");
  const otter = await server.agent(owner, room);
  const alice = await Person.inRoom(server, "Alice", room);
  await alice.writes("what is open?");
  await alice.reads("what is open?", "#messages");
  const seq = await alice.page.$eval("#messages > li:last-child", (item) => Number(item.dataset.seq));
  const usage = { model: "small-1", input_tokens: 1200, output_tokens: 34, cost_usd: 0.0123, seconds: 8.25, tools: ["read_file"] };
  const { seq: answer } = await server.post(`/rooms/${room}/messages`, otter, { content: "The price", reply_to_seq: seq, usage });
  await alice.reads("small-1 · 8.3 s · 1,234 tokens · $0.012 · read_file", `li[data-seq='${answer}'] .usage`);
  const told = new Promise((resolve) => alice.page.on("response", (response) => response.url().endsWith(`/messages/${seq}/retry`) && resolve(response.status())));
  await alice.clicks(`li[data-seq='${answer}'] [aria-label='Try again']`);
  equal(await told, 200, "the server's answer");
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

test("what wakes an agent and what it may spend is set on its card, by the room's owner and by its own", async () => {
  const server = await new Server().start();
  const owner = server.token("u_alice", "Alice");
  const room = await server.room(owner, "Launch planning");
  const otter = await server.agent(owner, room);
  const agent = await PushAgent.starts("always");
  await agent.joins(server, owner, room, server.token("u_bob", "Bob", "container"));
  const alice = await Person.inRoom(server, "Alice", room);
  const bob = await Person.inRoom(server, "Bob", room, { width: 400 });
  const opens = async (person, name) => {
    await person.until((wanted) => [...document.querySelectorAll("#panel .member bdi")].some((one) => one.textContent === wanted), name);
    await person.evaluates((wanted) => [...document.querySelectorAll("#panel .member")].find((row) => row.textContent.includes(wanted)).click(), name);
    await person.reads("Today", "dialog .wake");
  };
  const sets = async (person, wake, turns) => {
    await person.clicks("dialog .wake summary");
    await person.page.select("#wake-on", wake);
    await person.fills("#wake-turns", turns);
    await person.clicks("dialog .wake .primary");
  };
  await opens(alice, "Curious Otter");
  await alice.reads("every message", "dialog .wake");
  await alice.reads("no limit", "dialog .wake");
  await sets(alice, "mentions", "1");
  await alice.reads("at most 1 answer", "dialog .wake dl");
  await server.says(room, otter, "The one answer of today");
  await alice.page.keyboard.press("Escape");
  await opens(alice, "Curious Otter");
  await alice.reads("1 answer, 0 tokens, $0.00: used up until", "dialog .wake .warn");
  await alice.screenshot("wake");
  await alice.page.keyboard.press("Escape");
  // Bob's agent is his; what Alice sets for her room holds where it is tighter.
  await opens(bob, "Bob");
  await sets(bob, "threads", "5");
  await bob.reads("at most 5 answers", "dialog .wake dl");
  await opens(alice, "Bob");
  await alice.clicks("dialog .wake summary");
  await alice.reads("Its owner has set: wakes on mentions, and threads it takes part in, at most 5 answers a day.", "dialog .wake");
  await alice.page.select("#wake-on", "nothing");
  await alice.clicks("dialog .wake .primary");
  await alice.reads("nothing", "dialog .wake dl");
  await bob.page.keyboard.press("Escape");
  await opens(bob, "Bob");
  await bob.reads("nothing", "dialog .wake dl");
  await bob.clicks("dialog .wake summary");
  await bob.reads("The room's owner has set: wakes on nothing", "dialog .wake");
  await bob.page.keyboard.press("Escape");
  await opens(bob, "Curious Otter");
  equal(await bob.page.$("dialog .wake form"), null, "what Bob may not set");
  await alice.leaves();
  await bob.leaves();
});

test("the welcome room begins with a tour, and its first steps explain themselves", async () => {
  const server = await new Server().start();
  const alice = await Person.inRoom(server, "Alice");
  await alice.reads("Take the tour", "#entry");
  await alice.evaluates(() => [...document.querySelectorAll("#entry button")].find((button) => button.innerText === "Take the tour").click());
  await alice.reads("A tour in six steps", "#messages .tour");
  await alice.reads("A tour in six steps", "#pins");
  await alice.clicks(".invitation .primary");
  await alice.reads("0 of 5 done", "#panel .first-steps");
  await alice.until(() => document.querySelectorAll("#panel .first-steps li").length === 5);
  await alice.clicks("#panel .first-steps li summary");
  await alice.reads("press Enter", "#panel .first-steps");
  await alice.screenshot("first-steps");
  await alice.writes("Hello, I am new here");
  await alice.reads("1 of 5 done", "#panel .first-steps");
  const own = () => alice.page.$eval("#messages > li.own:last-child", (element) => element.dataset.seq);
  const first = await own();
  await alice.clicks(`#messages > li[data-seq='${first}'] [aria-label='React']`);
  await alice.clicks(".picker .emoji button");
  await alice.reads("2 of 5 done", "#panel .first-steps");
  await alice.page.focus("#compose");
  await alice.page.keyboard.press("ArrowUp");
  await alice.fills("#compose", "Hello again");
  await alice.page.keyboard.press("Enter");
  await alice.reads("3 of 5 done", "#panel .first-steps");
  await alice.clicks(`#messages > li[data-seq='${first}'] [aria-label='Reply']`);
  await alice.writes("An answer");
  await alice.reads("4 of 5 done", "#panel .first-steps");
  await alice.clicks(`#messages > li[data-seq='${first}'] [aria-label='Delete']`);
  await alice.clicks("dialog .danger");
  await alice.reads("All done", "#panel .first-steps");
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
  await alice.until(() => document.querySelectorAll("dialog .checks details").length === 4);
  equal((await checks(".passed")).length, 2, "passed");
  equal((await checks("li:not(.passed)")).length, 4, "not passed");
  await alice.reads("points, place 1", "dialog");
  await alice.screenshot("welcome-card");
  await alice.leaves();
});
