// An editor on the official SDK: node client.mjs SDK-FOLDER STARCHILD FOLDER.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [sdk, starchild, folder] = process.argv.slice(2);
const found = createRequire(join(sdk, "x.js")).resolve("@agentclientprotocol/sdk");
const acp = await import(pathToFileURL(found));
const { agent: of, client: to } = acp.methods;

/** An editor with an agent, that answers questions with `choose(request)`. */
function open(choose) {
  const agent = spawn(starchild, ["agent", "acp"], { cwd: folder, stdio: ["pipe", "pipe", "inherit"] });
  const told = [];
  const connection = acp.client({ name: "test" })
    .onRequest(to.session.requestPermission, ({ params }) => {
      told.push(params);
      return { outcome: { outcome: "selected", optionId: choose(params) } };
    })
    .onNotification(to.session.update, ({ params }) => { told.push(params.update); })
    .connect(acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout)));
  const close = () => {
    const closed = new Promise((resolve) => agent.once("exit", resolve));
    agent.stdin.end();
    return closed;
  };
  return { agent: connection.agent, told, close };
}

/** Waits for something that was told. */
async function until(told, wanted) {
  const deadline = Date.now() + 30_000;
  while (!told.some(wanted)) {
    assert(Date.now() < deadline, `it never came: ${wanted} ${JSON.stringify(told)}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

const words = (text) => [{ type: "text", text }];
const said = (told, kind = "agent_message_chunk") =>
  told.filter((each) => each.sessionUpdate === kind).map((each) => each.content.text).join("");

let choice;
const editor = open(({ options }) => options.find((option) => option.kind === choice).optionId);
const greeting = { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} };
const hello = await editor.agent.request(of.initialize, greeting);
assert.equal(hello.protocolVersion, acp.PROTOCOL_VERSION);
assert.equal(hello.agentCapabilities.loadSession, true);
const newer = await editor.agent.request(of.initialize, { ...greeting, protocolVersion: 999 });
assert.equal(newer.protocolVersion, 1, "an agent does not claim what it does not speak");

const { sessionId } = await editor.agent.request(of.session.new, { cwd: folder, mcpServers: [] });
const ask = (text) => editor.agent.request(of.session.prompt, { sessionId, prompt: words(text) });

choice = "reject_once";
assert.equal((await ask("write it")).stopReason, "end_turn");
assert(!existsSync(join(folder, "b.txt")));
assert.equal(said(editor.told), "not then");

choice = "allow_once";
assert.equal((await ask("do write it")).stopReason, "end_turn");
assert.equal(readFileSync(join(folder, "b.txt"), "utf8"), "x");
assert.equal(said(editor.told, "agent_thought_chunk"), "again?");
const calls = editor.told.filter((each) => each.sessionUpdate === "tool_call_update");
assert(calls.some((each) => each.status === "failed") && calls.some((each) => each.status === "completed"));

const endless = ask("tell me");
await until(editor.told, (each) => each.content?.text === "Half");
await editor.agent.notify(of.session.cancel, { sessionId });
assert.equal((await endless).stopReason, "cancelled");
// One that comes too late is nobody's; the next turn is not cancelled by it.
await editor.agent.notify(of.session.cancel, { sessionId });
assert.equal((await ask("are you there?")).stopReason, "end_turn");
assert(said(editor.told).endsWith("still here"));
assert.match(said(editor.told, "agent_thought_chunk"), /trying again in 1 s/);

await assert.rejects(
  editor.agent.request(of.session.prompt, { sessionId: "x", prompt: words("?") }),
  /no session/,
);
await editor.close();

const later = open(() => "deny");
await later.agent.request(of.initialize, greeting);
await later.agent.request(of.session.load, { sessionId, cwd: folder, mcpServers: [] });
await until(later.told, (each) => each.content?.text === "still here");
assert.match(said(later.told, "user_message_chunk"), /^write it.*do write it.*tell me.*are you there/);
await later.close();
console.log("all is well");
