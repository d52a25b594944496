// Takes the picture of a room for an example's README, with puppeteer-core and Chromium:
//
//   NODE_MODULES=… node examples/picture.mjs LINK ROOM FILE [QUESTION]
//
// LINK is what `starchild up` prints, ROOM the room's id. The question is asked, and the picture is
// taken once the room has been quiet for a while.

import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [link, room, file, question] = process.argv.slice(2);
const module = join(process.env.NODE_MODULES ?? "node_modules", "puppeteer-core/lib/puppeteer/puppeteer-core.js");
const { default: puppeteer } = await import(pathToFileURL(module).href);
const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
try {
  const page = await browser.newPage();
  await page.setViewport({ width: 900, height: 620 });
  const token = new URLSearchParams(new URL(link).hash.slice(1)).get("user_jwt");
  await page.goto(`${new URL(link).origin}/view?room=${room}#user_jwt=${token}`, { waitUntil: "domcontentloaded" });
  await page.waitForSelector("textarea", { timeout: 30_000 });
  if (question) {
    await page.type("textarea", question);
    await page.keyboard.press("Enter");
  }
  let before = "";
  for (let quiet = 0, left = 60; quiet < 6 && left > 0; left--) {
    await new Promise((resolve) => setTimeout(resolve, 500));
    const text = await page.evaluate(() => document.body.innerText);
    quiet = text === before ? quiet + 1 : 0;
    before = text;
  }
  await page.screenshot({ path: file });
} finally {
  await browser.close();
}
