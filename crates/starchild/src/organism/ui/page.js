// The page: what the organism does now, or did, hop by hop.

import * as graph from "/graph.js";
import { draw, seconds } from "/sequence.js";

/** Hops that are kept here; the program keeps no more either. */
const KEPT = 2000;
const byId = (id) => document.getElementById(id);
const place = byId("graph");
const token = location.hash.slice(1);

/** What is looked at. `step` is a place among the shown hops, or null for the newest. */
const view = { source: "live", conversation: "", step: null };
const live = { hops: [], byId: new Map(), newest: 0, missed: 0 };
let journal = { hops: [], byId: new Map() };

async function ask(path) {
  const response = await fetch(path, { headers: { authorization: `Bearer ${token}` }, cache: "no-store" });
  if (!response.ok) throw Object.assign(new Error(await response.text()), { status: response.status });
  return response;
}

/** Takes a record in: a hop, or what handling one took. */
function take(into, record) {
  if (record.kind === "handled") {
    const hop = into.byId.get(record.id);
    if (hop) Object.assign(hop, { took: record.took, waited: record.waited, model_calls: record.model_calls, tokens: record.tokens, money: record.money, handled: record.words });
    return null;
  }
  into.hops.push(record);
  if (record.id !== null) into.byId.set(record.id, record);
  if (into.hops.length > KEPT) into.byId.delete(into.hops.shift().id);
  return record;
}

const on = {
  graph({ name, svg }) {
    document.title = name;
    byId("name").textContent = name;
    graph.show(place, svg);
  },
  stats(stats) {
    graph.mark(place, stats.listeners);
    showTotals(stats);
    showListeners(stats.listeners);
  },
  hops({ missed, hops }) {
    if (live.newest > 0) live.missed += missed;
    const fresh = hops.filter((hop) => hop.number > live.newest).map((hop) => take(live, hop)).filter(Boolean);
    live.newest = Math.max(live.newest, ...hops.map((hop) => hop.number));
    if (view.source !== "live") return;
    if (view.step === null) graph.flash(place, fresh);
    show();
  },
};

function showTotals({ conversations, todos, hops, errors, budget_ends: ends, listeners }) {
  const sum = (values) => values.reduce((total, value) => total + value, 0);
  const { handled, ...moved } = hops;
  const totals = [
    ["Conversations", conversations], ["To-dos", todos], ["Hops", sum(Object.values(moved))],
    ["Errors", sum(Object.values(errors))], ["Budget ends", sum(Object.values(ends))],
    ["Tokens", sum(listeners.map((listener) => listener.tokens))], ["Money", sum(listeners.map((listener) => listener.money)).toFixed(4)],
  ];
  byId("totals").replaceChildren(...totals.map(([name, value]) => {
    const pair = document.createElement("div");
    pair.append(element("dt", name), element("dd", String(value)));
    return pair;
  }));
}

function showListeners(listeners) {
  byId("listeners").replaceChildren(...listeners.map((listener) => {
    const row = document.createElement("tr");
    const { name, waiting, running, handled, took, model_calls, tokens, money } = listener;
    row.append(...[name, waiting, running, handled, took.toFixed(3), model_calls, tokens, money.toFixed(4)].map((value) => element("td", String(value))));
    return row;
  }));
}

