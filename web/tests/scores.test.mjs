// The leaderboard with real scores.

import { Person, equal, ok, test } from "./harness.mjs";
import { scored } from "./scored.mjs";

const names = (person) => person.evaluates(() => [...document.querySelectorAll("#board .board bdi")].map((name) => name.innerText));

async function choose(person, room) {
  await person.clicks("#tab-room");
  await person.page.$eval("#room", (field, value) => {
    field.value = value;
    field.dispatchEvent(new Event("change", { bubbles: true }));
  }, room);
}

test("the leaderboard ranks everybody, and a room's members by name", async () => {
  const { server, room, owner } = await scored();
  const alice = await Person.inRoom(server, "Alice");
  await alice.goes("/leaderboard.html");
  await alice.sees("#board .board");
  const everywhere = await names(alice);
  equal([everywhere.length, everywhere[0], everywhere.includes("Dora")], [4, "Alice", false], "everywhere");
  const mine = await server.room(owner, "Mine alone");
  await server.says(mine, await server.joins(owner, mine, { user_id: "tidy_falcon-227a4218" }), "Ready");
  await alice.page.reload();
  await alice.reads("Tidy Falcon", "#board");
  await alice.clicks("#tab-room");
  await alice.until(() => [...document.querySelectorAll("#room option")].some((option) => option.text === "Launch planning"));
  await choose(alice, room);
  // Her own agent of another room is on the board of everybody alone.
  await alice.until(() => document.querySelector("#board .board li") && !document.querySelector("#board")?.textContent?.includes("Tidy Falcon"));
  equal(await names(alice), ["Alice", "Curious Otter", "Bob"], "in the room");
  await alice.reads("you", "#board .board li:first-child");
  await alice.leaves();
});

test("a member sees where the score came from", async () => {
  const { server, room } = await scored();
  const alice = await Person.inRoom(server, "Alice");
  await alice.goes(`/leaderboard.html?room=${room}`);
  await alice.sees("#mine .bars");
  const drawn = await alice.evaluates(() => {
    const cells = [...document.querySelectorAll("#mine .bars > *")];
    return cells.filter((_, n) => n % 3 === 0).map((cell, n) => [cell.textContent, Number(cells[3 * n + 1].querySelector("rect").getAttribute("width")), Number(cells[3 * n + 2].textContent)]);
  });
  equal(drawn.map(([kind]) => kind), ["Reaction received", "Thread with three answers", "Mention received", "Message written"], "the kinds, most points first");
  const most = drawn[0][2];
  for (const [kind, width, points] of drawn) ok(Math.abs(width - (100 * points) / most) < 2, `${kind}: ${width} for ${points} of ${most}`);
  await alice.reads("half again as much in your first week", "#mine");
  await alice.reads("Reaction received 👍", "#mine");
  await alice.reads("points of 30 days", "#mine");
  await alice.page.select("#window", "7");
  await alice.reads("points of 7 days", "#mine");
  await alice.sees("#mine .bars");
  const square = await alice.evaluates(() => [...document.querySelectorAll("#board .board li")].map((row) => [row.querySelector("bdi").innerText, row.querySelector("rect.avatar-back") !== null]));
  equal(square, [["Alice", false], ["Curious Otter", true], ["Bob", false]], "agents are square, people round");
  await alice.leaves();
});

test("the window and the number of places are chosen", async () => {
  const { server, room } = await scored();
  const visitor = await Person.arrives(server);
  const asked = [];
  visitor.page.on("request", (request) => request.url().includes("/leaderboard?") && asked.push(new URL(request.url()).search));
  await visitor.goes(`/leaderboard.html?room=${room}`);
  await visitor.reads("Curious Otter", "#board");
  await visitor.page.select("#window", "7");
  await visitor.page.select("#limit", "10");
  await visitor.sees("#board .board");
  equal(asked, ["?window=30&limit=20", "?window=7&limit=20", "?window=7&limit=10"], "asked");
  await visitor.leaves();
});

test("a board is refused only to whoever may not see it", async () => {
  const { server, room, secret } = await scored();
  const carol = await Person.inRoom(server, "Carol");
  await carol.goes(`/leaderboard.html?room=${room}`);
  await carol.reads("Curious Otter", "#board");
  equal(await carol.evaluates(() => document.querySelector("#mine").innerText), "", "a score of hers");
  await carol.goes(`/leaderboard.html?room=${secret}`);
  await carol.reads("This room is private", "#board");
  await carol.leaves();
});
