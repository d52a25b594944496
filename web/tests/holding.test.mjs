// What must hold: breaks of the stream, long histories, hostile rooms.

import { backoffDelay } from "../assets/retry.js";
import { FrameReader } from "../assets/sse.js";
import { Person, Server, equal, eventually, ok, test } from "./harness.mjs";

const seqs = (person) => person.evaluates(() => [...document.querySelectorAll("#messages > li")].map((item) => Number(item.dataset.seq)));

function isContiguous(list) {
  list.forEach((seq, n) => n > 0 && equal(seq, list[n - 1] + 1, "a hole or a double"));
}

test("the stream resumes after the server was killed, without a hole or a double", async () => {
  const server = await new Server().start();
  const owner = server.token("u_alice", "Alice");
  const room = await server.room(owner);
  const agent = await server.agent(owner, room);
  const alice = await Person.inRoom(server, "Alice", room);
  for (let round = 0; round < 3; round++) {
    await server.says(room, agent, `before ${round}`);
    await alice.reads(`before ${round}`, "#messages");
    await server.kill();
    await alice.reads("Reconnecting", "#status");
    await server.start();
    await server.says(room, agent, `after ${round}`);
    await alice.reads(`after ${round}`, "#messages");
    await alice.until(() => document.querySelector("#status").hidden);
  }
  const shown = await seqs(alice);
  equal(shown, Array.from({ length: shown.length }, (_, n) => n + 1), "the messages");
  await alice.leaves();
  await server.stop();
});

test("each attempt to reconnect waits longer, up to half a minute, and never as long as others do", async () => {
  for (const [attempt, most] of [[0, 500], [1, 1000], [3, 4000], [6, 30_000], [40, 30_000]]) {
    const waits = Array.from({ length: 200 }, () => backoffDelay(attempt));
    ok(waits.every((wait) => wait >= most / 2 && wait <= most), `attempt ${attempt}: ${Math.min(...waits)} to ${Math.max(...waits)} ms`);
    ok(new Set(waits).size > 100, "all wait alike");
  }
});

test("frames are read however they are cut, and one without an end is refused", async () => {
  const text = 'id: 1.0\r\nevent: message\r\ndata: {"a":\r\ndata: "é"}\r\n\r\n: a sign of life\n\nid: 2.0\n\ndata\n\n';
  const whole = new FrameReader().push(text);
  equal(whole, [{ id: "1.0", event: "message", data: '{"a":\n"é"}' }, { id: "2.0", event: "message", data: "" }, { id: null, event: "message", data: "" }], "the frames");
  for (let size = 1; size < text.length; size++) {
    const reader = new FrameReader();
    const found = [];
    for (let at = 0; at < text.length; at += size) found.push(...reader.push(text.slice(at, at + size)));
    equal(found, whole, `in pieces of ${size}`);
  }
  for (const piece of [`data: ${"x".repeat(100_000)}`, `data: ${"x".repeat(100_000)}\n`, "data\n".repeat(100_000)]) {
    const reader = new FrameReader();
    let refused = false;
    for (let n = 0; n < 100 && !refused; n++) {
      try {
        reader.push(piece);
      } catch {
        refused = true;
      }
    }
    ok(refused, `a frame of 10 MB was taken, of ${JSON.stringify(piece.slice(-10))}`);
  }
});

test("what was written while the server was gone is sent when it is back", async () => {
  const server = await new Server().start();
  const owner = server.token("u_alice", "Alice");
  const room = await server.room(owner);
  const alice = await Person.inRoom(server, "Alice", room);
  await server.kill();
  await alice.writes("one into the void");
  await alice.writes("another");
  await alice.until(() => document.querySelectorAll("#outbox .letter").length === 2);
  await alice.reads("Trying again in", "#outbox");
  await alice.reads("Trying again in", "#status");
  await alice.screenshot("offline");
  await server.start();
  await alice.until(() => document.querySelectorAll("#outbox .letter").length === 0);
  await alice.reads("another", "#messages");
  equal(await alice.contents(), ["one into the void", "another"], "what was sent, in its order");
  await alice.leaves();
});

test("what was written while the server was gone is sent once, also after a reload", async () => {
  const server = await new Server().start();
  const owner = server.token("u_alice", "Alice");
  const room = await server.room(owner);
  const alice = await Person.inRoom(server, "Alice", room);
  await server.kill();
  await alice.writes("into the void");
  await alice.reads("cannot be reached", "#outbox");
  await server.start();
  await alice.page.reload();
  await alice.reads("into the void", "#messages");
  await alice.page.reload();
  await alice.reads("into the void", "#messages");
  equal((await alice.contents()).filter((text) => text === "into the void").length, 1, "how often it was sent");
  await alice.leaves();
  await server.stop();
});

