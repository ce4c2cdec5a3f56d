// The buttons that make trouble. Each sends real requests; what the page shows
// of them comes from the server and from their answers.

import { connect, show } from "./timeline.js";
import { troubles, resume } from "./troubles.js";

connect();

const form = document.querySelector("form.order");
const buttons = [...document.querySelectorAll("[data-trouble]")];
const verdict = document.querySelector("[data-verdict]");

if (form) {
  for (const button of buttons) {
    button.disabled = false;
    button.addEventListener("click", () => press(button));
  }
  const again = resume();
  if (again) follow(again.name, again.round, again.done);
}

// order reads what the form would send now.
function order() {
  const data = new FormData(form);
  return { item: data.get("item") ?? "mug", quantity: Math.max(1, Number(data.get("quantity")) || 1) };
}

function press(button) {
  const name = button.querySelector("b").textContent;
  const round = "r" + Array.from(crypto.getRandomValues(new Uint8Array(6)), (b) => b.toString(16).padStart(2, "0")).join("");
  return follow(name, round, () => troubles[button.dataset.trouble]({ name, round, order: order() }));
}

// follow shows a round while it goes on, and what came of it.
async function follow(name, round, go) {
  for (const b of buttons) {
    b.disabled = true;
    b.setAttribute("aria-pressed", b.querySelector("b").textContent === name);
  }
  say("");
  show(round);
  try {
    const { text, bad } = await go();
    say(text, bad);
  } catch (err) {
    say(`That did not work: ${err.message}`, true);
  }
  for (const b of buttons) b.disabled = false;
  await refreshBook();
}

function say(text, bad = false) {
  verdict.textContent = text;
  verdict.classList.toggle("bad", bad);
}

// refreshBook shows the orders that the server really has.
async function refreshBook() {
  const orders = await (await fetch("/orders")).json();
  document.querySelector("[data-order-count]").textContent = orders.length;
  document.querySelector("[data-order-word]").textContent = orders.length === 1 ? "order exists" : "orders exist";
  const list = document.querySelector("[data-orders]");
  const title = (item) => document.querySelector(`#item-${CSS.escape(item)}`)?.closest("label").querySelector("b").textContent ?? item;
  const lines = orders.slice(-5).reverse().map((o) => {
    const li = document.createElement("li");
    const a = document.createElement("a");
    a.href = `/orders/${o.order_no}`;
    a.textContent = o.order_no;
    const what = document.createElement("span");
    what.textContent = `${o.quantity} × ${title(o.item)}`;
    li.append(a, what);
    return li;
  });
  if (lines.length) list.replaceChildren(...lines);
}
