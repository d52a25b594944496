// Takes the picture of a room for an example's README, with puppeteer-core and Chromium:
//
//   NODE_MODULES=… node examples/picture.mjs LINK ROOM FILE [DEED]…
//
// LINK is what `starchild up` prints, ROOM the room's id. Each deed is a message that is written, or
// `click:WORDS` for the button with these words. After each, and before the picture is taken, the room
// has been quiet for a while.

import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [link, room, file, ...deeds] = process.argv.slice(2);
const module = join(process.env.NODE_MODULES ?? "node_modules", "puppeteer-core/lib/puppeteer/puppeteer-core.js");
const { default: puppeteer } = await import(pathToFileURL(module).href);
const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });

/** Waits until nothing has been said and nothing was asked for three seconds. */
async function quiet(page) {
  let before = "";
  for (let calm = 0, left = 120; calm < 6 && left > 0; left--) {
    await new Promise((resolve) => setTimeout(resolve, 500));
    const text = await page.evaluate(() => ["messages", "consents"].map((id) => document.getElementById(id)?.innerText).join());
    calm = text === before ? calm + 1 : 0;
    before = text;
  }
}

try {
  const page = await browser.newPage();
  await page.setViewport({ width: 1100, height: 720 });
  const token = new URLSearchParams(new URL(link).hash.slice(1)).get("user_jwt");
  await page.goto(`${new URL(link).origin}/view?room=${room}#user_jwt=${token}`, { waitUntil: "domcontentloaded" });
  await page.waitForSelector("#compose", { timeout: 30_000 });
  for (const deed of deeds) {
    if (deed.startsWith("click:")) {
      const words = deed.slice("click:".length);
      await page.evaluate((words) => [...document.querySelectorAll("button")].find(({ innerText }) => innerText.includes(words)).click(), words);
    } else {
      await page.type("#compose", deed);
      await page.keyboard.press("Enter");
    }
    await quiet(page);
  }
  await quiet(page);
  await page.screenshot({ path: file });
} finally {
  await browser.close();
}
