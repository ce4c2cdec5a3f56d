// What each button does. A round is one press; its requests carry its name, so
// that they are drawn together.

const begun = "once-fired:refresh"; // in sessionStorage: the round that a reload has cut off
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// draw gets a submit token, as a page does once when it loads.
async function draw(form = "order", instance = "") {
  const query = new URLSearchParams(instance ? { form, instance } : { form });
  const answer = await fetch(`/submit-token?${query}`);
  return (await answer.json()).token;
}

// request is what submits the round's order.
function request({ name, round, order }, { delay = "900ms", cut = "" } = {}) {
  const headers = {
    "Content-Type": "application/json",
    Accept: "application/json",
    "X-Demo-Round": round,
    "X-Demo-Trouble": name,
    "X-Demo-Delay": delay,
  };
  if (cut) headers["X-Demo-Cut"] = cut;
  return { method: "POST", headers, body: JSON.stringify(order) };
}

// send submits the order under a token, by hand and once.
async function send(token, round, how) {
  const init = request(round, how);
  init.headers["X-Submit-Token"] = token;
  return read(await fetch("/orders", init));
}

async function read(response) {
  return { status: response.status, text: await response.text() };
}

// client is the browser client's form for orders that no form element sends. It
// draws the token, keeps it over a reload, and sends again what gets no answer.
const client = () => globalThis.submitOnce.form("");

// compare says what several answers have in common.
function compare(answers) {
  const equal = answers.every((a) => a.status === answers[0].status && a.text === answers[0].text);
  const number = numberOf(answers[0]);
  return equal
    ? { text: `All ${answers.length} answers are equal, byte for byte: ${answers[0].status} and order ${number}.` }
    : { text: `The answers differ: ${answers.map((a) => a.status).join(", ")}.`, bad: true };
}

const numberOf = (answer) => JSON.parse(answer.text).order_no;

// spread sends n times under one token, apart by so many ms.
async function spread(n, apart, round, how) {
  const token = await draw();
  const answers = [];
  for (let i = 0; i < n; i++) {
    if (i) await pause(apart);
    answers.push(send(token, round, how));
  }
  return compare(await Promise.all(answers));
}

export const troubles = {
  double: (round) => spread(2, 150, round),
  five: (round) => spread(5, 0, round),
  slow: (round) => spread(4, 700, round, { delay: "4s" }),

  async cut(round) {
    await client().renew();
    let retries = 0;
    const count = () => retries++;
    document.addEventListener("submitonce:retry", count);
    try {
      const answer = await read(await client().fetch("/orders", request(round, { cut: round.round })));
      const who = retries ? "the browser client" : "the browser itself";
      return { text: `The line went dead after the order was made, and ${who} sent it again. It got the first answer: ${answer.status} and order ${numberOf(answer)}.` };
    } finally {
      document.removeEventListener("submitonce:retry", count);
    }
  },

  async refresh(round) {
    await client().renew();
    client().fetch("/orders", request(round, { delay: "1500ms" })).catch(() => {}); // the reload aborts it
    sessionStorage.setItem(begun, JSON.stringify(round));
    await pause(600);
    location.reload();
    return new Promise(() => {});
  },

  async tab(round) {
    const cart = "cart-" + round.round;
    const channel = new BroadcastChannel(cart);
    const hear = (word, within) =>
      new Promise((done, fail) => {
        setTimeout(() => fail(new Error("the second tab did not open; allow it for this page")), within);
        channel.addEventListener("message", (e) => e.data.word === word && done(e.data));
      });
    const [ready, done] = [hear("ready", 8000), hear("done", 20000)];
    done.catch(() => {});
    window.open(`/?cart=${cart}`, "_blank", "noopener");
    const token = await draw("checkout", cart);
    await ready;
    channel.postMessage({ word: "go", round });
    const mine = await send(token, round, { delay: "1500ms" });
    const { answer } = await done;
    channel.close();
    const { text, bad } = compare([mine, answer]);
    return { text: `Two tabs, one cart. ${text}`, bad };
  },

  async correct(round) {
    const token = await draw();
    const refused = await send(token, { ...round, order: { ...round.order, quantity: 0 } });
    await pause(500);
    const answer = await send(token, round);
    return { text: `First ${refused.status}: “${JSON.parse(refused.text).errors.quantity}” Corrected and sent with the same token: ${answer.status} and order ${numberOf(answer)}.` };
  },

  async mistake(round) {
    const answers = [];
    for (let i = 0; i < 3; i++) {
      if (i) await pause(150);
      answers.push(send(await draw(), round)); // this is the mistake: a token is for a page, not for a click
    }
    const numbers = new Set((await Promise.all(answers)).map(numberOf));
    return { text: `${numbers.size} orders. A page that draws a new token for each click protects nothing; the server's log warns of it.`, bad: true };
  },
};

// resume goes on with what was begun before this page was loaded: an order that
// a refresh has cut off, or one whose first tab is waiting for this second one.
export function resume() {
  const stored = sessionStorage.getItem(begun);
  if (stored) {
    sessionStorage.removeItem(begun);
    const round = JSON.parse(stored);
    return {
      ...round,
      done: async () => {
        const answer = await read(await client().fetch("/orders", request(round, { delay: "1500ms" })));
        return { text: `The page was reloaded in mid-order and sent it again, with the token that the browser client had kept: ${answer.status} and order ${numberOf(answer)}.` };
      },
    };
  }
  const cart = new URLSearchParams(location.search).get("cart");
  if (cart && !performance.getEntriesByType("navigation").some((n) => n.type !== "navigate")) {
    return { name: "Second tab", round: cart.slice("cart-".length), done: () => second(cart) };
  }
}

// second is the second tab's part. It acts only when the first one says so.
async function second(cart) {
  const channel = new BroadcastChannel(cart);
  const go = new Promise((done, fail) => {
    setTimeout(() => fail(new Error("the first tab is gone")), 8000);
    channel.addEventListener("message", (e) => e.data.word === "go" && done(e.data.round));
  });
  const token = await draw("checkout", cart);
  channel.postMessage({ word: "ready" });
  const answer = await send(token, await go, { delay: "1500ms" });
  channel.postMessage({ word: "done", answer });
  channel.close();
  return { text: `This is the second tab. It sent the same cart and got the same answer: ${answer.status} and order ${numberOf(answer)}.` };
}
