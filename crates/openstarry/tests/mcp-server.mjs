// A server on the official SDK: it hangs, dies, and writes down that it was cancelled.
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";

const here = dirname(fileURLToPath(import.meta.url));
const server = new McpServer({ name: "own", version: "1.0.0" });
const text = (text) => ({ content: [{ type: "text", text }] });

server.registerTool("pid", {}, () => text(String(process.pid)));
server.registerTool("hang", {}, (extra) => new Promise((resolve) => {
  extra.signal.addEventListener("abort", () => {
    writeFileSync(join(here, "cancelled"), "yes");
    resolve(text("cancelled"));
  });
}));
server.registerTool("die", {}, () => {
  process.stderr.write("the disk is full of eels\n", () => process.exit(3));
  return new Promise(() => {});
});

await server.connect(new StdioServerTransport());
