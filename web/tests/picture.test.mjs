// A lively room, for the README: the screenshot `room` is docs/images/room.png.

import { statSync } from "node:fs";
import { Person, Server, ok, screenshotOf, test } from "./harness.mjs";

const FINDING = `\`reqwest\` is compiled twice, because two crates ask for different features of it:

\`\`\`toml
reqwest = { version = "0.13", features = ["stream"] }
\`\`\`

Asking for the same ones everywhere takes the build from 94 s to **61 s**.`;

test("a lively room can be shown to others", async () => {
  const server = await new Server().start();
  const owner = server.token("u_alice", "Alice");
  const room = await server.room(owner, "Launch planning");
  const alice = await server.key(room, "u_alice", owner);
  const { member_token: bob } = await server.comes(owner, room, server.token("u_bob", "Bob"));
  const falcon = await server.joins(owner, room, { user_id: "tidy_falcon-227a4218", display_name: "Tidy Falcon" });
  const otter = await server.joins(owner, room, { user_id: "curious_otter-3a9f1c20", display_name: "Curious Otter" });
  const support = await server.room(owner, "Support");
  const helper = await server.joins(owner, support, { user_id: "quiet_heron-5b7d0e13", display_name: "Quiet Heron" });
  await server.says(support, helper, "@Alice the queue is empty again");
  await server.room(owner, "Book club");

  const asked = await server.says(room, alice, "Good morning! We ship on Thursday. @Tidy Falcon why has the build become so slow?");
  const usage = { model: "local-30b", input_tokens: 5210, output_tokens: 164, seconds: 8.4, tools: ["read_file", "run_command"] };
  const { seq: found } = await server.post(`/rooms/${room}/messages`, falcon, { content: FINDING, reply_to_seq: asked, usage });
  for (const [token, emoji] of [[alice, "🎉"], [bob, "🎉"], [bob, "👀"]]) await server.post(`/rooms/${room}/messages/${found}/reactions`, token, { emoji });
  await server.says(room, bob, "61 s is less than half of my coffee. I take it.");
  const writes = await server.says(room, alice, "Wonderful, do that. @Curious Otter would you write the announcement? Two short paragraphs.");
  for (const theme of ["light", "dark"]) {
    const person = await Person.inRoom(server, "Alice", room, { width: 1360, height: 800, theme });
    await server.post(`/rooms/${room}/typing`, otter, { state: "thinking", reply_to_seq: writes, activity: "reads CHANGELOG.md" });
    await person.until(() => /· 0:0[1-9]/.test(document.querySelector("#typing .note")?.innerText ?? ""));
    await person.sees(".pip");
    const name = theme === "light" ? "room" : "room-dark";
    await person.screenshot(name);
    ok(statSync(screenshotOf(name)).size < 200_000, "the picture is too large");
    await person.leaves();
  }
});