function element(name, text) {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

/** The hops that are looked at: of one conversation, the newest unless one was chosen. */
function looked() {
  const { hops } = view.source === "live" ? live : journal;
  const conversations = new Map();
  for (const hop of hops) conversations.set(hop.conversation, (conversations.get(hop.conversation) ?? 0) + 1);
  offerConversations(conversations);
  const chosen = view.conversation || hops.at(-1)?.conversation;
  return hops.filter((hop) => hop.conversation === chosen);
}

function offerConversations(conversations) {
  const options = [["", "the newest"], ...[...conversations].reverse().slice(0, 200).map(([id, count]) => [id, `${id.slice(0, 8)} (${count})`])];
  if (view.conversation && !conversations.has(view.conversation)) options.push([view.conversation, view.conversation.slice(0, 8)]);
  byId("conversation").replaceChildren(...options.map(([value, text]) => {
    const option = element("option", text);
    option.value = value;
    return option;
  }));
  byId("conversation").value = view.conversation;
}

function show() {
  const hops = looked();
  const last = hops.length - 1;
  const at = view.step === null ? last : Math.min(view.step, last);
  const current = view.step === null ? null : hops[at];
  const shown = view.step === null ? hops : hops.slice(0, at + 1);
  const left = draw(byId("sequence"), shown, current, choose);
  byId("step").max = Math.max(0, last);
  byId("step").value = Math.max(0, at);
  byId("at").textContent = last < 0 ? "" : `hop ${at + 1} of ${last + 1}`;
  byId("back").disabled = at <= 0;
  byId("forward").disabled = at >= last;
  byId("follow").disabled = view.step === null;
  const notes = [];
  if (left > 0) notes.push(`${left} earlier hops are not drawn.`);
  if (live.missed > 0) notes.push(`${live.missed} hops came too fast to be shown.`);
  byId("note").textContent = notes.join(" ");
  if (current) graph.point(place, current);
  showDetail(current ?? null);
}

function choose(hop) {
  view.step = looked().indexOf(hop);
  show();
}

let shownDetail;
async function showDetail(hop) {
  const key = hop && JSON.stringify([view.source, hop.number, hop.took]);
  if (key === shownDetail) return;
  shownDetail = key;
  if (!hop) return byId("detail").replaceChildren();
  const about = [`hop ${hop.id ?? "–"}`, `after ${hop.parent ?? "–"}`, `at ${hop.at.toFixed(3)} s`, hop.words];
  if (hop.took !== undefined) about.push(`took ${seconds(hop.took)}`, `waited ${seconds(hop.waited)}`, `${hop.model_calls} model calls`, `${hop.tokens} tokens`, `money ${hop.money.toFixed(6)}`);
  const parts = [element("p", `${hop.from} → ${hop.to}: ${about.join(", ")}`), element("pre", hop.xml + (hop.is_cut ? " …" : ""))];
  byId("detail").replaceChildren(...parts);
  if (view.source === "journal" && hop.id !== null) {
    const state = await ask(`/replay/${hop.id}`).then((response) => response.json()).catch((error) => ({ error: error.message }));
    if (shownDetail === key) byId("detail").append(element("p", "The state then:"), element("pre", JSON.stringify(state, null, 1)));
  }
}

function step(by) {
  const last = looked().length - 1;
  view.step = Math.min(Math.max(0, (view.step ?? last) + by), last);
  show();
}

byId("back").addEventListener("click", () => step(-1));
byId("forward").addEventListener("click", () => step(1));
byId("step").addEventListener("input", ({ target }) => { view.step = Number(target.value); show(); });
byId("follow").addEventListener("click", () => { view.step = null; graph.point(place, null); show(); });
byId("conversation").addEventListener("change", ({ target }) => { view.conversation = target.value; view.step = null; show(); });
byId("source").addEventListener("change", async ({ target }) => {
  try {
    if (target.value === "journal") {
      const { hops } = await (await ask("/replay")).json();
      journal = { hops: [], byId: new Map() };
      for (const hop of hops) take(journal, hop);
    }
    Object.assign(view, { source: target.value, conversation: "", step: target.value === "journal" ? 0 : null });
    show();
  } catch (error) {
    target.value = view.source;
    byId("note").textContent = error.message;
  }
});

function say(text, isBad = false) {
  byId("status").textContent = text;
  byId("status").classList.toggle("bad", isBad);
}

/** Reads server-sent events; `fetch` can carry the token in a header, as `EventSource` cannot. */
async function follow() {
  const reader = (await ask("/events")).body.pipeThrough(new TextDecoderStream()).getReader();
  say("live");
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    const events = text.split("\n\n");
    text = events.pop();
    for (const event of events) {
      const fields = event.split("\n");
      const [name, data] = ["event: ", "data: "].map((field) => fields.find((line) => line.startsWith(field))?.slice(field.length));
      if (name in on && data) on[name](JSON.parse(data));
    }
  }
}

show();
for (;;) {
  try {
    await follow();
    say("the organism has ended, or went silent; trying again …", true);
  } catch (error) {
    if (error.status) { say(error.message, true); break; }
    say("the organism does not answer; trying again …", true);
  }
  await new Promise((resolve) => setTimeout(resolve, 1000));
}
