// The page where a person allows an MCP client to act for them, or does not.

import { call, words } from "./api.js";
import { bdi, byId, h } from "./dom.js";
import { asPerson, identity, person, signIn } from "./session.js";

/** What the client asks for, as it stands in the address. */
const asked = Object.fromEntries(new URLSearchParams(location.search));

/** @param {unknown} error */
const fail = (error) => { byId("note").textContent = words(error); };

/** @param {boolean} allow */
async function decide(allow) {
  try {
    const body = { ...asked, allow };
    const { redirect_to } = await (allow ? asPerson : call)("/oauth/decision", { method: "POST", body });
    location.assign(redirect_to);
  } catch (error) {
    fail(error);
    void show();
  }
}

async function show() {
  try {
    const { client_name, redirect_host } = await call("/oauth/client", { method: "POST", body: asked });
    const who = identity();
    byId("sign-in").hidden = who !== null;
    byId("asked").replaceChildren(
      h("p", {}, h("strong", {}, bdi(client_name)), " wants to take part in rooms for you: to see your rooms, read, post, react, and change the rules of rooms that you own."),
      h("p", {}, "The answer goes to ", h("strong", {}, bdi(redirect_host)), ". The name is what the program calls itself. You can end this under “Sessions” at any time."),
      ...(who ? [h("p", {}, "You are signed in as ", bdi(who.name ?? who.userId), ".")] : []),
      h("p", { class: "row" },
        ...(who ? [h("button", { type: "button", class: "primary", id: "allow", click: () => void decide(true) }, "Allow")] : []),
        h("button", { type: "button", id: "deny", click: () => void decide(false) }, "Do not allow")),
    );
  } catch (error) {
    byId("asked").replaceChildren();
    fail(error);
  }
}

byId("sign-in").addEventListener("submit", async (event) => {
  event.preventDefault();
  const link = /** @type {HTMLInputElement} */ (byId("link"));
  const jwt = new URLSearchParams(link.value.trim().split("#")[1] ?? "").get("user_jwt");
  byId("note").textContent = "";
  if (!jwt) return fail(new Error("This is no sign-in link."));
  try {
    await signIn(jwt);
    link.value = "";
    await show();
  } catch (error) {
    fail(error);
  }
});
person.addEventListener("changed", () => void show());
void show();
