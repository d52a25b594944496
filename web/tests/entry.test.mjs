// Ways in: signing in, links, invites, visitors.

import { Person, Server, equal, eventually, ok, test } from "./harness.mjs";

test("the first person signs in with the link that the first start prints, and is asked for a name", async () => {
  const server = await new Server().start();
  const [link] = await eventually("the link is printed", () => /http:\S+\/first\/\w+/.exec(server.printed));
  const person = await Person.arrives(server);
  await person.goes(link);
  await person.reads("What shall others call you?", "#entry");
  await person.fills("#own-name", "Ada");
  await person.screenshot("first-person");
  await person.page.keyboard.press("Enter");
  await person.reads("Ada", "#person");
  const another = await Person.arrives(server);
  await another.goes(link);
  await another.reads("This link was used");
  await another.leaves();
  await person.opens("rm_welcome");
  await person.goes("/view");
  await person.reads("Hello, Ada", "#entry");
  await person.leaves();
});

test("a person signs in with a link, makes a room, and stays signed in over a reload", async () => {
  const server = await new Server().start();
  const alice = await Person.arrives(server);
  await alice.goes(server.addsUser("Alice"));
  await alice.reads("Hello, Alice");
  equal(await alice.evaluates(() => location.href.includes("user_jwt")), false, "the token stayed in the address");
  ok(await alice.evaluates(() => localStorage.getItem("sc_workroom_platform_token")), "no identity token is kept");
  await alice.clicks("#entry .primary");
  await alice.fills("#create-name", "Plans");
  await alice.clicks("dialog .primary");
  await alice.reads("Plans", "#room-name");
  await alice.writes("first words");
  await alice.reads("first words", "#messages");
  await alice.page.reload();
  await alice.reads("first words", "#messages");
  await alice.reads("Plans", ".rooms");
  await alice.clicks("#person .you");
  await alice.clicks("#sign-out");
  await alice.sees("#paste");
  equal(await alice.evaluates(() => Object.keys(localStorage).filter((key) => /token|room_key/.test(key))), [], "something was kept");
  await alice.leaves();
  await server.stop();
});

test("a person switches between rooms, also when the server mints one key a minute", async () => {
  const server = await new Server({ SC_CHATROOM__LIMITS__TOKEN_MINTS_PER_MINUTE: "1" }).start();
  const owner = server.token("u_alice", "Alice");
  for (const name of ["One", "Two", "Three"]) await server.room(owner, name);
  const alice = await Person.arrives(server);
  await alice.goes(server.signInLink("Alice"));
  for (const name of ["One", "Two", "Three", "One"]) {
    await alice.sees(".rooms a");
    await alice.evaluates((wanted) => [...document.querySelectorAll(".rooms a")].find((link) => link.innerText === wanted).click(), name);
    await alice.reads(name, "#room-name");
    await alice.sees("#compose");
  }
  await alice.leaves();
  await server.stop();
});

test("a short link opens its room and leaves no token in the address", async () => {
  const server = await new Server().start();
  const owner = server.token("u_alice", "Alice");
  const room = await server.room(owner, "Linked");
  const key = await server.post(`/rooms/${room}/room-keys`, owner, { for_user_id: "u_alice" });
  const view = await server.post(`/rooms/${room}/room-keys`, owner, { for_user_id: "u_alice", scope: "view" });
  const reader = await Person.arrives(server);
  await reader.goes(`/k/${key.code}`);
  await reader.reads("Linked", "#room-name");
  equal(await reader.evaluates(() => location.search), `?room=${room}`, "the address");
  await reader.page.reload();
  await reader.sees("#compose");
  await reader.leaves();
  const onlooker = await Person.arrives(server);
  await onlooker.goes(new URL(view.direct_url).pathname + new URL(view.direct_url).search);
  await onlooker.reads("lets you read the room, but not write");
  await onlooker.leaves();
  await server.stop();
});

