// What waits for a person over all rooms, and finding what was said.

import { isQuiet } from "../assets/notifications.js";
import { Person, Server, equal, eventually, ok, test } from "./harness.mjs";

/** Alice's two rooms with an agent in both; she looks at the first. */
async function twoRooms() {
  const server = await new Server().start();
  const owner = server.token("u_alice", "Alice");
  const [plans, talk] = [await server.room(owner, "Plans"), await server.room(owner, "Talk")];
  const otter = await server.agent(owner, talk);
  const made = Math.floor(Date.now() / 1000);
  const alice = await Person.inRoom(server, "Alice", plans);
  // Rooms are listed by what was said last, to the second: what is said from now on comes later.
  await eventually("the next second", () => Date.now() / 1000 >= made + 1);
  return { server, owner, plans, talk, otter, alice };
}

test("what is unread is counted in the list, the title and the icon, and is read on every device", async () => {
  const { server, owner, plans, talk, otter, alice } = await twoRooms();
  const { read_seq } = (await server.api("/inbox", { token: owner })).rooms.find(({ room_id }) => room_id === talk);
  await server.says(talk, otter, "one");
  const seq = await server.says(talk, otter, "@Alice two");
  const icon = await alice.page.$eval("link[rel=icon]", (link) => link.href);
  // The page looks by itself; whoever comes back to it need not wait for that.
  await alice.evaluates(() => window.dispatchEvent(new Event("online")));
  await alice.until(() => document.querySelector(".rooms li:first-child")?.innerText.replace(/\s+/g, " ").startsWith("Talk @1"));
  ok(/^\(\d+\) Plans$/.test(await alice.page.title()), `the title is ${await alice.page.title()}`);
  ok((await alice.page.$eval("link[rel=icon]", (link) => link.href)) !== icon, "the icon counts nothing");
  await alice.screenshot("unread");
  await alice.clicks("#open-inbox");
  await alice.reads("Curious Otter in Talk", "dialog .fresh");
  await alice.screenshot("inbox");
  await alice.clicks("dialog .fresh button");
  await alice.reads("Talk", "#room-name");
  await alice.until((wanted) => document.activeElement?.dataset.seq === wanted, String(seq));
  await alice.until(() => !document.querySelector(".pip") && document.title === "Talk");
  await eventually("the server knows", async () => (await server.api("/inbox", { token: owner })).rooms.find(({ room_id }) => room_id === talk).read_seq >= seq);
  ok(read_seq < seq, "it was read before");
  equal(await alice.page.$eval("link[rel=icon]", (link) => link.href), icon, "the icon");
  // Elsewhere it is read as well.
  const phone = await Person.inRoom(server, "Alice", plans, { width: 400 });
  await phone.until(() => document.querySelectorAll(".rooms a").length === 2 && !document.querySelector(".pip"));
  await server.says(talk, otter, "three");
  await alice.reads("three", "#messages");
  await phone.leaves();
  await alice.leaves();
});

/** How long the page's long waits take from now on, as it is loaded anew. */
async function longWaits(person, ms) {
  await person.page.evaluateOnNewDocument((instead) => {
    const wait = globalThis.setTimeout;
    globalThis.setTimeout = (what, after, ...more) => wait(what, after >= 15_000 ? instead : after, ...more);
  }, ms);
}

/** Whether the list says that one is mentioned in the room Talk. */
const mentionedInTalk = () => document.querySelector(".rooms li:first-child")?.innerText.replace(/\s+/g, " ").startsWith("Talk @1");

test("a mention in another room is told at once, and one's place in the list is kept", async () => {
  const { server, plans, talk, otter, alice } = await twoRooms();
  // The page never looks by itself: only the stream can tell it.
  await longWaits(alice, 2 ** 30);
  await alice.opens(plans);
  await alice.until(() => document.querySelectorAll(".rooms a").length === 2);
  await alice.page.focus(`.rooms a[href$='${plans}']`);
  await server.says(talk, otter, "@Alice are you there?");
  await alice.until(mentionedInTalk);
  equal(await alice.evaluates(() => document.activeElement?.getAttribute("href")), `/view?room=${plans}`, "what is focused");
  // A room that somebody lets her into shows as well.
  const bob = server.token("u_bob", "Bob");
  const news = await server.room(bob, "News");
  await server.comes(bob, news, server.token("u_alice", "Alice"));
  await alice.reads("News", ".rooms");
  await alice.leaves();
});

