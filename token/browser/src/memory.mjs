import { random } from "./settings.mjs";

// What a form knows of its token is kept in sessionStorage, so that a refresh of
// the page, or Back, finds the token that has been sent. Pages that are not
// allowed any storage remember until they are left.
const PREFIX = "submitonce:";
const memory = new Map();

export function recall(key) {
  if (memory.has(key)) return { ...memory.get(key) };
  try {
    return JSON.parse(sessionStorage.getItem(PREFIX + key));
  } catch {
    return null;
  }
}

export function remember(key, record) {
  try {
    sessionStorage.setItem(PREFIX + key, JSON.stringify(record));
    memory.delete(key);
  } catch {
    memory.set(key, { ...record });
  }
}

// pageId names this load of the page. A record says in whose hands it is, and
// leaves them when its page does ("pagehide"). One that is in the hands of
// another page is either a copy, because the tab has been duplicated, or was
// orphaned by a crash.
export const pageId = random();

// arrival is how the visitor came to what is shown now. Whoever comes back, by
// Back, Forward or a reload, may mean what he has sent already; whoever comes by
// a link means the next submit.
export let arrival = { id: pageId, back: cameBack() };

export function arrive(back) {
  arrival = { id: random(), back };
}

function cameBack() {
  const type = typeof performance === "object" && performance.getEntriesByType("navigation")[0]?.type;
  return type === "reload" || type === "back_forward";
}

// The pages of this site in other tabs are asked whether they hold a record.
// (Web Locks would do, but need https, and keep a page out of the cache that
// Back is served from. A message to an open channel throws a page out of it, so
// the channel is closed while the page is not shown.)
let channel = null;
let holds = () => false;
const questions = new Map(); // id of a record: what to call when another page holds it

// listen lets others know what this page holds, as holdsRecord tells.
export function listen(holdsRecord) {
  holds = holdsRecord;
  try {
    channel ??= new BroadcastChannel("submitonce");
  } catch {
    return; // none here: a duplicated tab is found out by the server's refusal
  }
  channel.onmessage = ({ data }) => {
    if (data?.ask && holds(data.ask)) channel.postMessage({ held: data.ask });
    if (data?.held) questions.get(data.held)?.(true);
  };
}

export function stopListening() {
  channel?.close();
  channel = null;
}

// askOthers resolves to whether another live page holds the record: to true as
// soon as one says so, to false after wait milliseconds of silence.
export function askOthers(id, wait) {
  if (!channel) return Promise.resolve(false);
  return new Promise((resolve) => {
    const answer = (held) => {
      clearTimeout(timer);
      questions.delete(id);
      resolve(held);
    };
    const timer = setTimeout(answer, wait, false);
    questions.set(id, answer);
    channel.postMessage({ ask: id });
  });
}
