// The graph of listeners, as the program drew it, with what is going on in it.

const SVG = "http://www.w3.org/2000/svg";
const SHINES_MS = 900;

/** Shows a drawing. It comes from our own program; whatever could act in it is left out all the same. */
export function show(place, drawing) {
  const parsed = new DOMParser().parseFromString(drawing, "image/svg+xml");
  if (parsed.querySelector("parsererror")) return;
  for (const active of parsed.querySelectorAll("script, style, a, foreignObject, image, use")) active.remove();
  place.replaceChildren(document.adoptNode(parsed.documentElement));
}

const key = (name) => name.toLowerCase();

/** Marks listeners with what waits for them and what they work on. */
export function mark(place, listeners) {
  const figures = new Map(listeners.map((listener) => [key(listener.name), listener]));
  for (const node of place.querySelectorAll(".node")) {
    const { waiting = 0, running = 0 } = figures.get(key(node.dataset.name)) ?? {};
    node.classList.toggle("busy", running > 0);
    let badge = node.querySelector(".badge");
    if (!badge) {
      const box = node.querySelector("rect");
      badge = document.createElementNS(SVG, "text");
      badge.setAttribute("class", "badge");
      badge.setAttribute("x", Number(box.getAttribute("x")) + Number(box.getAttribute("width")) / 2);
      badge.setAttribute("y", Number(box.getAttribute("y")) + Number(box.getAttribute("height")) - 4);
      node.append(badge);
    }
    badge.textContent = waiting + running > 0 ? `${running} running, ${waiting} waiting` : "";
  }
}

/** The edges that a hop goes along: an answer goes back along its call's. */
function edges(place, hop) {
  const [from, to] = [key(hop.from), key(hop.to)];
  return [...place.querySelectorAll(".edge")].filter(({ dataset }) => {
    const [start, end] = [key(dataset.from), key(dataset.to)];
    return (start === from && end === to) || (start === to && end === from);
  });
}

/** Lets one hop stand out, and no other; none where there is no hop. */
export function point(place, hop) {
  for (const edge of place.querySelectorAll(".edge.active")) {
    clearTimeout(edge.fading);
    edge.classList.remove("active");
  }
  if (hop) for (const edge of edges(place, hop)) edge.classList.add("active");
}

/** Lets hops that have just happened stand out for a moment. */
export function flash(place, hops) {
  for (const edge of new Set(hops.flatMap((hop) => edges(place, hop)))) {
    edge.classList.add("active");
    clearTimeout(edge.fading);
    edge.fading = setTimeout(() => edge.classList.remove("active"), SHINES_MS);
  }
}