test("without a stream the page still looks at the inbox by itself", async () => {
  const { server, plans, talk, otter, alice } = await twoRooms();
  await longWaits(alice, 500);
  await alice.page.setRequestInterception(true);
  alice.page.on("request", (request) => (/\/stream\?/.test(request.url()) ? request.abort() : request.continue()));
  await alice.opens(plans);
  await server.says(talk, otter, "@Alice are you there?");
  await alice.until(mentionedInTalk);
  await alice.leaves();
});

test("Ctrl+K finds messages, goes to rooms and does things, with the keyboard alone", async () => {
  const { server, talk, otter, alice } = await twoRooms();
  const seq = await server.says(talk, otter, "The **budget** of the launch is 400 <b>euros</b>");
  await server.says(talk, otter, "Something else");
  const press = async (...keys) => { for (const key of keys) await alice.page.keyboard.press(key); };
  const palette = async () => {
    await alice.page.keyboard.down("Control");
    await press("k");
    await alice.page.keyboard.up("Control");
    await alice.sees("#palette-field");
  };
  await palette();
  await alice.page.keyboard.type("tal");
  equal(await alice.page.$eval("#palette-field", ({ value }) => value), "tal", "the field");
  await alice.until(() => document.querySelector("#palette-list li[aria-selected=true]")?.innerText === "Talk");
  await press("Enter");
  await alice.reads("Talk", "#room-name");
  await alice.sees("#room-tools button");
  await palette();
  await alice.page.keyboard.type("from:otter budget");
  await alice.reads("budget", "#palette-list mark");
  await alice.screenshot("search");
  equal(await alice.page.$("#palette-list b"), null, "markup was parsed");
  await press("Enter");
  await alice.until((wanted) => document.activeElement?.dataset.seq === wanted, String(seq));
  await palette();
  await alice.page.keyboard.type("nothing has this word");
  await alice.reads("Nothing was found", "dialog");
  await press("Escape");
  await palette();
  await alice.page.keyboard.type("keys");
  await alice.until(() => document.querySelector("#palette-list li[aria-selected=true]")?.innerText === "Keys");
  await press("Enter");
  await alice.reads("Copy a link to it", "dialog.sheet");
  await alice.screenshot("keys");
  await press("Escape");
  await alice.evaluates(() => document.activeElement?.blur());
  await alice.page.keyboard.type("?");
  await alice.sees("dialog.sheet");
  await press("Escape");
  // Rooms are listed by activity, which the page looks at now and then.
  await alice.evaluates(() => window.dispatchEvent(new Event("online")));
  await alice.until(() => document.querySelector(".rooms li:first-child")?.innerText.startsWith("Talk"));
  await alice.page.keyboard.down("Alt");
  await press("ArrowDown");
  await alice.page.keyboard.up("Alt");
  await alice.reads("Plans", "#room-name");
  await alice.leaves();
});

test("a link to a message opens its room there", async () => {
  const { server, talk, otter, alice } = await twoRooms();
  const seq = await server.says(talk, otter, "the message that is meant");
  for (let n = 0; n < 200; n += 50) await Promise.all(Array.from({ length: 50 }, (_, i) => server.says(talk, otter, `later ${n + i}`)));
  await alice.goes(`/view?room=${talk}&seq=${seq}`);
  await alice.until((wanted) => document.activeElement?.dataset.seq === wanted, String(seq));
  equal(await alice.page.$eval(`li[data-seq='${seq}'] a.permalink`, (link) => link.getAttribute("href")), `/view?room=${talk}&seq=${seq}`, "its own link");
  await alice.leaves();
});

