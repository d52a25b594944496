// Trying calls from the reference page: a form for each operation, made of the description.

import { h } from "./dom.js";

/** How long an answer that does not end is read, in milliseconds. */
const LOOK = 5000;
/** The most characters of an answer that are shown. */
const MOST = 20_000;

const bearer = /** @type {HTMLInputElement} */ (h("input", { type: "password", autocomplete: "off", id: "token" }));
document.getElementById("bearer")?.append(h("label", {}, "Bearer token for the calls that you try (kept in this page alone)", bearer));

const filter = /** @type {HTMLInputElement} */ (h("input", { type: "search", autocomplete: "off", placeholder: "messages, invite, POST …" }));
document.getElementById("filter")?.append(h("label", {}, "Find an operation", filter));
filter.oninput = () => {
  const wanted = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const heading of document.querySelectorAll("nav > ul > li")) {
    const operations = [.../** @type {NodeListOf<HTMLElement>} */ (heading.querySelectorAll("li"))];
    for (const operation of operations) {
      const section = document.getElementById(operation.querySelector("a")?.hash.slice(1) ?? "");
      const words = `${operation.textContent} ${section?.querySelector("p")?.textContent}`.toLowerCase();
      operation.hidden = !wanted.every((word) => words.includes(word));
    }
    /** @type {HTMLElement} */ (heading).hidden = operations.every((operation) => operation.hidden);
  }
};

const description = await (await fetch("/openapi.json")).json();

/** @param {any} schema @returns {any} */
const resolved = (schema) => schema?.$ref ? description.components.schemas[schema.$ref.split("/").at(-1)] : schema;

/** The request body to begin with: what is required, by its examples. @param {any} operation */
function body(operation) {
  const schema = resolved(operation.requestBody?.content?.["application/json"]?.schema);
  if (!schema?.properties) return "{}";
  const required = schema.required ?? [];
  const fields = Object.entries(schema.properties).filter(([name, field]) => required.includes(name) || resolved(field).example !== undefined && required.length === 0);
  return JSON.stringify(Object.fromEntries(fields.map(([name, field]) => [name, resolved(field).example ?? ""])), null, 2);
}

/** @param {HTMLElement} section */
function addForm(section) {
  const { method = "get", path = "" } = section.dataset;
  const operation = description.paths[path][method];
  const inputs = (operation.parameters ?? []).map((/** @type {any} */ parameter) => {
    const value = parameter.in === "path" ? String(parameter.example ?? "") : "";
    return { parameter, field: /** @type {HTMLInputElement} */ (h("input", { value, placeholder: String(parameter.example ?? "") })) };
  });
  const text = operation.requestBody ? /** @type {HTMLTextAreaElement} */ (h("textarea", { spellcheck: "false" })) : null;
  if (text) text.value = body(operation);
  const answer = h("pre", { hidden: true, "aria-live": "polite" });

  /** @param {Event} event */
  async function send(event) {
    event.preventDefault();
    let address = path;
    const query = new URLSearchParams();
    /** @type {Record<string, string>} */
    const headers = {};
    for (const { parameter, field } of inputs) {
      if (parameter.in === "path") address = address.replace(`{${parameter.name}}`, encodeURIComponent(field.value));
      else if (field.value !== "" && parameter.in === "query") query.set(parameter.name, field.value);
      else if (field.value !== "") headers[parameter.name] = field.value;
    }
    if (bearer.value) headers.authorization = `Bearer ${bearer.value}`;
    if (text) headers["content-type"] = "application/json";
    const wanted = query.size > 0 ? `${address}?${query}` : address;
    answer.hidden = false;
    answer.textContent = "…";
    const enough = new AbortController();
    const timer = setTimeout(() => enough.abort(), LOOK);
    let shown = "";
    try {
      const reply = await fetch(wanted, { method: method.toUpperCase(), headers, body: text?.value, redirect: "manual", signal: enough.signal });
      shown = `${method.toUpperCase()} ${wanted}\n${reply.status} ${reply.statusText}\n\n`;
      const reader = reply.body?.pipeThrough(new TextDecoderStream()).getReader();
      while (reader && shown.length < MOST) {
        const { done, value } = await reader.read();
        if (done) break;
        shown += value;
        answer.textContent = shown;
      }
      answer.textContent = pretty(shown).slice(0, MOST);
    } catch (error) {
      answer.textContent = `${shown}${enough.signal.aborted ? "\n(still open after five seconds)" : String(error)}`;
    } finally {
      clearTimeout(timer);
    }
  }

  section.append(h("details", {}, h("summary", {}, "Try it"),
    h("form", { class: "try", submit: send },
      ...inputs.map((/** @type {any} */ { parameter, field }) => h("label", {}, `${parameter.name} (${parameter.in}${parameter.required ? ", required" : ""})`, field)),
      ...(text ? [h("label", {}, "Body", text)] : []),
      h("button", {}, "Send")),
    answer));
}

/** An answer in JSON, laid out. @param {string} text */
function pretty(text) {
  const [head = "", ...rest] = text.split("\n\n");
  try {
    return `${head}\n\n${JSON.stringify(JSON.parse(rest.join("\n\n")), null, 2)}`;
  } catch {
    return text;
  }
}

for (const section of document.querySelectorAll("section[data-path]")) addForm(/** @type {HTMLElement} */ (section));
