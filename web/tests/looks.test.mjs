// How the pages look: themes, widths, accessibility, speed. The screenshots are for people.

import { HeldAgent, Person, Server, axeSource, equal, ok, test } from "./harness.mjs";
import { scored } from "./scored.mjs";

const WIDTHS = [360, 820, 1440];
const THEMES = ["light", "dark"];

async function furnished() {
  const server = await new Server().start();
  const owner = server.token("u_alice", "Alice");
  const room = await server.room(owner, "Launch planning", "public");
  const agent = await server.agent(owner, room);
  await server.room(owner, "A room with a rather long name that has to be cut somewhere");
  const key = (await server.post(`/rooms/${room}/room-keys`, owner, { for_user_id: "u_alice" })).token;
  await server.says(room, key, "Good morning! Shall we look at the **checklist**?");
  const seq = await server.says(room, agent, "Both do the same:\n\n```rust\nfn release(version: &str) -> Result<(), Error> {\n    // stop at the first failure\n    publish(build(version)?, \"stable\", 3)\n}\n```\n\n| Script | Safe |\n|---|---|\n| `a.sh` | no |\n| `b.sh` | yes |\n\n> quoted\n\n1. one\n2. two");
  await server.post(`/rooms/${room}/messages/${seq}/reactions`, key, { emoji: "👍" });
  await server.says(room, key, "Thanks, @Curious Otter", seq);
  return { server, owner, room };
}

async function axe(person, where) {
  const source = await import("node:fs").then(({ readFileSync }) => readFileSync(axeSource, "utf8"));
  // The page's policy lets no other script in; the browser's own protocol does.
  await person.evaluates(source);
  const { violations } = await person.evaluates(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target, failureSummary }) => `${target} ${failureSummary}`).slice(0, 3).join(" | ")}`);
  equal(told, [], `${where}: axe`);
}

for (const theme of THEMES) {
  test(`pages fit 360, 820 and 1440 px and are accessible, ${theme}`, async () => {
    const { server, room } = await furnished();
    const alice = await Person.inRoom(server, "Alice", null, { theme });
    for (const [name, path, ready] of [
      ["front", "/", "#public a"],
      ["home", "/view", ".rooms a"],
      ["room", `/view?room=${room}`, "#messages .reaction"],
      ["leaderboard", "/leaderboard.html", "#board > *"],
    ]) {
      for (const width of WIDTHS) {
        await alice.page.setViewport({ width, height: width === 360 ? 740 : 900 });
        await alice.goes(path);
        if (!(name === "home" && width === 360)) await alice.sees(ready);
        await alice.until(() => document.fonts.status === "loaded");
        const wide = await alice.evaluates(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        equal(wide, 0, `${name} at ${width} px scrolls sideways`);
        await alice.screenshot(`${name}-${theme}-${width}`);
        if (width !== 820) await axe(alice, `${name} ${theme} ${width}`);
      }
    }
    await alice.goes(`/view?room=${room}`);
    await alice.clicks("[aria-label='Room settings']");
    for (const tab of ["rules", "invites", "room", "audit"]) {
      await alice.clicks(`#tab-${tab}`);
      await alice.sees("#tab-panel form, #tab-panel textarea, #tab-panel table");
      await axe(alice, `${tab} ${theme}`);
    }
    await alice.page.keyboard.press("Escape");
    await alice.sees("#compose");
    for (const [name, button, ready] of [
      ["invite", "#room-tools .invite-button", "dialog .invite img"],
      ["palette", "#open-search", "#palette-list li"],
      ["inbox", "#open-inbox", "dialog .mentions"],
      ["you", "#person .you", "#notify-on"],
      ["keys", "[aria-label='Keys']", "dialog.sheet"],
    ]) {
      for (const width of [360, 1440]) {
        await alice.page.setViewport({ width, height: width === 360 ? 740 : 900 });
        await alice.clicks(button);
        await alice.sees(ready);
        equal(await alice.evaluates(() => document.querySelector("dialog").scrollWidth - document.querySelector("dialog").clientWidth), 0, `${name} at ${width} px scrolls sideways`);
        await alice.screenshot(`${name}-${theme}-${width}`);
        await axe(alice, `${name} ${theme} ${width}`);
        await alice.page.keyboard.press("Escape");
        await alice.until(() => !document.querySelector("dialog"));
      }
    }
    await alice.clicks("#messages [aria-label='Show thread']");
    await alice.sees("#compose-answer");
    await axe(alice, `thread ${theme}`);
    await alice.clicks("#close-panel");
    await alice.sees("#panel .member");
    await alice.clicks("#close-panel");
    await alice.until(() => document.querySelector("#panel").offsetWidth === 0);
    await alice.page.reload();
    await alice.sees("#messages article");
    ok(await alice.evaluates(() => document.querySelector("#panel").offsetWidth === 0), "the panel is open again");
    await alice.clicks("#members-button");
    await alice.sees("#panel .member");
    await alice.page.setViewport({ width: 360, height: 740 });
    await alice.opens(room);
    await alice.clicks("#menu");
    await alice.sees("#sidebar .rooms a");
    await alice.screenshot(`rooms-${theme}-360`);
    await alice.clicks("#close-rooms");
    await alice.clicks("#members-button");
    await alice.sees("#panel .member");
    await alice.screenshot(`members-${theme}-360`);
    await alice.leaves();
    await server.stop();
  });
}

