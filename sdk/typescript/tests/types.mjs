// Makes src/openapi.ts from the server's OpenAPI document: `node tests/types.mjs FOLDER [--check]`, where
// FOLDER is what tests/install.sh filled. It holds what the library uses, and what that needs.

import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const USED = ["Joined", "Me", "Message", "Posted"];
const [folder, check] = process.argv.slice(2);
const made = pathToFileURL(resolve(folder, "node_modules/openapi-typescript/dist/index.mjs"));
const { default: openapi, astToString } = await import(made.href);

const document = JSON.parse(readFileSync(new URL("../../../crates/chatroom/tests/api/openapi.json", import.meta.url), "utf8"));
const schemas = {};
const take = (name) => {
  if (name in schemas) return;
  schemas[name] = document.components.schemas[name];
  const needed = JSON.stringify(schemas[name]).matchAll(/"#\/components\/schemas\/([^"]+)"/g);
  for (const [, other] of needed) take(other);
};
USED.forEach(take);
const sorted = Object.fromEntries(Object.entries(schemas).sort());
const types = await openapi({ openapi: "3.1.0", info: document.info, paths: {}, components: { schemas: sorted } });
const text = `// Made by tests/types.mjs from the server's OpenAPI document. Do not edit.\n\n${astToString(types)}`;

const file = new URL("../src/openapi.ts", import.meta.url);
if (!check) writeFileSync(file, text);
else if (readFileSync(file, "utf8") !== text) {
  console.error(`sdk/typescript/src/openapi.ts is stale; run: node sdk/typescript/tests/types.mjs ${folder}`);
  process.exit(1);
}
