// Reading and writing, with two people and an agent at once.

import { Person, Server, equal, eventually, test } from "./harness.mjs";

/** Alice and Bob at their browsers, and an agent, in one room. */
async function three(env) {
  const server = await new Server(env).start();
  const owner = server.token("u_alice", "Alice");
  const room = await server.room(owner, "Together");
  const agent = await server.agent(owner, room, "Curious Otter", { agent_card_url: "https://otter.example/.well-known/agent-card.json" });
  const { short_code } = await server.post(`/rooms/${room}/invites`, owner, {});
  const alice = await Person.inRoom(server, "Alice", room);
  const bob = await Person.arrives(server, { width: 400 });
  await bob.goes(`/view#invite=${short_code}`);
  await bob.fills("#guest-name", "Bob");
  await bob.clicks("form .primary");
  await bob.sees("#compose");
  return { server, owner, room, agent, alice, bob };
}

async function farewell({ server, alice, bob }) {
  await alice.leaves();
  await bob.leaves();
  await server.stop();
}

const item = (seq) => `#messages > li[data-seq='${seq}']`;

test("what one writes the others see as it happens, rendered and highlighted", async () => {
  const all = await three();
  const { server, room, agent, alice, bob } = all;
  await alice.writes("hello **Bob**, look at `this`");
  await bob.reads("hello Bob, look at this", "#messages");
  const answer = await server.says(room, agent, "```rust\nfn main() {} // done\n```\n\nsee https://example.org", undefined);
  for (const person of [alice, bob]) {
    await person.sees(`${item(answer)} .hl-keyword`);
    await person.sees(`${item(answer)} .badge.agent`);
    await person.sees(`${item(answer)} svg.avatar`);
    equal(await person.page.$eval(`${item(answer)} .content a`, (link) => [link.href, link.target, link.rel]), ["https://example.org/", "_blank", "noopener noreferrer nofollow"], "the link");
  }
  await alice.reads("otter.example", item(answer));
  await alice.reads("Today", "#messages .divider");
  equal(await alice.page.$eval(`${item(answer)} time`, (time) => Math.abs(Date.now() - Date.parse(time.dateTime)) < 600_000), true, "the time");
  const first = await server.says(room, agent, "one");
  const second = await server.says(room, agent, "two");
  await alice.sees(item(second));
  equal(await alice.evaluates((a, b) => [a, b].map((selector) => document.querySelector(selector).classList.contains("grouped")), item(first), item(second)), [true, true], "messages in a row are grouped");
  await alice.until(() => ["Alice", "Bob"].every((name) => [...document.querySelectorAll("#panel .member")].some((row) => row.querySelector("bdi").innerText === name && row.innerText.includes("here now"))));
  await alice.screenshot("talking");
  await farewell(all);
});

test("a reply shows what it answers, leads to it, and has its thread", async () => {
  const all = await three();
  const { server, room, agent, alice, bob } = all;
  const question = await server.says(room, agent, "which of the two?");
  await bob.sees(item(question));
  await bob.clicks(`${item(question)} [aria-label='Reply']`);
  await bob.reads("Answering Curious Otter", "#composer");
  await bob.writes("the second one");
  await alice.reads("the second one", "#messages");
  const reply = await alice.page.$eval("#messages > li:last-child", (element) => Number(element.dataset.seq));
  await alice.reads("which of the two?", `${item(reply)} .quote`);
  await alice.clicks(`${item(reply)} .quote`);
  await alice.until((selector) => document.activeElement === document.querySelector(selector), item(question));
  await alice.clicks(`${item(reply)} [aria-label='Show thread']`);
  await alice.reads("the second one", "#panel .thread");
  await alice.reads("which of the two?", "#panel .thread");
  await alice.screenshot("thread");
  await alice.fills("#compose-answer", "I ag");
  await alice.page.reload();
  await alice.clicks(`${item(reply)} [aria-label='Show thread']`);
  await alice.until(() => document.querySelector("#compose-answer")?.value === "I ag");
  equal(await alice.page.$eval("#compose", (field) => field.value), "", "the draft of the room");
  await alice.page.type("#compose-answer", "ree");
  await alice.page.keyboard.press("Enter");
  await bob.reads("I agree", "#messages");
  await alice.reads("I agree", "#panel .thread");
  await alice.reads("1 answer", `${item(reply)} .answers`);
  await farewell(all);
});