test("a click while the server is gone shows when it is tried again, and the list of rooms stays", async () => {
  const server = await new Server().start();
  const owner = server.token("u_alice", "Alice");
  const [one, two] = [await server.room(owner, "One"), await server.room(owner, "Two")];
  await server.says(two, await server.key(two, "u_alice", owner), "words of the second room");
  const alice = await Person.inRoom(server, "Alice", one);
  await alice.sees(".rooms a");
  await server.kill();
  await alice.writes("while it was gone");
  await alice.evaluates(() => [...document.querySelectorAll(".rooms a")].find((link) => link.innerText === "Two").click());
  await alice.reads("Trying again in", "#loading");
  await alice.reads("Trying again in", "#rooms");
  equal(await alice.page.$$eval(".rooms a", (links) => links.map((link) => link.innerText).sort()), ["One", "Two"], "the list");
  await alice.screenshot("offline-click");
  await server.start();
  await alice.clicks("#loading .retry button");
  await alice.reads("words of the second room", "#messages");
  await alice.until(() => !document.querySelector("#rooms .retry"));
  // What was written in the other room is sent though that is not open.
  await eventually("it is sent", async () => (await server.api(`/rooms/${one}/messages?since=0`, { token: owner })).messages.some(({ content }) => content === "while it was gone"));
  await server.kill();
  await alice.goes("about:blank").catch(() => {});
  await server.start();
  await alice.stop();
});

test("a laptop that was offline catches up", async () => {
  const server = await new Server().start();
  const owner = server.token("u_alice", "Alice");
  const room = await server.room(owner);
  const agent = await server.agent(owner, room);
  const alice = await Person.inRoom(server, "Alice", room);
  await alice.page.setOfflineMode(true);
  for (let n = 1; n <= 30; n++) await server.says(room, agent, `missed ${n}`);
  await alice.page.setOfflineMode(false);
  await alice.reads("missed 30", "#messages");
  isContiguous(await seqs(alice));
  await alice.leaves();
  await server.stop();
});

test("a page that slept while the server was started anew catches up", async () => {
  const server = await new Server().start();
  const owner = server.token("u_alice", "Alice");
  const room = await server.room(owner);
  const agent = await server.agent(owner, room);
  const alice = await Person.inRoom(server, "Alice", room);
  const browser = await alice.page.createCDPSession();
  await browser.send("Page.setWebLifecycleState", { state: "frozen" });
  await server.kill();
  await server.start();
  for (let n = 1; n <= 80; n++) await server.says(room, agent, `meanwhile ${n}`);
  await browser.send("Page.setWebLifecycleState", { state: "active" });
  await alice.reads("meanwhile 80", "#messages");
  isContiguous(await seqs(alice));
  await alice.writes("awake again");
  await alice.reads("awake again", "#messages");
  await alice.leaves();
});

test("a room that loads slowly does not cover the one chosen after it", async () => {
  const server = await new Server().start();
  const owner = server.token("u_alice", "Alice");
  const [slow, quick] = [await server.room(owner, "Slow"), await server.room(owner, "Quick")];
  await server.says(slow, await server.key(slow, "u_alice", owner), "words of the slow room");
  await server.says(quick, await server.key(quick, "u_alice", owner), "words of the quick room");
  const alice = await Person.inRoom(server, "Alice");
  let release = () => {};
  await alice.page.setRequestInterception(true);
  alice.page.on("request", (request) => {
    if (request.url().includes(`${slow}/messages`)) release = () => request.continue();
    else void request.continue();
  });
  const choose = (name) => alice.evaluates((wanted) => [...document.querySelectorAll(".rooms a")].find((link) => link.innerText === wanted).click(), name);
  await alice.sees(".rooms a");
  const asked = alice.page.waitForRequest((request) => request.url().includes(`${slow}/messages`));
  await choose("Slow");
  await asked;
  await choose("Quick");
  await alice.reads("words of the quick room", "#messages");
  const answered = alice.page.waitForResponse((response) => response.url().includes(`${slow}/messages`));
  release();
  await answered;
  await alice.writes("still here");
  await alice.reads("still here", "#messages");
  equal(await alice.contents(), ["words of the quick room", "still here"], "the page");
  await alice.leaves();
});