for (const theme of THEMES) {
  test(`scores, a growing answer and a member's card fit and are accessible, ${theme}`, async () => {
    const { server, owner, room } = await scored();
    const carol = await HeldAgent.starts();
    await carol.joins(server, owner, room, server.token("u_carol", "Carol"));
    const alice = await Person.inRoom(server, "Alice", null, { theme });
    const looks = async (name, width) => {
      equal(await alice.evaluates(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0, `${name} at ${width} px scrolls sideways`);
      await alice.screenshot(`${name}-${theme}-${width}`);
      await axe(alice, `${name} ${theme} ${width}`);
    };
    for (const width of [360, 1440]) {
      await alice.page.setViewport({ width, height: width === 360 ? 740 : 900 });
      await alice.goes(`/leaderboard.html?room=${room}`);
      await alice.sees("#mine .bars");
      await looks("scores", width);
      await alice.page.$eval("#mine", (part) => part.scrollIntoView());
      await alice.screenshot(`chart-${theme}-${width}`);
      await alice.opens(room);
      await alice.writes("What is still open?");
      await alice.sees("#typing .content");
      await looks("typing", width);
      carol.says(" Nobody has looked at the last one yet.");
      await alice.reads("Nobody has looked", "#messages li:last-child");
      await alice.clicks("#messages li:last-child .name");
      await alice.reads("points, place", "dialog");
      await looks("card", width);
    }
    carol.refuses = true;
    await alice.page.keyboard.press("Escape");
    await alice.writes("Are you there?");
    await alice.reads("cannot be reached", ".notice.error");
    await looks("stale", 1440);
    await alice.evaluates(() => [...document.querySelectorAll("#panel .member")].find((row) => row.innerText.includes("Carol")).click());
    await alice.reads("refused its key", "dialog .warn");
    await looks("stale-card", 1440);
    await alice.leaves();
  });
}

test("the theme follows the system, can be changed, and is kept", async () => {
  const { server } = await furnished();
  const person = await Person.arrives(server, { theme: "dark" });
  await person.goes("/");
  const back = () => person.evaluates(() => getComputedStyle(document.body).backgroundColor);
  const dark = await back();
  await person.clicks("[aria-label='Light or dark']");
  const light = await back();
  ok(dark !== light, "the theme did not change");
  await person.page.reload();
  await person.sees("[aria-label='Light or dark']");
  equal(await back(), light, "after a reload");
  await person.page.emulateMediaFeatures([{ name: "prefers-reduced-motion", value: "reduce" }]);
  await person.goes("/view");
  ok(await person.evaluates(() => Number.parseFloat(getComputedStyle(document.querySelector("#panel")).transitionDuration) < 0.001), "things still move");
  await person.leaves();
  await server.stop();
});

test("the choice of reactions is small, and times follow the reader's language", async () => {
  const { server, room } = await furnished();
  const alice = await Person.arrives(server, { width: 1440 });
  const browser = await alice.page.createCDPSession();
  const { userAgent } = await browser.send("Browser.getVersion");
  await browser.send("Emulation.setUserAgentOverride", { userAgent, acceptLanguage: "de-DE,de" });
  await alice.goes(server.signInLink("Alice"));
  await alice.page.waitForSelector("#person button");
  await alice.opens(room);
  ok(/^\d\d:\d\d$/.test(await alice.page.$eval("#messages article time", ({ innerText }) => innerText)), "the time is not German");
  await alice.clicks("#messages [aria-label='React']");
  await alice.sees(".picker");
  const { width, left } = await alice.page.$eval(".picker", (picker) => { const box = picker.getBoundingClientRect(); return { width: box.width, left: box.left }; });
  ok(width < 400 && left > 300, `the choice is ${width} px wide at ${left}`);
  await alice.screenshot("reactions");
  equal(await alice.evaluates(() => [...document.querySelectorAll("#messages code, #messages pre")].filter((code) => Number.parseFloat(getComputedStyle(code).fontSize) < 13).length), 0, "code that is too small");
  await alice.page.keyboard.press("Escape");
  await alice.page.evaluate(() => { globalThis.copied = null; Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => { globalThis.copied = text; } } }); });
  await alice.clicks("#messages .code button");
  await alice.until(() => globalThis.copied?.startsWith("fn release"));
  await alice.leaves();
});

/** What the page and its files weigh as they travel. */
const weight = () => performance.getEntriesByType("resource").filter(({ name }) => name.includes("/assets/")).concat(performance.getEntriesByType("navigation"))
  .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0);

test("the page is light, and the first paint comes soon", async () => {
  const { server, room } = await furnished();
  const times = [];
  for (let n = 0; n < 7; n++) {
    const visitor = await Person.arrives(server);
    await visitor.goes(`/view?room=${room}`);
    await visitor.sees("#messages article");
    const paint = await visitor.until(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
    times.push(Math.round(await paint.jsonValue()));
    await visitor.leaves();
  }
  const alice = await Person.inRoom(server, "Alice", room);
  const bytes = await alice.evaluates(weight);
  const browser = await alice.page.createCDPSession();
  await browser.send("HeapProfiler.collectGarbage");
  const heap = (await alice.page.metrics()).JSHeapUsedSize / 1e6;
  console.log(`      a room that is open: ${(bytes / 1000).toFixed(1)} KB compressed, ${heap.toFixed(1)} MB of objects`);
  ok(bytes > 20_000 && bytes < 150_000, `${bytes} bytes`);
  ok(heap < 30, `${heap} MB`);
  await alice.leaves();
  times.sort((a, b) => a - b);
  console.log(`      first contentful paint with an empty cache: median ${times[3]} ms, of ${times.join(", ")}`);
  ok(times[0] < 5000, "no paint within 5 s");
  await server.stop();
});
