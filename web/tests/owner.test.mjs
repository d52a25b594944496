// What the owner of a room can do.

import { Person, Server, equal, eventually, ok, test } from "./harness.mjs";

async function owned() {
  const server = await new Server().start();
  const token = server.token("u_alice", "Alice");
  const room = await server.room(token, "Mine");
  const agent = await server.agent(token, room, "Curious Otter", { agent_card_url: "https://otter.example/.well-known/agent-card.json" });
  const alice = await Person.inRoom(server, "Alice", room);
  const tab = async (name) => {
    if (!(await alice.page.$("dialog .tabs"))) await alice.clicks("[aria-label='Room settings']");
    await alice.clicks(`#tab-${name}`);
  };
  return { server, token, room, agent, alice, tab };
}

test("rules and data are edited with their versions, and a change meanwhile is told", async () => {
  const { server, token, room, alice, tab } = await owned();
  for (const which of ["rules", "data"]) {
    await tab(which);
    await alice.fills(`#${which}-text`, `be kind in ${which}`);
    await alice.clicks("#tab-panel .primary");
    await alice.reads("Version 1", "#tab-panel");
    equal((await server.api(`/rooms/${room}/${which}`, { token })).content, `be kind in ${which}`, which);
  }
  await tab("rules");
  await alice.sees("#rules-text");
  await server.api(`/rooms/${room}/rules`, { method: "PATCH", token, body: { content: "from elsewhere" } });
  await alice.clicks("#tab-panel .primary");
  await alice.reads("Version 2 was saved while you were writing");
  await alice.reads("from elsewhere", "dialog pre.text");
  await alice.screenshot("changed-meanwhile");
  const press = (words) => alice.evaluates((wanted) => [...document.querySelectorAll("dialog button")].find((button) => button.innerText === wanted).click(), words);
  await press("Replace it with mine");
  await alice.reads("Version 3", "#tab-panel");
  await alice.reads("Earlier versions", "#tab-panel");
  await alice.reads("Rules updated to v3", "#messages");
  await server.api(`/rooms/${room}/rules`, { method: "PATCH", token, body: { content: "from elsewhere again" } });
  await alice.clicks("#tab-panel .primary");
  await alice.reads("Version 4 was saved while you were writing");
  await press("Go on from version 4");
  await alice.reads("Version 4", "#tab-panel");
  await alice.until(() => document.querySelector("#rules-text").value === "from elsewhere again");
  equal((await server.api(`/rooms/${room}/rules`, { token })).version, 4, "the version");
  await alice.leaves();
  await server.stop();
});

test("a tab that loads slowly does not cover the one chosen after it", async () => {
  const { server, alice } = await owned();
  let release = () => {};
  await alice.page.setRequestInterception(true);
  alice.page.on("request", (request) => {
    if (request.url().endsWith("/rules")) release = () => request.continue();
    else void request.continue();
  });
  await alice.clicks("[aria-label='Room settings']");
  await alice.clicks("#tab-room");
  await alice.sees("#new-room-name");
  const answered = alice.page.waitForResponse((response) => response.url().endsWith("/rules"));
  release();
  await answered;
  // A later answer has come, so the page has taken the rules too.
  await alice.evaluates(() => fetch("/rooms/public").then((response) => response.text()));
  equal(await alice.page.$("#rules-text"), null, "the rules cover the room's tab");
  await alice.leaves();
  await server.stop();
});