test("a thread holds its answers wherever they stand, and those that come", async () => {
  const all = await three();
  const { server, room, agent, alice } = all;
  const question = await server.says(room, agent, "who writes the announcement?");
  const early = await server.says(room, agent, "I could", question);
  const deeper = await server.says(room, agent, "then I read it", early);
  for (let n = 0; n < 300; n += 50) await Promise.all(Array.from({ length: 50 }, (_, i) => server.says(room, agent, `something else ${n + i}`)));
  const late = await server.says(room, agent, "has anybody begun?", question);
  await alice.sees(item(late));
  equal(await alice.page.$(item(question)), null, "the question is on the page");
  const holds = (wanted) => alice.until((seqs) => JSON.stringify([...document.querySelectorAll("#panel .thread li")].map((element) => Number(element.dataset.seq))) === seqs, JSON.stringify(wanted));
  await alice.clicks(`${item(late)} [aria-label='Show thread']`);
  await holds([question, early, deeper, late]);
  await alice.clicks(`#panel .thread li[data-seq='${question}'] .name`);
  await alice.sees(item(question));
  // The last of its answers is 300 messages further on, and counted all the same; so are those that come.
  await alice.reads("2 answers", `${item(question)} .answers`);
  equal(await alice.page.$(item(late)), null, "the late answer is on the page");
  const soon = await server.says(room, agent, "not yet", question);
  await alice.reads("3 answers", `${item(question)} .answers`);
  await alice.clicks(`${item(question)} [aria-label='Show thread']`);
  await holds([question, early, deeper, late, soon]);
  const meanwhile = await server.says(room, agent, "give me an hour", question);
  await holds([question, early, deeper, late, soon, meanwhile]);
  equal(await alice.page.$(item(meanwhile)), null, "the newest answer is on the page");
  await alice.clicks("#jump");
  await alice.sees(item(meanwhile));
  const more = await server.says(room, agent, "yes, I have", late);
  await holds([question, early, deeper, late, soon, meanwhile, more]);
  await server.api(`/rooms/${room}/messages/${more}`, { method: "PATCH", token: agent, body: { content: "yes, half of it" } });
  await alice.reads("yes, half of it", "#panel .thread");
  await farewell(all);
});

test("a thread that was opened is read apart from its room, and on every device", async () => {
  const all = await three();
  const { server, owner, room, agent, alice } = all;
  const [opened, other] = [await server.says(room, agent, "opened"), await server.says(room, agent, "never opened")];
  await server.says(room, agent, "the first", opened);
  const label = (person, seq, text) => person.until((place, wanted) => document.querySelector(`${place} .answers`)?.innerText === wanted, item(seq), text);
  // What is read with the room is not new; nor is what was read in its thread.
  await label(alice, opened, "1 answer");
  const told = async () => (await alice.page.waitForResponse((response) => response.url().endsWith("/thread/read"))).status();
  const first = told();
  await alice.clicks(`${item(opened)} .answers button`);
  await alice.reads("the first", "#panel .thread");
  equal(await first, 200, "the position");
  const second = told();
  await server.says(room, agent, "seen at once", opened);
  await alice.reads("seen at once", "#panel .thread");
  await label(alice, opened, "2 answers");
  equal(await second, 200, "the position");
  await alice.clicks("#close-panel");
  // From now on it is: the room alone does not read it, on no device.
  await server.says(room, agent, "the third", opened);
  const last = await server.says(room, agent, "read with the room", other);
  await label(alice, opened, "3 answers · 1 new");
  await label(alice, other, "1 answer");
  await alice.screenshot("thread-unread");
  await eventually("the server knows", async () => (await server.api("/inbox", { token: owner })).rooms.find(({ room_id }) => room_id === room).read_seq >= last);
  const phone = await Person.inRoom(server, "Alice", room, { width: 400 });
  await label(phone, opened, "3 answers · 1 new");
  await label(phone, other, "1 answer");
  await phone.clicks(`${item(opened)} .answers button`);
  await phone.until(() => document.querySelector("#panel .thread .first-new")?.innerText.includes("the third"));
  await phone.screenshot("thread-unread-phone");
  await label(alice, opened, "3 answers");
  await phone.leaves();
  await alice.page.reload();
  await label(alice, opened, "3 answers");
  await farewell(all);
});

test("reactions, edits and deletions are seen by all", async () => {
  const all = await three();
  const { alice, bob } = all;
  await alice.writes("helo everybody");
  await bob.reads("helo everybody", "#messages");
  const seq = await bob.page.$eval("#messages > li:last-child", (element) => Number(element.dataset.seq));
  await bob.clicks(`${item(seq)} [aria-label='React']`);
  await bob.clicks(".picker .emoji button");
  await alice.reads("1", `${item(seq)} .reaction`);
  await alice.clicks(`${item(seq)} .reaction`);
  await bob.reads("2", `${item(seq)} .reaction.mine`);
  await bob.clicks(`${item(seq)} .reaction`);
  await alice.reads("1", `${item(seq)} .reaction.mine`);
  await alice.page.focus("#compose");
  await alice.page.keyboard.press("ArrowUp");
  await alice.reads("Editing your message", "#composer");
  await alice.fills("#compose", "hello everybody");
  await alice.page.keyboard.press("Enter");
  await bob.reads("hello everybody", "#messages");
  await bob.reads("(edited)", item(seq));
  await bob.sees(`${item(seq)} .reaction`);
  equal(await bob.page.$(`${item(seq)} [aria-label='Delete']`), null, "Bob may delete what Alice wrote");
  await alice.clicks(`${item(seq)} [aria-label='Delete']`);
  await alice.clicks("dialog .danger");
  await bob.reads("This message was deleted", item(seq));
  await farewell(all);
});