test("who comes and goes in a row becomes one line, which unfolds", async () => {
  const { server, owner, plans, alice } = await twoRooms();
  for (const name of ["Ada", "Bo", "Cy", "Di"]) await server.joins(owner, plans, { user_id: `guest-${name.toLowerCase()}`, display_name: name, client_kind: "human" });
  await alice.reads("Ada, Bo and 2 more joined", "#messages .run-line");
  equal(await alice.evaluates(() => [...document.querySelectorAll("#messages > li")].filter((item) => item.offsetHeight > 0).length), 1, "lines");
  await alice.clicks(".run-line button");
  await alice.reads("Di joined the room", "#messages");
  await alice.leaves();
});

test("a mention is notified of while the page is not looked at, and not in the quiet hours", async () => {
  const night = { quiet: true, from: "22:00", to: "07:00" };
  const at = (hours, minutes = 0) => new Date(2026, 0, 1, hours, minutes);
  equal([21, 22, 3, 7].map((hours) => isQuiet(night, at(hours))), [false, true, true, false], "over midnight");
  equal([11, 12, 13].map((hours) => isQuiet({ ...night, from: "12:00", to: "12:30" }, at(hours, 10))), [false, true, false], "at noon");
  equal(isQuiet({ ...night, quiet: false }, at(3)), false, "no quiet hours");

  const { server, owner, plans, talk, otter, alice } = await twoRooms();
  const heron = await server.joins(owner, plans, { user_id: "patient_heron-5b1c2d3e", display_name: "Patient Heron" });
  await alice.context.overridePermissions(server.url, ["notifications"]);
  await alice.page.evaluateOnNewDocument(() => {
    globalThis.told = [];
    globalThis.Notification = class extends Notification {
      constructor(title, options) {
        super(title, options);
        globalThis.told.push([title, options.body]);
        globalThis.last = this;
      }
    };
  });
  // What was there before the first look is not told anew.
  const looked = alice.page.waitForResponse((response) => new URL(response.url()).pathname === "/inbox");
  await alice.page.reload();
  await looked;
  await alice.clicks("#person .you");
  await alice.clicks("#notify-on");
  await alice.until(() => JSON.parse(localStorage.getItem("sc_notifications") ?? "{}").on === true);
  await alice.screenshot("you");
  await alice.page.keyboard.press("Escape");
  // Another window is in front; a browser without a screen has none.
  await alice.evaluates(() => { document.hasFocus = () => false; });
  await server.says(talk, otter, "@Alice are you there?");
  await alice.evaluates(() => window.dispatchEvent(new Event("online")));
  const told = (wanted) => eventually("it is told", async () => JSON.stringify((await alice.evaluates(() => globalThis.told)).slice(-1)) === JSON.stringify([wanted]));
  await told(["Curious Otter in Talk", "@Alice are you there?"]);
  // So is one in the room that stands on the page behind the other window, at once.
  await server.says(plans, heron, "@Alice here too");
  await told(["Patient Heron in Plans", "@Alice here too"]);
  equal(await alice.evaluates(() => globalThis.told.length), 2, "notifications");
  // In the quiet hours there are none.
  await alice.evaluates(() => {
    const at = (minutes) => new Date(Date.now() + minutes * 60_000).toTimeString().slice(0, 5);
    localStorage.setItem("sc_notifications", JSON.stringify({ on: true, quiet: true, from: at(-60), to: at(60) }));
  });
  await server.says(plans, heron, "@Alice now it is quiet");
  await alice.reads("now it is quiet", "#messages");
  const lookedAgain = alice.page.waitForResponse((response) => new URL(response.url()).pathname === "/inbox");
  await alice.evaluates(() => window.dispatchEvent(new Event("online")));
  await lookedAgain;
  equal(await alice.evaluates(() => globalThis.told.length), 2, "notifications in the quiet hours");
  // A click on one leads to its message.
  await alice.evaluates(() => localStorage.setItem("sc_notifications", JSON.stringify({ on: true })));
  const again = await server.says(talk, otter, "@Alice once more");
  await alice.evaluates(() => window.dispatchEvent(new Event("online")));
  await told(["Curious Otter in Talk", "@Alice once more"]);
  await alice.evaluates(() => globalThis.last.onclick());
  await alice.reads("Talk", "#room-name");
  await alice.until((wanted) => document.activeElement?.dataset.seq === wanted, String(again));
  await alice.leaves();
});
