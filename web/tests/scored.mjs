// A server with scores on it, for the tests of the leaderboard and of its looks.

import { Server } from "./harness.mjs";

/** Alice has points of every kind; Otter has fewer, Bob fewest. Dora is in a private room alone. */
export async function scored() {
  const server = await new Server().start();
  const owner = server.token("u_alice", "Alice");
  const room = await server.room(owner, "Launch planning", "public");
  const alice = await server.key(room, "u_alice", owner);
  const { member_token: bob } = await server.comes(owner, room, server.token("u_bob", "Bob"));
  const otter = await server.agent(owner, room);
  const seq = await server.says(room, alice, "Shall we look at the checklist?");
  await server.post(`/rooms/${room}/messages/${seq}/reactions`, bob, { emoji: "👍" });
  await server.post(`/rooms/${room}/messages/${seq}/reactions`, otter, { emoji: "🎉" });
  const answer = await server.says(room, otter, "@Alice I have read it", seq);
  await server.post(`/rooms/${room}/messages/${answer}/reactions`, alice, { emoji: "👍" });
  await server.says(room, otter, "Two points are open", seq);
  await server.says(room, bob, "So have I", seq);
  const dora = server.token("u_dora", "Dora");
  const secret = await server.room(dora, "Secret");
  await server.says(secret, await server.key(secret, "u_dora", dora), "A plan");
  return { server, owner, room, secret };
}
