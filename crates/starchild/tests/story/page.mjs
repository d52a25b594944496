// A real browser that does as it is told: a line of JSON on standard input says what to do, a line on
// standard output what came of it. SC_TEST_WEB names the folder with puppeteer-core.

import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

/** How long anything is waited for: the machine may be busy. */
const TIMEOUT = 180_000;
const module = join(process.env.SC_TEST_WEB, "node_modules/puppeteer-core/lib/puppeteer/puppeteer-core.js");
const { default: puppeteer } = await import(pathToFileURL(module).href);
const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
  // Chromium ends with the pipe, so also when this process is killed.
  pipe: true,
  protocolTimeout: TIMEOUT,
});
const page = await browser.newPage();
page.setDefaultTimeout(TIMEOUT);
await page.setViewport({ width: 1280, height: 800 });
const complaints = [];
page.on("pageerror", (error) => complaints.push(String(error)));
page.on("dialog", (dialog) => { complaints.push(dialog.message()); void dialog.dismiss(); });

const deeds = {
  goes: ({ url }) => page.goto(url),
  /** Waits until something that fits the selector holds the words. */
  reads: ({ words, selector }) => page.waitForFunction(
    (words, selector) => [...document.querySelectorAll(selector)].some(({ innerText }) => innerText.includes(words)),
    { polling: 100 }, words, selector),
  /** Clicks what fits the selector and holds the words. */
  clicks: async ({ words, selector }) => {
    await deeds.reads({ words, selector });
    await page.evaluate((words, selector) => [...document.querySelectorAll(selector)].find(({ innerText }) => innerText.includes(words)).click(), words, selector);
  },
  writes: async ({ words }) => {
    await page.waitForSelector("#compose", { visible: true });
    await page.evaluate(() => { globalThis.seen = []; });
    await page.type("#compose", words);
    await page.keyboard.press("Enter");
  },
  texts: ({ selector }) => page.$$eval(selector, (found) => found.map(({ innerText }) => innerText.trim())),
  /** Keeps what agents are seen writing, however short that is, since the last message was sent. */
  watches: () => page.evaluate(() => {
    globalThis.seen = [];
    new MutationObserver(() => {
      for (const item of document.querySelectorAll("#typing li:has(.content)")) {
        const text = item.querySelector(".content").innerText.trim();
        globalThis.seen.push({ who: item.querySelector("b")?.innerText, text });
      }
    }).observe(document.querySelector("#typing"), { childList: true, subtree: true });
  }),
  /** Waits until this agent was seen writing. */
  sees: ({ agent }) => page.waitForFunction((agent) => globalThis.seen.some(({ who }) => who === agent), { polling: 100 }, agent),
  seen: () => page.evaluate(() => globalThis.seen.map(({ text }) => text)),
  picture: ({ file }) => page.screenshot({ path: file }),
  complaints: () => complaints,
};

for await (const line of createInterface({ input: process.stdin })) {
  const { do: deed, ...told } = JSON.parse(line);
  let answer;
  try {
    const done = await deeds[deed](told);
    answer = { done: Array.isArray(done) ? done : true };
  } catch (error) {
    const shows = await page.evaluate(() => document.body.innerText).catch(() => "");
    answer = { failed: `${error}\nThe page shows:\n${shows}` };
  }
  console.log(JSON.stringify(answer));
}
await browser.close();
