// Runs the browser tests: `cargo xtask test web [part of a name]`.

import { closeBrowser, openBrowser, runAll } from "./harness.mjs";
import "./entry.test.mjs";
import "./session.test.mjs";
import "./talking.test.mjs";
import "./place.test.mjs";
import "./holding.test.mjs";
import "./owner.test.mjs";
import "./agents.test.mjs";
import "./scores.test.mjs";
import "./looks.test.mjs";

await openBrowser();
const good = await runAll(process.argv[2] ?? "");
await closeBrowser();
process.exit(good ? 0 : 1);
