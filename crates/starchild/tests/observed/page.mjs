// Opens the page of a running organism in a real browser and prints what it shows as JSON.
// `node page.mjs ADDRESS SCREENSHOT`; SC_TEST_WEB names the folder with puppeteer-core.

import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [address, screenshot] = process.argv.slice(2);
const module = join(process.env.SC_TEST_WEB, "node_modules/puppeteer-core/lib/puppeteer/puppeteer-core.js");
const { default: puppeteer } = await import(pathToFileURL(module).href);
const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
  // Chromium ends with the pipe, so also when this process is killed.
  pipe: true,
});
try {
  const page = await browser.newPage();
  const wrong = [];
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("console", (message) => { if (message.type() === "error") wrong.push(message.text()); });
  await page.setViewport({ width: 1400, height: 900 });
  await page.goto(address);
  const shows = (selector, least) => page.waitForFunction((selector, least) => document.querySelectorAll(selector).length >= least, {}, selector, least);
  await shows("#graph .node", 3);
  await shows("#sequence .hop", 4);
  const texts = (selector) => page.$$eval(selector, (found) => found.map((element) => element.textContent));
  const shown = {
    name: await page.$eval("#name", (element) => element.textContent),
    edges: await page.$$eval("#graph .edge", (edges) => edges.map(({ dataset }) => `${dataset.from} ${dataset.to}`)),
    labels: await texts("#graph .edge text"),
    listeners: await texts("#listeners td:first-child"),
    lifelines: await page.$$eval("#sequence .lifeline", (lines) => lines.length),
    hops: await texts("#sequence .hop > text:not(.took)"),
  };
  if (screenshot) await page.screenshot({ path: `${screenshot}-live.png`, fullPage: true });
  await page.select("#source", "journal");
  await page.waitForFunction(() => document.querySelector("#at").textContent.startsWith("hop 1 of"));
  await page.waitForFunction(() => document.querySelectorAll("#detail pre").length === 2);
  await page.click("#forward");
  await page.waitForFunction(() => document.querySelectorAll("#detail pre").length === 2 && document.querySelector("#at").textContent.startsWith("hop 2 of"));
  shown.step = { at: await page.$eval("#at", (element) => element.textContent), detail: await texts("#detail pre"), active: await page.$$eval("#graph .edge.active", (edges) => edges.length) };
  shown.forged = await page.evaluate(() => document.querySelectorAll("#detail img, #sequence img, #sequence script").length + (globalThis.forged ?? 0));
  if (screenshot) await page.screenshot({ path: `${screenshot}-replay.png`, fullPage: true });
  // A hostile page in the same browser knows the port and no more.
  const hostile = await browser.newPage();
  await hostile.goto("data:text/html,<p>hostile</p>");
  shown.hostile = await hostile.evaluate(async (base) => {
    const tried = async (path, options) => { try { return (await (await fetch(base + path, options)).text()).length; } catch { return "blocked"; } };
    return [await tried("/events"), await tried("/metrics"), await tried("/replay", { headers: { authorization: "Bearer x" } })];
  }, new URL(address).origin);
  console.log(JSON.stringify({ ...shown, wrong }));
} finally {
  await browser.close();
}