test("a change that comes too late is refused in words, and its text is kept", async () => {
  const all = await three({ SC_CHATROOM__LIMITS__EDIT_WINDOW_SECONDS: "1" });
  const { alice, server, room, owner } = all;
  await alice.writes("helo");
  await alice.reads("helo", "#messages");
  const { messages } = await server.api(`/rooms/${room}/messages?since=0`, { token: owner });
  await eventually("the time is over", () => Date.now() / 1000 > messages.at(-1).created_at + 2);
  await alice.page.focus("#compose");
  await alice.page.keyboard.press("ArrowUp");
  await alice.reads("Editing your message", "#composer");
  await alice.fills("#compose", "hello");
  await alice.page.keyboard.press("Enter");
  await alice.sees(".notice.error");
  equal(await alice.page.$eval("#compose", (field) => field.value), "hello", "the text");
  await alice.clicks(".notice.error button");
  await alice.clicks(`${item(messages.at(-1).seq)} [aria-label='Delete']`);
  await alice.clicks("dialog .danger");
  await alice.sees(".notice.error");
  equal((await alice.contents()).at(-1), "helo", "the message");
  await farewell(all);
});

test("names are completed after an @ and marked in the text", async () => {
  const all = await three();
  const { alice, bob } = all;
  await alice.page.focus("#compose");
  await alice.page.type("#compose", "ask @cur");
  await alice.sees("#compose-names li[aria-selected='true']");
  await alice.page.keyboard.press("Tab");
  equal(await alice.page.$eval("#compose", (field) => field.value), "ask @Curious Otter ", "the completed text");
  await alice.page.type("#compose", "and @Bob");
  await alice.sees("#compose-names li");
  await alice.page.keyboard.press("Escape");
  await alice.page.keyboard.press("Enter");
  await bob.sees("#messages .mentions-me");
  equal(await bob.evaluates(() => [...document.querySelectorAll("#messages .mention")].map((element) => element.innerText)), ["@Curious Otter", "@Bob"], "the marked names");
  await farewell(all);
});

test("a draft and the answer it is survive a reload", async () => {
  const all = await three();
  const { server, room, agent, alice } = all;
  const seq = await server.says(room, agent, "a question");
  await alice.sees(item(seq));
  await alice.clicks(`${item(seq)} [aria-label='Reply']`);
  await alice.page.type("#compose", "half a thou");
  await alice.page.reload();
  await alice.sees("#compose");
  equal(await alice.page.$eval("#compose", (field) => field.value), "half a thou", "the draft");
  await alice.reads("Answering Curious Otter", "#composer");
  await alice.page.type("#compose", "ght");
  await alice.page.focus("#compose");
  await alice.page.keyboard.press("Enter");
  await alice.reads("half a thought", "#messages");
  await alice.page.reload();
  await alice.sees("#compose");
  equal(await alice.page.$eval("#compose", (field) => field.value), "", "the draft after sending");
  await farewell(all);
});

test("long answers are folded, and what is new since the last visit is marked", async () => {
  const all = await three();
  const { server, room, agent, alice } = all;
  const long = await server.says(room, agent, Array.from({ length: 60 }, (_, n) => `line ${n}`).join("\n"));
  await alice.sees(`${item(long)} .folded`);
  await alice.clicks(`${item(long)} .fold`);
  equal(await alice.page.$(`${item(long)} .folded`), null, "still folded");
  await alice.reads("Newest", "#jump");
  equal(await alice.evaluates((selector) => document.querySelector(`${selector} .content`).getBoundingClientRect().top > 0, item(long)), true, "its beginning is in sight");
  await alice.clicks("#jump");
  await alice.until(() => document.querySelector("#jump").hidden);
  await alice.goes("/");
  const next = await server.says(room, agent, "while you were away", long);
  await alice.opens(room);
  await alice.reads("New", `${item(next)} .divider.unread`);
  await alice.reads("1 answer · 1 new", `${item(long)} .answers`);
  await alice.clicks(`${item(long)} .answers button`);
  await alice.sees(`#panel .thread li[data-seq='${next}'].first-new`);
  await alice.until((selector) => document.querySelector(selector).innerText === "1 answer", `${item(long)} .answers`);
  await farewell(all);
});

