// A conversation as a sequence diagram. Every text is set as text: payloads come from anywhere.

const SVG = "http://www.w3.org/2000/svg";
const COLUMN = 170, ROW = 34, TOP = 18, LEFT = 90, NAMES = 30;
/** Rows that are drawn; of a longer conversation, the last ones. */
const MOST = 300;
const WRONG = new Set(["refused", "failed", "limit", "ended", "unheard"]);

function make(name, attributes, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

export const seconds = (value) => (value < 1 ? `${(value * 1000).toFixed(value < 0.01 ? 2 : 0)} ms` : `${value.toFixed(2)} s`);

/** Draws hops, in order; `choose` is told which one was clicked. Gives how many were left out. */
export function draw(place, hops, current, choose) {
  const shown = hops.slice(-MOST);
  const names = [...new Set(shown.flatMap((hop) => [hop.from, hop.to]))];
  const columns = new Map(names.map((name, index) => [name, LEFT + index * COLUMN]));
  const [width, height] = [LEFT * 2 + Math.max(0, names.length - 1) * COLUMN, TOP + shown.length * ROW + 16];
  const svg = make("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img" });
  // The names stay in sight while the rows are scrolled.
  const header = make("svg", { class: "names", width, height: NAMES, viewBox: `0 0 ${width} ${NAMES}`, role: "img" });
  for (const [name, x] of columns) {
    svg.append(make("line", { class: "lifeline", x1: x, x2: x, y1: 0, y2: height }));
    const label = make("text", { x, y: 20 }, short(name, 22));
    label.append(make("title", {}, name));
    header.append(label);
  }
  shown.forEach((hop, index) => svg.append(row(hop, columns, TOP + index * ROW, width, hop === current, choose)));
  const wasAtEnd = place.scrollTop + place.clientHeight >= place.scrollHeight - ROW;
  if (shown.length === 0) {
    const empty = document.createElement("p");
    empty.textContent = "Nothing has happened yet. What is sent to the organism, and what follows from it, is drawn here hop by hop.";
    place.replaceChildren(empty);
    return 0;
  }
  place.replaceChildren(header, svg);
  const chosen = svg.querySelector(".current");
  if (chosen) chosen.scrollIntoView({ block: "nearest", inline: "nearest" });
  else if (wasAtEnd) place.scrollTop = place.scrollHeight;
  return hops.length - shown.length;
}

function row(hop, columns, y, width, isCurrent, choose) {
  const group = make("g", { class: `hop ${hop.kind === "answer" ? "answer" : ""} ${WRONG.has(hop.kind) ? "wrong" : ""} ${isCurrent ? "current" : ""}` });
  group.append(make("rect", { class: "area", x: 0, y: y - 12, width, height: ROW }));
  const [from, to] = [columns.get(hop.from), columns.get(hop.to)];
  const end = y + 12;
  if (from === to) {
    group.append(make("path", { d: `M${from} ${end - 8}h26v12h-20` }), head(from + 3, end + 4, -1));
  } else {
    const towards = to > from ? 1 : -1;
    group.append(make("line", { x1: from, x2: to - 4 * towards, y1: end, y2: end }), head(to, end, towards));
  }
  const middle = from === to ? from + 70 : (from + to) / 2;
  group.append(make("text", { x: middle, y: end - 5 }, short(`${hop.payload}${WRONG.has(hop.kind) ? ` ${hop.kind}` : ""}`, 24)));
  if (hop.took !== undefined && hop.took !== null) {
    group.append(make("text", { class: "took", x: to, y: end + 14 }, seconds(hop.took)));
  }
  group.append(make("title", {}, `${hop.from} → ${hop.to}: ${hop.payload}, ${hop.words}`));
  group.addEventListener("click", () => choose(hop));
  return group;
}

const head = (x, y, towards) => make("path", { class: "head", d: `M${x} ${y}l${-9 * towards} -4v8z` });

function short(text, most) {
  const letters = [...text];
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : text;
}
