// Where the page stands while things around it change: at its end, unless the reader went elsewhere.

import { HeldAgent, Person, Server, equal, ok, test } from "./harness.mjs";

/** Alice looks at a room in which more was said than fits her window. */
async function full() {
  const server = await new Server().start();
  const owner = server.token("u_alice", "Alice");
  const room = await server.room(owner, "Launch planning");
  const key = await server.key(room, "u_alice", owner);
  for (let n = 1; n <= 40; n++) await server.says(room, key, `Point ${n} of the plan`);
  const alice = await Person.inRoom(server, "Alice", room);
  await alice.reads("Point 40", "#messages");
  return { server, owner, room, key, alice };
}

/** How much lies below what is seen, once the page has been drawn. */
const below = (person) => person.evaluates(async () => {
  for (let frame = 0; frame < 2; frame++) await new Promise((resolve) => requestAnimationFrame(resolve));
  const { scrollHeight, scrollTop, clientHeight } = document.querySelector("#scroller");
  return scrollHeight - scrollTop - clientHeight;
});

test("the newest message stays in sight while a draft grows and goes", async () => {
  const { alice } = await full();
  await alice.page.focus("#compose");
  for (let line = 1; line <= 8; line++) {
    await alice.page.keyboard.type(`line ${line} of a longer thought`);
    ok((await below(alice)) <= 2, `the end is out of sight after line ${line}`);
    await alice.page.keyboard.down("Shift");
    await alice.page.keyboard.press("Enter");
    await alice.page.keyboard.up("Shift");
  }
  await alice.page.keyboard.press("Enter");
  await alice.reads("line 8 of a longer thought", "#messages");
  ok((await below(alice)) <= 2, "the end is out of sight after sending");
  equal(await alice.page.$eval("#jump", (button) => button.hidden), true, "the page keeps to its end");
  await alice.leaves();
});

test("what shrinks and grows within one frame does not move the page from its end", async () => {
  const { alice } = await full();
  await alice.evaluates(async () => {
    const scroller = document.querySelector("#scroller");
    const outbox = document.querySelector("#outbox");
    const letter = () => Object.assign(document.createElement("li"), { className: "letter", textContent: "Sending ".repeat(200) });
    outbox.append(letter());
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    outbox.replaceChildren();
    // Asking for a measure makes the browser take the shorter page as it is.
    void scroller.scrollHeight;
    outbox.append(letter());
  });
  ok((await below(alice)) <= 2, "the end is out of sight");
  equal(await alice.page.$eval("#jump", (button) => button.hidden), true, "the page keeps to its end");
  await alice.leaves();
});

test("a reader who scrolled up is left alone while an agent writes, and comes back to the end", async () => {
  const { server, owner, room, alice } = await full();
  const carol = await HeldAgent.starts();
  await carol.joins(server, owner, room, server.token("u_carol", "Carol"));
  await alice.writes("What is still open?");
  await alice.sees("#typing .content");
  await alice.page.mouse.move(600, 400);
  await alice.page.mouse.wheel({ deltaY: -300 });
  await alice.until(() => !document.querySelector("#jump").hidden);
  ok((await below(alice)) > 2, "the page did not move");
  const top = () => alice.page.$eval("#messages > li[data-seq='38']", (item) => item.getBoundingClientRect().top);
  const was = await settled(top);
  for (let n = 1; n <= 5; n++) {
    carol.writes(`\n\nAlso point ${n}.`);
    await alice.reads(`Also point ${n}.`, "#typing");
  }
  carol.says(" That is all.");
  await alice.reads("1 new", "#jump");
  equal(await top(), was, "what she looks at");
  await alice.clicks("#jump");
  await alice.until(() => document.querySelector("#jump").hidden);
  await alice.reads("That is all.", "#messages");
  ok((await below(alice)) <= 2, "the end is out of sight");
  await alice.leaves();
});

test("a reader who leaves the end in the very frame of a change is not brought back", async () => {
  const { alice } = await full();
  const leaves = (how) => alice.evaluates(async (kind) => {
    const scroller = document.querySelector("#scroller");
    const outbox = document.querySelector("#outbox");
    scroller.scrollTop = scroller.scrollHeight;
    for (let frame = 0; frame < 2; frame++) await new Promise((resolve) => requestAnimationFrame(resolve));
    // What a hand does: the browser moves the page, and something changes before it has told so.
    if (kind === "wheel") scroller.dispatchEvent(new WheelEvent("wheel", { deltaY: -300 }));
    else if (kind === "key") scroller.dispatchEvent(new KeyboardEvent("keydown", { key: "PageUp", bubbles: true }));
    else scroller.dispatchEvent(new PointerEvent("pointerdown"));
    scroller.scrollTop -= 300;
    outbox.append(Object.assign(document.createElement("li"), { className: "letter", textContent: "Sending" }));
    await new Promise((resolve) => setTimeout(resolve));
    const moved = scroller.scrollTop;
    outbox.replaceChildren();
    window.dispatchEvent(new PointerEvent("pointerup"));
    return [moved < scroller.scrollHeight - scroller.clientHeight - 200, document.querySelector("#jump").hidden];
  }, how);
  for (const how of ["wheel", "key", "bar"]) equal(await leaves(how), [true, false], how);
  // And with a real wheel, while something changes all the time.
  await alice.clicks("#jump");
  await alice.until(() => document.querySelector("#jump").hidden);
  await alice.evaluates(() => {
    const outbox = document.querySelector("#outbox");
    const letter = Object.assign(document.createElement("li"), { className: "letter" });
    outbox.append(letter);
    globalThis.changing = setInterval(() => { letter.textContent = "Sending ".repeat(1 + (Math.random() * 40)); });
  });
  await alice.page.mouse.move(600, 400);
  await alice.page.mouse.wheel({ deltaY: -400 });
  await alice.until(() => !document.querySelector("#jump").hidden);
  ok((await below(alice)) > 100, "she was brought back");
  await alice.evaluates(() => clearInterval(globalThis.changing));
  await alice.leaves();
});

/** A measure once it has stopped changing. */
async function settled(measure) {
  for (let last; ; ) {
    const now = await measure();
    if (now === last) return now;
    last = now;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}