test("a link's key takes the place of one that is kept only if the person says so", async () => {
  const server = await new Server().start();
  const owner = server.token("u_alice", "Alice");
  const room = await server.room(owner, "Ours");
  const brought = await server.joins(owner, room, { client_kind: "human", user_id: "guest-mallory", display_name: "Mallory" });
  const link = `/view?room=${room}&token=${brought}`;
  const { short_code } = await server.post(`/rooms/${room}/invites`, owner, {});
  const gus = await Person.arrives(server);
  await gus.goes(`/view#invite=${short_code}`);
  await gus.fills("#guest-name", "Gus");
  await gus.clicks("form .primary");
  await gus.sees("#compose");
  const kept = () => gus.evaluates((name) => JSON.parse(localStorage.getItem(name)).token, `sc_room_key:${room}`);
  const own = await kept();

  await gus.goes(link);
  await gus.reads("This link brings another key", "dialog");
  await gus.reads("mallory", "dialog");
  equal(await gus.evaluates(() => location.search), `?room=${room}`, "the address");
  await gus.screenshot("another-key");
  await gus.page.keyboard.press("Escape");
  await gus.writes("still as myself");
  await gus.reads("still as myself", "#messages");
  await gus.reads("Gus", "#messages");
  equal(await kept(), own, "the key was replaced");
  await gus.page.reload();
  await gus.sees("#compose");

  await gus.goes(link);
  await gus.sees("dialog .danger");
  await gus.clicks("dialog .danger");
  await gus.sees("#compose");
  equal(await kept(), brought, "the key was not taken");
  await gus.goes("/leaderboard.html");
  await gus.goes(link);
  await gus.sees("#compose");
  equal(await gus.evaluates(() => document.querySelector("dialog")), null, "the same key was asked about");
  await gus.leaves();

  // Whoever is signed in has a key for the asking, though none is kept yet.
  const alice = await Person.inRoom(server, "Alice");
  await alice.goes(link);
  await alice.reads("This link brings another key", "dialog");
  await alice.clicks("dialog .row button");
  await alice.writes("as Alice");
  await alice.reads("as Alice", "#messages");
  equal(await alice.evaluates((name) => localStorage.getItem(name).includes("guest"), `sc_room_key:${room}`), false, "whose key");
  await alice.leaves();
  await server.stop();
});

test("a link that leads nowhere says so, and so does a key that has ended", async () => {
  const server = await new Server().start();
  const owner = server.token("u_alice", "Alice");
  const room = await server.room(owner);
  const lost = await Person.arrives(server);
  for (const [path, words] of [
    ["/view", "leads to no room"],
    [`/view?room=${room}`, "There is no such room for you"],
    ["/view?room=rm_nothing", "There is no such room for you"],
    [`/view?room=${room}&token=rubbish`, "There is no such room for you"],
    ["/view#user_jwt=rubbish", "could not be signed in"],
    ["/view#invite=i_nothing1", "invite does not work"],
  ]) {
    await lost.goes("/leaderboard.html");
    await lost.goes(path);
    await lost.reads(words);
  }
  await lost.screenshot("boot-error");
  const key = await server.post(`/rooms/${room}/room-keys`, owner, { for_user_id: "u_alice" });
  await lost.goes(`/k/${key.code}`);
  await lost.sees("#compose");
  await server.api(`/rooms/${room}/room-keys`, { method: "DELETE", token: owner });
  await lost.reads("access to this room has ended");
  await lost.page.reload();
  await lost.reads("access to this room has ended");
  await lost.leaves();
  await server.stop();
});

test("an invited person joins by the link of the invite, as a guest or as themselves", async () => {
  const server = await new Server().start();
  const owner = server.token("u_alice", "Alice");
  const room = await server.room(owner, "Invited");
  const code = async () => (await server.post(`/rooms/${room}/invites`, owner, {})).short_code;
  const guest = await Person.arrives(server);
  await guest.goes(`/view#invite=${await code()}`);
  await guest.reads("You are invited to Invited");
  await guest.reads("Alice invites you. In the room: Alice.");
  await guest.screenshot("invited");
  await guest.fills("#guest-name", "Gerda");
  await guest.clicks("form .primary");
  await guest.writes("hello from a guest");
  await guest.reads("hello from a guest", "#messages");
  await guest.reads("Gerda", "#messages");
  const bob = await Person.inRoom(server, "Bob");
  await bob.goes("/");
  await bob.goes(`/view#invite=${await code()}`);
  await bob.reads("You join as Bob");
  await bob.clicks("form .primary");
  await bob.reads("hello from a guest", "#messages");
  await guest.leaves();
  await bob.leaves();
  await server.stop();
});