test("a limit is told once, with a countdown, and nothing is lost", async () => {
  const all = await three({ SC_CHATROOM__LIMITS__WEB_MESSAGES_PER_HOUR_PER_KEY: "1" });
  const { bob } = all;
  await bob.writes("the first");
  await bob.reads("the first", "#messages");
  await bob.writes("one too many");
  await bob.writes("and another");
  await bob.reads("Sending goes on in", "#outbox");
  equal(await bob.page.$eval("#outbox", ({ innerText }) => [innerText.split("Sending goes on").length - 1, innerText.split("Not sent yet").length - 1]), [1, 2], "how often it is told");
  equal(await bob.page.$("#outbox .refused"), null, "it looks like an error");
  await bob.screenshot("limit");
  await bob.page.reload();
  await bob.reads("one too many", "#outbox");
  await bob.reads("Sending goes on in", "#outbox");
  await bob.clicks("#outbox .letter:nth-of-type(2) button");
  await bob.fills("#compose", "");
  await bob.clicks("#outbox .letter button");
  equal(await bob.page.$eval("#compose", (field) => field.value), "one too many", "the text that was taken back");
  await bob.fills("#compose", "");
  await bob.page.$eval("#compose", (field) => {
    field.value = "ä".repeat(2100);
    field.dispatchEvent(new Event("input"));
  });
  await bob.reads("too many", ".count");
  equal(await bob.page.$eval("#composer .primary", (button) => button.disabled), true, "too long a text can be sent");
  await farewell(all);
});

test("a room is used with the keyboard alone", async () => {
  const all = await three();
  const { server, room, agent, alice, bob } = all;
  const seq = await server.says(room, agent, "can you hear me?");
  await alice.sees(item(seq));
  const press = async (...keys) => { for (const key of keys) await alice.page.keyboard.press(key); };
  await alice.evaluates(() => document.activeElement?.blur());
  await press("Tab", "Enter");
  await alice.until(() => document.activeElement?.id === "compose");
  await alice.page.keyboard.type("with keys");
  await press("Enter");
  await bob.reads("with keys", "#messages");
  await alice.reads("with keys", "#messages");
  await press("Escape");
  await alice.until(() => document.activeElement?.matches("#messages > li:last-child"));
  await press("ArrowUp");
  await alice.until((selector) => document.activeElement?.matches(selector), item(seq));
  await press("Tab", "Tab", "Tab");
  await alice.until(() => document.activeElement?.closest(".tools"));
  await press("Enter");
  await alice.sees(".picker");
  await press("ArrowRight", "Enter");
  await bob.sees(`${item(seq)} .reaction`);
  await alice.evaluates((selector) => document.querySelector(selector).focus(), item(seq));
  await press("r");
  await alice.until(() => document.activeElement?.id === "compose");
  await alice.page.keyboard.type("I hear you");
  await press("Enter");
  await bob.reads("I hear you", "#messages");
  await farewell(all);
});

test("new messages are told to those who do not see them, and one's own are not", async () => {
  const all = await three();
  const { server, room, agent, alice } = all;
  equal(await alice.page.$eval("#announcer", (region) => region.getAttribute("aria-live")), "polite", "the live region");
  await server.says(room, agent, "listen");
  await eventually("it is announced", () => alice.page.$eval("#announcer", (region) => region.textContent === "Curious Otter: listen"));
  await alice.writes("mine");
  await alice.reads("mine", "#messages");
  equal(await alice.page.$eval("#announcer", (region) => region.textContent), "Curious Otter: listen", "what was announced");
  await farewell(all);
});

test("an answer that comes while its question is read anew is counted", async () => {
  const server = await new Server().start();
  const owner = server.token("u_alice", "Alice");
  const room = await server.room(owner);
  const otter = await server.agent(owner, room);
  const alice = await Person.inRoom(server, "Alice", room);
  /** What the page reads of the question, as it is before the answer; it gets it after. */
  let pass = null;
  await alice.page.setRequestInterception(true);
  alice.page.on("request", async (request) => {
    if (pass || request.method() !== "GET" || !/\/messages\?/.test(request.url())) return void request.continue();
    const before = new Promise((resolve) => { pass = resolve; });
    const response = await fetch(request.url(), { headers: request.headers() });
    const body = (await response.text()).replaceAll("you there", "you really there");
    await before;
    await request.respond({ status: response.status, contentType: "application/json", body });
  });
  await alice.writes("@Curious Otter are you there?");
  await eventually("the question is read anew", () => pass);
  const { latest_seq } = await server.api(`/rooms/${room}/messages?limit=1`, { token: owner });
  await server.says(room, otter, "Yes", latest_seq);
  await alice.reads("1 answer", "#messages");
  pass();
  await alice.reads("you really there", "#messages");
  equal(await alice.page.$$eval("#messages .answers", (places) => places.map(({ innerText }) => innerText).filter(Boolean)), ["1 answer"], "answers");
  await alice.leaves();
});
