// Reads a room's stream with two libraries: sse_readers.mjs NODE_MODULES SERVER ROOM TOKEN.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, server, room, token] = process.argv.slice(2);
const { resolve } = createRequire(pathToFileURL(`${modules}/`));
const load = (name) => import(pathToFileURL(resolve(name)).href);
const { EventSource } = await load("eventsource");
const { createEventSource } = await load("eventsource-client");
const address = `${server}/rooms/${room}/stream?token=${token}`;
const post = (content) =>
  fetch(`${server}/rooms/${room}/messages`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ content }),
  });

const source = new EventSource(address);
const seen = [];
await new Promise((done, failed) => {
  const timer = setTimeout(() => failed(new Error("no message")), 20_000);
  source.addEventListener("ready", (event) => {
    seen.push(JSON.parse(event.data).cursor === event.lastEventId);
    setTimeout(() => void post("one"), 2_500);
  });
  source.addEventListener("message", (event) => {
    seen.push(JSON.parse(event.data).content);
    clearTimeout(timer);
    done();
  });
  source.onerror = (error) => failed(error);
});
source.close();
assert.deepEqual(seen, [true, "one"]);

const client = createEventSource(address);
const names = [];
for await (const { event, data, id } of client) {
  JSON.parse(data);
  names.push(event);
  assert.ok(id);
  if (event === "ready") void post("two");
  if (event === "message") break;
}
client.close();
assert.deepEqual(names, ["ready", "message"]);
console.log("read");
