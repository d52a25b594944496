// Runs the browser tests: `cargo xtask test web [part of a name]`. Each file has a process and a
// browser of its own, and some run side by side.

import { fork } from "node:child_process";
import { once } from "node:events";
import { readdirSync, statSync } from "node:fs";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";

const [filter = "", file] = process.argv.slice(2);
process.exit((await (file ? runFile() : runFiles())) ? 0 : 1);

/** The tests of one file; the process that started this one is told how many passed and failed. */
async function runFile() {
  process.on("disconnect", () => process.exit(1));
  const { closeBrowser, runAll } = await import("./harness.mjs");
  await import(`./${file}`);
  const count = await runAll(filter);
  await closeBrowser();
  await new Promise((resolve) => process.send(count, resolve));
  return count.failed === 0;
}

/** Every file, as many at once as there are cores; what each one prints is shown when it is done. */
async function runFiles() {
  const tests = readdirSync(new URL(".", import.meta.url)).filter((name) => name.endsWith(".test.mjs"));
  // The longest first, so that none is left to run alone at the end.
  const length = (name) => statSync(new URL(name, import.meta.url)).size;
  const waiting = tests.sort((one, other) => length(other) - length(one));
  const total = { passed: 0, failed: 0 };
  const work = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const { passed, failed } = await runApart(next);
      total.passed += passed;
      total.failed += failed;
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
  console.log(`${total.passed} passed, ${total.failed} failed`);
  return total.failed === 0 && total.passed > 0;
}

/** One file in a process of its own. One that ends before it has counted has failed. */
async function runApart(name) {
  const child = fork(fileURLToPath(import.meta.url), [filter, name], { silent: true });
  let count;
  child.on("message", (message) => { count = message; });
  const printed = [];
  child.stdout.on("data", (bytes) => printed.push(bytes));
  child.stderr.on("data", (bytes) => printed.push(bytes));
  const [code] = await once(child, "close");
  process.stdout.write(Buffer.concat(printed));
  if (count) return count;
  console.log(`FAIL  ${name} ended with ${code}`);
  return { passed: 0, failed: 1 };
}