test("ten thousand messages scroll without a jump, and the page stays small", async () => {
  const server = await new Server().start();
  const owner = server.token("u_alice", "Alice");
  const room = await server.room(owner);
  const agent = await server.agent(owner, room);
  for (let n = 0; n < 10_000; n += 100) {
    await Promise.all(Array.from({ length: 100 }, (_, i) => server.says(room, agent, `message number ${n + i} ${"words ".repeat((n + i) % 40)}`)));
  }
  await server.says(room, agent, "the very last");
  const alice = await Person.inRoom(server, "Alice", room);
  await alice.sees("#messages > li");
  let most = 0;
  let worst = 0;
  const firsts = new Set([await alice.page.$eval("#messages > li", (item) => item.dataset.seq)]);
  for (let step = 0; step < 120; step++) {
    const seen = await alice.evaluates(async () => {
      const scroller = document.getElementById("scroller");
      const frame = () => new Promise((resolve) => requestAnimationFrame(() => resolve(undefined)));
      const top = scroller.getBoundingClientRect().top;
      const anchor = [...document.querySelectorAll("#messages > li")].find((item) => item.getBoundingClientRect().bottom > top + 100);
      const first = document.querySelector("#messages > li")?.dataset.seq;
      const before = anchor.getBoundingClientRect().top;
      const wanted = Math.max(0, scroller.scrollTop - 400);
      const moved = scroller.scrollTop - wanted;
      scroller.scrollTop = wanted;
      await frame();
      const end = Date.now() + 60_000;
      while (scroller.scrollTop < 300 && document.querySelector("#messages > li")?.dataset.seq === first && first !== "1" && Date.now() < end) await frame();
      await frame();
      return {
        jump: anchor.isConnected ? Math.abs(anchor.getBoundingClientRect().top - before - moved) : 0,
        count: document.querySelectorAll("#messages > li").length,
        first: document.querySelector("#messages > li")?.dataset.seq,
      };
    });
    most = Math.max(most, seen.count);
    worst = Math.max(worst, seen.jump);
    firsts.add(seen.first);
  }
  const loads = firsts.size - 1;
  ok(loads >= 5, `older messages were loaded ${loads} times`);
  ok(most <= 160, `${most} messages were on the page`);
  ok(worst <= 2, `what was looked at jumped by ${worst} px`);
  const shown = await seqs(alice);
  isContiguous(shown);
  ok(shown[0] < 9800, `scrolled only to ${shown[0]}`);
  await alice.sees("#jump");
  await alice.clicks("#jump");
  await alice.reads("the very last", "#messages");
  console.log(`      10,000 messages: at most ${most} on the page, largest jump ${worst} px over ${loads} loads`);
  await alice.leaves();
  await server.stop();
});

const HOSTILE = [
  "<script>document.title='pwned'</script>",
  "<img src=x onerror=\"document.title='pwned'\">",
  "[click](javascript:document.title='pwned')",
  "![picture](https://evil.example/track.png)",
  "<style>body{display:none}</style><iframe src=//evil.example></iframe>",
  "```html\"><img src=x onerror=alert(1)>\n</code></pre><script>alert(1)</script>\n```",
  "\u202Eright to left override\u2066 and isolates",
  "W".repeat(4096),
  "\u0301".repeat(1000),
  ">".repeat(4000),
];
const BAD_NAME = "<img src=x onerror=alert(1)>evil";

test("a hostile room does nothing to the page", async () => {
  const server = await new Server().start();
  const owner = server.token("u_alice", "Alice");
  const turned = await server.room(owner, "\u202Emoor", "public").catch((error) => error);
  ok(String(turned).includes("direction characters"), "a name that turns the line around is refused");
  const room = await server.room(owner, "<script>alert(1)</script>moor", "public");
  const agent = await server.agent(owner, room, BAD_NAME, { agent_card_url: "https://evil.example/\"><script>alert(1)</script>" }).catch(() => server.agent(owner, room, BAD_NAME));
  await server.api(`/rooms/${room}/rules`, { method: "PATCH", token: owner, body: { content: HOSTILE.slice(0, 6).join("\n") } });
  await server.api(`/rooms/${room}/data`, { method: "PATCH", token: owner, body: { content: HOSTILE[1] } });
  let last;
  const first = await server.says(room, agent, HOSTILE[0]);
  for (const text of HOSTILE) last = await server.says(room, agent, text, first);
  for (const emoji of ["<b>x</b>", "\u202Ex", "👍"]) await server.post(`/rooms/${room}/messages/${last}/reactions`, agent, { emoji }).catch(() => {});
  const alice = await Person.inRoom(server, "Alice", room, { width: 360, height: 740 });
  await alice.sees(`#messages > li[data-seq='${last}']`);
  const found = await alice.evaluates(() => ({
    scripts: document.querySelectorAll("#messages script, #messages img, #messages iframe, #messages style").length,
    handlers: [...document.querySelectorAll("#messages *")].filter((element) => [...element.attributes].some(({ name }) => name.startsWith("on") || name === "style")).length,
    wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    wideList: document.querySelector("#scroller").scrollWidth - document.querySelector("#scroller").clientWidth,
    shown: getComputedStyle(document.body).display,
    bareNames: [...document.querySelectorAll("#messages .name")].filter((name) => !name.querySelector("bdi")).length,
    links: [...document.querySelectorAll("#messages a")].filter((link) => link.hasAttribute("href") && !/^(https?|mailto):/.test(link.href)).length,
  }));
  equal(found, { scripts: 0, handlers: 0, wide: 0, wideList: 0, shown: "grid", bareNames: 0, links: 0 }, "the page");
  ok(!(await alice.page.title()).includes("pwned"), "the title was changed");
  await alice.screenshot("hostile-360");
  await alice.clicks("[aria-label='Room settings']");
  await alice.sees("#rules-text");
  await alice.clicks("#tab-audit");
  await alice.sees("#tab-panel table");
  await alice.clicks("dialog [aria-label='Close']");
  await alice.clicks("#messages .name");
  await alice.sees("dialog dl");
  equal(await alice.evaluates(() => document.querySelectorAll("dialog script, dialog img").length), 0, "the member's card");
  await alice.leaves();
  const visitor = await Person.arrives(server);
  await visitor.goes("/");
  await visitor.sees("#public a");
  await visitor.opens(room);
  await visitor.sees("#messages > li");
  await visitor.leaves();
  await server.stop();
});