test("an invite and a webhook are made, shown once, used and revoked", async () => {
  const { server, token, room, alice, tab } = await owned();
  await tab("invites");
  await alice.fills("#uses", "3");
  await alice.clicks("#tab-panel .primary");
  await alice.until(() => document.querySelector(".invite img")?.naturalWidth > 0);
  const fields = await alice.page.$$eval(".invite input, .invite .command code", (parts) => parts.map((part) => part.value ?? part.innerText));
  ok(/^curl -sSL \S+\/install\/i_\S+ \| sh$/.test(fields[0]) && /#invite=i_/.test(fields[1]) && fields[2].startsWith("inv_"), fields.join("\n"));
  await alice.reads("0 of 3 used", "#tab-panel");
  await alice.screenshot("invites");
  await alice.clicks("#tab-panel .plain-list button");
  await alice.reads("No invite is open", "#tab-panel");
  equal((await server.api(`/rooms/${room}/invites`, { token })).invites, [], "the open invites");
  // A webhook posts under its name, is seen to be one, and is removed.
  await tab("webhooks");
  await alice.fills("#webhook-name", "Build bot");
  await alice.clicks("#tab-panel .primary");
  await alice.reads("Build bot posts here", "#tab-panel .webhook");
  const address = await alice.page.$eval("#tab-panel [role=status] input", (field) => field.value);
  await alice.screenshot("webhooks");
  const posted = await fetch(address.replace(/^.*(?=\/hooks\/)/, server.url), { method: "POST", body: JSON.stringify({ text: "the build is **done**" }) });
  equal(posted.status, 200, "the webhook's answer");
  await alice.reads("the build is done", "#messages");
  equal(await alice.page.$$eval("#messages article", (messages) => messages.at(-1).querySelector(".badge").innerText), "webhook", "the badge");
  await alice.clicks("#tab-panel .webhook .danger");
  await alice.evaluates(() => [...document.querySelectorAll("dialog button")].find((button) => button.innerText === "Remove" && !button.closest(".webhook")).click());
  await alice.reads("There is none yet", "#tab-panel");
  equal((await fetch(address.replace(/^.*(?=\/hooks\/)/, server.url), { method: "POST", body: "{}" })).status, 404, "an address that was removed");
  await alice.leaves();
  await server.stop();
});

test("an empty room offers to invite, and tells who has come", async () => {
  const server = await new Server().start();
  const room = await server.room(server.token("u_alice", "Alice"), "Empty");
  const alice = await Person.inRoom(server, "Alice", room);
  await alice.clicks("#empty .invite-button");
  await alice.until(() => document.querySelector("dialog .invite img")?.naturalWidth > 0);
  await alice.reads("This address works only on this machine", "dialog");
  // A day is the most here, which is told in words, and no longer time is offered again.
  await alice.page.select("#invite-lifetime", "2592000");
  await alice.reads("does not let invites last that long", "dialog .notices");
  equal(await alice.page.$eval("#invite-lifetime", ({ value, options }) => [value, [...options].map(({ disabled }) => disabled)]), ["3600", [false, false, false, true]], "how long");
  const link = await alice.page.$eval("dialog .command code", ({ innerText }) => innerText);
  const guest = await Person.arrives(server, { width: 400 });
  await guest.goes(link);
  await guest.fills("#guest-name", "Gerda");
  await alice.page.focus("#tab-person");
  await alice.page.keyboard.press("ArrowRight");
  await alice.page.keyboard.press("Enter");
  await alice.reads("curl -sSL", "dialog .command");
  await alice.reads("Waiting for somebody", "dialog");
  await alice.screenshot("invite-agent");
  await guest.clicks("form .primary");
  await alice.reads("Gerda is here", "dialog");
  await alice.page.select("#invite-uses", "5");
  await alice.reads("5 may join", "dialog");
  await alice.clicks("dialog [aria-label='Close']");
  await alice.sees("#room-tools .invite-button");
  await guest.sees("#compose");
  equal(await guest.page.$(".invite-button"), null, "a guest may invite");
  await guest.leaves();
  await alice.leaves();
});

test("the room is renamed, opened to the public, bounded, archived and opened again", async () => {
  const { server, token, room, alice, tab } = await owned();
  await tab("room");
  await alice.fills("#new-room-name", "Renamed");
  await alice.page.select("dialog select", "public");
  await alice.page.$eval("#depth", (field) => { field.value = "7"; });
  await alice.page.$eval("#exchanges", (field) => { field.value = "9"; });
  await alice.clicks("#tab-panel .primary");
  await alice.reads("Renamed", "#room-header h1");
  const me = await server.api(`/rooms/${room}/me`, { token });
  equal([me.room.name, me.room.visibility, me.room.max_reply_chain_depth, me.room.agent_exchanges_without_person], ["Renamed", "public", 7, 9], "the room");
  await tab("room");
  await alice.clicks("#tab-panel .danger");
  await alice.evaluates(() => [...document.querySelectorAll("dialog button")].find((button) => button.innerText === "Archive").click());
  await alice.reads("This room is archived", "#composer");
  await tab("room");
  await alice.clicks("#tab-panel .danger");
  await alice.sees("#compose");
  await tab("audit");
  for (const words of ["room renamed", "visibility changed", "chain depth changed", "room archived", "room unarchived"]) await alice.reads(words, "#tab-panel");
  await alice.screenshot("audit");
  await alice.leaves();
  await server.stop();
});

test("a member's card tells who it is; the owner renames and removes", async () => {
  const { server, token, room, alice } = await owned();
  await alice.reads("Curious Otter", "#panel");
  const card = () => alice.evaluates(() => [...document.querySelectorAll("#panel .member")].find((button) => button.innerText.includes("Otter")).click());
  await card();
  await alice.reads("agent that came with an invite", "dialog");
  await alice.reads("ext_curious_otter-3a9f1c20", "dialog");
  await alice.until(() => !document.querySelector("dialog dl").innerText.includes("…"));
  equal(await alice.page.$eval("dialog dl a", (link) => [link.innerText, link.href, link.rel]), ["otter.example", "https://otter.example/.well-known/agent-card.json", "noopener noreferrer nofollow"], "the agent card");
  await alice.screenshot("member-card");
  await alice.fills("#new-name", "Quiet Otter");
  await alice.clicks("dialog .card-actions form button");
  await alice.reads("Quiet Otter", "#panel");
  await card();
  await alice.clicks("dialog .card-actions > .danger");
  await alice.evaluates(() => [...document.querySelectorAll("dialog button")].find((button) => button.innerText === "Remove").click());
  await alice.reads("was removed by the owner", "#messages");
  await eventually("the member is gone", async () => (await server.api(`/rooms/${room}/members`, { token })).members.length === 1);
  await alice.leaves();
  await server.stop();
});

test("whoever is not the owner reads rules and data and changes nothing", async () => {
  const { server, token, room, alice } = await owned();
  await server.api(`/rooms/${room}/rules`, { method: "PATCH", token, body: { content: "be **kind**" } });
  const key = await server.joins(token, room, { user_id: "bob", display_name: "Bob", client_kind: "human" });
  const bob = await Person.arrives(server);
  await bob.goes(`/view?room=${room}&token=${key}`);
  await bob.sees("#room-tools button");
  await server.api(`/rooms/${room}/rules`, { method: "PATCH", token, body: { content: "be **very kind**" } });
  await bob.reads("The rules changed: version 2", ".notice");
  await bob.clicks("[aria-label='Rules and data']");
  await bob.reads("be **very kind**", "#tab-panel");
  equal(await bob.page.$$eval("dialog [role=tab]", (tabs) => tabs.map((tab) => tab.innerText)), ["Rules", "Data"], "the tabs");
  equal(await bob.page.$("dialog textarea"), null, "Bob can edit");
  await bob.leaves();
  await alice.leaves();
  await server.stop();
});
