// Draws what the server's journal tells of: one row a request, by its clock.

const submits = new Map(); // by id
let ahead = 0; // of the server's clock, in ms
let chosen = null; // the round that the page is at; else the latest one
let drawing = false;

const figure = document.getElementById("timeline");
const rows = figure?.querySelector(".rows");
const axis = figure?.querySelector(".axis");
const onlyOrder = figure?.closest("[data-order]")?.dataset.order;

// show follows one round, and what a person calls it.
export function show(round) {
  chosen = round;
  draw();
}

// connect hears of changes while the page can be seen. A hidden page lets go of
// its connection, of which a browser has but six for each server.
export function connect() {
  if (!figure) return;
  let source;
  const listen = () => {
    source?.close();
    if (document.hidden) return;
    source = new EventSource("/demo/live");
    source.addEventListener("clock", (e) => (ahead = JSON.parse(e.data) - Date.now()));
    source.addEventListener("past", (e) => {
      submits.clear();
      for (const s of JSON.parse(e.data)) submits.set(s.id, s);
      draw();
    });
    source.addEventListener("submit", (e) => {
      const s = JSON.parse(e.data);
      submits.set(s.id, s);
      draw();
    });
  };
  document.addEventListener("visibilitychange", listen);
  addEventListener("pagehide", () => source?.close());
  addEventListener("pageshow", (e) => e.persisted && listen());
  listen();
  draw();
}

const groupOf = (s) => s.round || s.group || "id" + s.id;

// current returns the submits to draw, in the order in which they came.
function current() {
  const all = [...submits.values()].sort((a, b) => a.id - b.id);
  if (onlyOrder) {
    const key = all.find((s) => s.order_no === onlyOrder)?.key;
    return all.filter((s) => key && s.key === key).slice(-12);
  }
  const group = chosen ?? (all.length ? groupOf(all.at(-1)) : null);
  return all.filter((s) => groupOf(s) === group).slice(-12);
}

function draw() {
  if (drawing || !figure) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    if (paint(current())) draw();
  });
}

// paint draws list and reports whether any of it is still going on.
function paint(list) {
  const now = Date.now() + ahead;
  score(list);
  if (!list.length) {
    rows.innerHTML = `<li class="empty">${onlyOrder ? "This order's requests went to another process, or long ago." : "Press a button, or order something."}</li>`;
    axis.replaceChildren();
    return false;
  }
  const from = list[0].began;
  const end = Math.max(...list.map((s) => s.ended || now));
  const span = Math.max((end - from) * 1.03, 12);
  const at = (t) => ((t - from) / span) * 100;

  rows.replaceChildren(...list.map((s, i) => row(s, i, at, now)));
  ticks(span);
  return list.some((s) => !s.ended);
}

function row(s, i, at, now) {
  const li = document.createElement("li");
  const track = element("div", "track");
  const bar = (kind, a, b) => {
    const e = element("i", "bar " + kind);
    e.style.left = `min(${at(a)}%, 100% - 9px)`;
    e.style.width = `${Math.max(at(b) - at(a), 0)}%`;
    track.append(e);
  };
  const end = s.ended || now;
  const ran = Boolean(s.run_began);
  if (s.waited || !ran) bar("wait", s.began, s.run_began || end);
  if (ran) bar("run", s.run_began, s.run_ended || now);
  if (s.replayed) bar("replay", end, end);
  if (s.refused) bar("refused", end, end);
  if (s.cut && s.ended) bar("lost", end, end);
  if (s.left && s.left < end) {
    const tick = element("i", "left");
    tick.style.left = at(s.left) + "%";
    tick.title = "the browser hung up";
    track.append(tick);
  }
  const what = element("span", "what");
  what.append(...describe(s, now));
  li.append(element("span", "n", i + 1), track, what);
  return li;
}

function describe(s, now) {
  const ms = (t) => (t >= 9950 ? `${(t / 1000).toFixed(0)} s` : t >= 995 ? `${(t / 1000).toFixed(1)} s` : `${Math.max(1, Math.round(t))} ms`);
  const took = ms((s.ended || now) - s.began);
  const strong = (text) => element("b", "", text);
  if (!s.ended) return s.run_began ? [strong("runs"), ` ${took}`] : [strong("waits"), ` ${took}`];
  if (s.refused) return [strong(s.status), ` ${s.refused}`];
  const how = s.run_began ? "ran" : s.waited ? "waited" : "";
  const then = s.replayed ? "replayed" : "";
  if (s.cut) return [`${how || then}, `, strong("answer lost")];
  if (s.left && s.left < s.ended) return [`${how || then}, `, strong("hung up")];
  return [strong(s.status), ` ${[how, then].filter(Boolean).join(", ")}`, ` ${took}`];
}

function score(list) {
  const runs = list.filter((s) => s.run_began).length;
  const orders = new Set(list.map((s) => s.order_no).filter(Boolean)).size;
  const set = (name, n, one, many) => {
    const count = figure.querySelector(`[data-count=${name}]`);
    if (count.textContent !== String(n)) count.textContent = n;
    const word = figure.querySelector(`[data-word=${name}]`);
    const text = n === 1 ? one : many;
    if (word.textContent !== text) word.textContent = text;
  };
  set("requests", list.length, "request", "requests");
  set("runs", runs, "handler run", "handler runs");
  set("orders", orders, "order", "orders");
  const name = figure.querySelector("[data-round-name]");
  const text = list[0]?.trouble || (list.length ? (list[0].key ? "from the form or the terminal" : "") : "");
  if (name.textContent !== text) name.textContent = text;
}

function ticks(span) {
  const most = axis.clientWidth < 420 ? 3.5 : 6;
  const step = [5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 30000].find((t) => span / t <= most) ?? 60000;
  const marks = [];
  for (let t = 0; t <= span; t += step) {
    const i = element("i");
    i.style.left = (t / span) * 100 + "%";
    i.dataset.at = t >= 1000 ? `${t / 1000} s` : t ? `${t} ms` : "0";
    marks.push(i);
  }
  axis.replaceChildren(...marks);
}

function element(tag, kind = "", text = "") {
  const e = document.createElement(tag);
  if (kind) e.className = kind;
  if (text !== "") e.textContent = text;
  return e;
}
