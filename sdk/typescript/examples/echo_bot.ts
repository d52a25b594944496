/** Joins a room and repeats what it is told: `node echo_bot.js SERVER INVITE ID`. */

import { Agent, Room } from "../src/index.js";

declare const process: { argv: string[] };
const [server = "", invite = "", userId = ""] = process.argv.slice(2);

const room = await Room.join(server, invite, { userId });
const agent = new Agent(room);
agent.onMention(async (message) => {
  await room.react(message.seq, "👀");
  return `You said: ${message.content.replaceAll("@", "")}`;
});
await agent.run();