test("a visitor reads along, gets an invite for an agent, and can join once signed in", async () => {
  const server = await new Server().start();
  const owner = server.token("u_alice", "Alice");
  const room = await server.room(owner, "Open house", "public");
  const agent = await server.agent(owner, room);
  await server.says(room, agent, "welcome, **everybody**");
  const visitor = await Person.arrives(server);
  await visitor.goes("/");
  await visitor.reads("Open house", "#public");
  await visitor.screenshot("front");
  await visitor.clicks(`#public a[href$="${room}"]`);
  await visitor.reads("welcome, everybody", "#messages");
  await visitor.reads("Curious Otter", "#panel");
  equal(await visitor.evaluates(() => document.querySelector("#compose")), null, "a visitor has a message field");
  equal(await visitor.evaluates(() => document.querySelector("#panel").innerText.includes("ext_")), false, "ids are shown");
  await server.says(room, agent, "something new");
  await visitor.reads("something new", "#messages");
  await visitor.evaluates(() => [...document.querySelectorAll("#composer button")].find((button) => button.innerText.includes("Let my agent join")).click());
  await visitor.sees("dialog .invite img");
  const command = await visitor.page.$eval("dialog .command code", (code) => code.innerText);
  ok(/^curl -sSL http.*\/install\/i_[\w-]{8} \| sh$/.test(command), command);
  await visitor.screenshot("visitor-invite");
  await visitor.goes("/");
  await visitor.goes(server.signInLink("Vera"));
  await visitor.page.waitForSelector("#person button");
  await visitor.opens(room);
  await visitor.clicks("#composer .primary");
  await visitor.writes("now I take part");
  await visitor.reads("now I take part", "#messages");
  await visitor.leaves();
  await server.stop();
});

test("a visitor who asks too often is told when reading goes on", async () => {
  const server = await new Server({ SC_CHATROOM__LIMITS__VISITOR_READS_PER_MINUTE: "2", SC_CHATROOM__LIMITS__AUTO_INVITES_PER_HOUR: "1" }).start();
  const owner = server.token("u_alice", "Alice");
  const room = await server.room(owner, "Narrow", "public");
  const visitor = await Person.arrives(server);
  await visitor.opens(room);
  await visitor.reads("Reading goes on in", "#status");
  await server.post(`/rooms/${room}/auto-invite`, null);
  await visitor.evaluates(() => [...document.querySelectorAll("#composer button")].find((button) => button.innerText.includes("Let my agent join")).click());
  await visitor.reads("You can ask again in", "dialog");
  await visitor.leaves();
  await server.stop();
});

test("the front page tells what this is without script, and takes a pasted link", async () => {
  const server = await new Server().start();
  const plain = await Person.arrives(server);
  await plain.page.setJavaScriptEnabled(false);
  await plain.goes("/");
  ok((await plain.page.content()).includes("sc-chatroom user add"), "the text is not there");
  await plain.page.setJavaScriptEnabled(true);
  await plain.goes("/");
  await plain.fills("#link", "https://elsewhere.example/view#user_jwt=x");
  await plain.clicks("#paste button");
  await plain.reads("This is no sign-in link");
  await plain.page.$eval("#link", (field, link) => { field.value = link; }, server.signInLink("Paula"));
  await plain.clicks("#paste button");
  await plain.reads("Hello, Paula");
  await eventually("the address is clean", () => plain.evaluates(() => location.hash === ""));
  await plain.leaves();
  await server.stop();
});
