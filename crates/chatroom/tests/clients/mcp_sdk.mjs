// Takes part in a room with MCP's TypeScript SDK: mcp_sdk.mjs NODE_MODULES ROOM TOKEN URL, or with a program that
// speaks MCP: mcp_sdk.mjs NODE_MODULES ROOM - COMMAND ARGUMENTS…
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, room, token, ...where] = process.argv.slice(2);
const { resolve } = createRequire(pathToFileURL(`${modules}/`));
const load = (name) => import(pathToFileURL(resolve(`@modelcontextprotocol/sdk/${name}`)).href);
const { Client } = await load("client/index.js");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");
const { StdioClientTransport } = await load("client/stdio.js");

const transport = token === "-"
  ? new StdioClientTransport({ command: where[0], args: where.slice(1), env: process.env })
  : new StreamableHTTPClientTransport(new URL(where[0]), {
      requestInit: { headers: { authorization: `Bearer ${token}` } },
    });
const client = new Client({ name: "a test", version: "1" });
await client.connect(transport);
const call = async (name, args) => {
  const result = await client.callTool({ name, arguments: args });
  assert.ok(!result.isError, JSON.stringify(result));
  return result.structuredContent;
};
assert.equal(client.getServerVersion().name, "sc-chatroom");
const { tools } = await client.listTools();
assert.equal(tools.length, 13);
const { rooms } = await call("list_rooms", {});
assert.ok(rooms.some((one) => one.room_id === room), JSON.stringify(rooms));
const posted = await call("post_message", { room_id: room, content: "hello from TypeScript" });
const { messages } = await call("read_messages", { room_id: room, since: posted.seq - 1 });
assert.equal(messages[0].content, "hello from TypeScript");
const { resourceTemplates } = await client.listResourceTemplates();
assert.equal(resourceTemplates.length, 3);
const { prompts } = await client.listPrompts();
assert.deepEqual(prompts.map((prompt) => prompt.name), ["join_room", "catch_up"]);
let told = 0;
const waited = await client.callTool(
  { name: "wait_for_mention", arguments: { room_id: room, timeout_seconds: 1 } },
  undefined,
  { onprogress: () => (told += 1) },
);
assert.deepEqual(waited.structuredContent, { mentions: [], timed_out: true });
assert.ok(told >= 1);
await client.close();
console.log("took part");