test("the policy stops an inline script, a style attribute and markup from elsewhere", async () => {
  const server = await new Server().start();
  const person = await Person.arrives(server);
  await person.goes("/view");
  const stopped = await person.evaluates(async () => {
    const violations = [];
    document.addEventListener("securitypolicyviolation", (event) => violations.push(event.effectiveDirective));
    const script = document.createElement("script");
    let typed = false;
    try {
      script.textContent = "globalThis.ran = true";
      document.body.append(script);
    } catch {
      typed = true;
    }
    let markup = false;
    try {
      document.body.insertAdjacentHTML("beforeend", "<b>x</b>");
    } catch {
      markup = true;
    }
    const image = new Image();
    image.src = "https://evil.example/x.png";
    document.body.append(image);
    await fetch("https://evil.example/").catch(() => {});
    const end = Date.now() + 60_000;
    while (!["connect-src", "img-src"].every((one) => violations.includes(one)) && Date.now() < end) await new Promise((resolve) => setTimeout(resolve, 50));
    return { ran: Boolean(globalThis.ran), markup: markup || typed, violations: [...new Set(violations)].sort() };
  });
  equal(stopped.ran, false, "an inline script ran");
  equal(stopped.markup, true, "markup was parsed");
  ok(stopped.violations.includes("connect-src") && stopped.violations.includes("img-src"), JSON.stringify(stopped));
  await person.stop();
  await server.stop();
});

test("somebody who is removed is out at once", async () => {
  const server = await new Server().start();
  const owner = server.token("u_alice", "Alice");
  const room = await server.room(owner);
  const { short_code } = await server.post(`/rooms/${room}/invites`, owner, {});
  const guest = await Person.arrives(server);
  await guest.goes(`/view#invite=${short_code}`);
  await guest.fills("#guest-name", "Gus");
  await guest.clicks("form .primary");
  await guest.sees("#compose");
  const { members } = await server.api(`/rooms/${room}/members`, { token: owner });
  const gus = await eventually("Gus is a member", () => members.find(({ user_name }) => user_name === "Gus"));
  await server.api(`/rooms/${room}/members/${gus.user_id}`, { method: "DELETE", token: owner });
  await guest.reads("access to this room has ended");
  await guest.leaves();
  await server.stop();
});

test("more tabs than a browser has connections can be open, and each goes on when it is looked at", async () => {
  const server = await new Server().start();
  const owner = server.token("u_alice", "Alice");
  const room = await server.room(owner);
  const alice = await Person.arrives(server);
  await alice.goes(server.signInLink("Alice"));
  await alice.page.waitForSelector("#person button");
  const look = (page, state) => page.evaluate((now) => {
    Object.defineProperty(document, "visibilityState", { configurable: true, value: now });
    document.dispatchEvent(new Event("visibilitychange"));
  }, state);
  const tabs = [];
  for (let n = 0; n < 8; n++) {
    const tab = await alice.context.newPage();
    tab.setDefaultTimeout(60_000);
    // What makes way does so at once.
    await tab.evaluateOnNewDocument(() => {
      const wait = globalThis.setTimeout;
      globalThis.setTimeout = (what, after, ...more) => wait(what, after === 10_000 ? 100 : after, ...more);
    });
    await tab.goto(`${server.url}/view?room=${room}`);
    await tab.waitForSelector("#room-tools button");
    await look(tab, "hidden");
    tabs.push(tab);
  }
  await server.says(room, owner, "said meanwhile");
  // Those who kept their stream see it; one that made way does once it is looked at.
  const sees = (tab) => tab.waitForFunction(() => document.querySelector("#messages").innerText.includes("said meanwhile"), { polling: 100 });
  await sees(tabs[0]);
  await look(tabs[7], "visible");
  await sees(tabs[7]);
  await alice.leaves();
});
