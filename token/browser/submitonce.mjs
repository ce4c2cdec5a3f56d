// submitonce — one submit, one outcome. MIT license.
// Made from token/browser/src, which has the comments:
// https://github.com/submitonce/submitonce
const scriptURL = import.meta.url;
const HEADER = "X-Submit-Token";
const FIELD = "submit_token";
const ATTRIBUTE = "data-submit-once";
const FORMS = `form[${ATTRIBUTE}]`;
const settings = {
  endpoint: "/submit-token", // where tokens come from: token.Issuer.Handler
  status: "", // where to ask how a token stands: replay.Guard.Status; "" is endpoint + "/status"
  credentials: "same-origin", // of both; "include" if they are of another origin
  tries: 5, // how often a request is sent before the caller hears of a failure
  patience: 60_000, // milliseconds within which the last try begins
};
function configure(options) {
  for (const [name, value] of Object.entries(options)) {
    if (!Object.hasOwn(settings, name)) throw new TypeError(`submitOnce.configure: no setting ${name}`);
    if (typeof value !== typeof settings[name]) {
      throw new TypeError(`submitOnce.configure: ${name} must be a ${typeof settings[name]}`);
    }
    settings[name] = value;
  }
}
const script = typeof document === "object" ? [...document.scripts].find((s) => s.src && s.src === scriptURL) : null;
if (script?.dataset.endpoint) settings.endpoint = script.dataset.endpoint;
if (script?.dataset.status) settings.status = script.dataset.status;
function endpointsOf(element) {
  const endpoint = element?.getAttribute(`${ATTRIBUTE}-endpoint`) || settings.endpoint;
  const status = element?.getAttribute(`${ATTRIBUTE}-status`) || settings.status;
  return { endpoint, status: status || endpoint.replace(/[?#].*/s, "") + "/status" };
}
function random() {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (b) => b.toString(16).padStart(2, "0")).join("");
}
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
function hash(codes) {
  let a = 0x811c9dc5;
  let b = 0x9747b28c;
  for (let i = 0; i < codes.length; i++) {
    const c = typeof codes === "string" ? codes.charCodeAt(i) : codes[i];
    a = Math.imul(a ^ c, 0x01000193);
    b = Math.imul(b ^ c, 0x5bd1e995);
    b ^= b >>> 15;
  }
  return (a >>> 0).toString(36) + "-" + (b >>> 0).toString(36) + "-" + codes.length.toString(36);
}
function entries(data) {
  const all = [];
  for (const [name, value] of data) {
    if (name !== FIELD) all.push(typeof value === "string" ? [name, value] : [name, value.name, value.type, value.size]);
  }
  return all;
}
function digestOfForm(element, submitter, data = formData(element, submitter), path = "") {
  const target = submitter?.getAttribute("formaction") || element.getAttribute("action") || "";
  const sorted = entries(data).map((e) => JSON.stringify(e)).sort();
  return hash(JSON.stringify([methodOf(element, submitter), target, path, sorted]));
}
function methodOf(element, submitter) {
  return (submitter?.getAttribute("formmethod") || element.getAttribute("method") || "get").toLowerCase();
}
function formAround(element) {
  if (element instanceof HTMLFormElement) return element; // a field may be named "form"
  return element?.form ?? element?.closest?.("form") ?? null;
}
let ownReading = false;
function formData(element, submitter) {
  ownReading = true;
  try {
    const data = new FormData(element);
    const name = submitter?.getAttribute("name");
    if (name) data.append(name, submitter.getAttribute("value") ?? "");
    return data;
  } finally {
    ownReading = false;
  }
}
function digestOfCall(method, url, body) {
  return hash(JSON.stringify([method, url, describe(body)]));
}
function describe(body) {
  if (body instanceof FormData || body instanceof URLSearchParams) return entries(body);
  if (body instanceof Blob) return [body.name ?? "", body.type, body.size];
  if (body instanceof ArrayBuffer) return hash(new Uint8Array(body));
  if (ArrayBuffer.isView(body)) return hash(new Uint8Array(body.buffer, body.byteOffset, body.byteLength));
  return String(body ?? "");
}
function withoutField(body) {
  if (body instanceof URLSearchParams && body.has(FIELD)) {
    const rest = new URLSearchParams(body);
    rest.delete(FIELD);
    return rest;
  }
  if (body instanceof FormData && body.has(FIELD)) {
    const rest = new FormData();
    for (const [name, value] of body) {
      if (name !== FIELD) rest.append(name, value);
    }
    return rest;
  }
  return body;
}
const PREFIX = "submitonce:";
const memory = new Map();
function recall(key) {
  if (memory.has(key)) return { ...memory.get(key) };
  try {
    return JSON.parse(sessionStorage.getItem(PREFIX + key));
  } catch {
    return null;
  }
}
function remember(key, record) {
  try {
    sessionStorage.setItem(PREFIX + key, JSON.stringify(record));
    memory.delete(key);
  } catch {
    memory.set(key, { ...record });
  }
}
const pageId = random();
let arrival = { id: pageId, back: cameBack() };
function arrive(back) {
  arrival = { id: random(), back };
}
function cameBack() {
  const type = typeof performance === "object" && performance.getEntriesByType("navigation")[0]?.type;
  return type === "reload" || type === "back_forward";
}
let channel = null;
let holds = () => false;
const questions = new Map(); // id of a record: what to call when another page holds it
function listen(holdsRecord) {
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
function stopListening() {
  channel?.close();
  channel = null;
}
function askOthers(id, wait) {
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
const DONE = "done"; // the submit has its outcome; the token is used up
const REFUSED = "refused"; // not an outcome: correct it and send it again, with the same token
const UNKNOWN = "unknown"; // may have been carried out or not: the same token
const RETRY = "retry"; // as unknown, and worth trying again soon
const UNCLAIMED = "unclaimed"; // too old, and certainly never used: a new token
const FOREIGN = "foreign"; // of another session: never used in this one
const STALE = "stale"; // used for something else, or so long ago that nobody knows
function verdictOn(status, problem, redirected = false) {
  switch (codeOf(problem)) {
    case "expired-token":
      return problem.unclaimed ? UNCLAIMED : STALE;
    case "invalid-token":
      return FOREIGN;
    case "payload-mismatch":
      return STALE;
    case "response-not-kept":
    case "unreadable-record":
      return DONE;
  }
  if (problem?.retryable === true) return RETRY;
  if (redirected || (status >= 200 && status < 400) || status === 0) return DONE;
  if (status === 502 || status === 503 || status === 504) return RETRY;
  return status < 500 ? REFUSED : UNKNOWN;
}
function codeOf(problem) {
  const type = problem?.type;
  return typeof type === "string" && type.includes("/docs/problems.md#") ? type.slice(type.indexOf("#") + 1) : "";
}
async function problemIn(response) {
  if (!response.headers.get("Content-Type")?.startsWith("application/problem+json")) return null;
  return response.clone().json().catch(() => null);
}
function retryAfter(value) {
  if (!value) return 0;
  const ms = /^\s*\d+\s*$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return ms > 0 ? ms : 0;
}
function backOff(n, atLeast = 0) {
  return atLeast + Math.random() * Math.min(10_000, 300 * 2 ** n);
}
async function drawToken(element, name, instance) {
  const url = new URL(endpointsOf(element).endpoint, document.baseURI);
  if (name) url.searchParams.set("form", name);
  if (instance) url.searchParams.set("instance", instance);
  for (let n = 1; ; n++) {
    const response = await ask(url).catch((error) => ({ error }));
    if (response.ok) {
      const { token, expires_at: expires } = await response.json();
      if (typeof token !== "string") throw new TypeError(`submitOnce: no token from ${url.pathname}`);
      const now = Date.parse(response.headers.get("Date")) || Date.now();
      const lifetime = Date.parse(expires) - now - 5_000; // two clocks of seconds, and the way
      return { token, check: Date.now() + (lifetime > 0 ? lifetime : 0) };
    }
    const worthIt = response.error || verdictOn(response.status, null) === RETRY || response.status === 500;
    const delay = backOff(n, retryAfter(response.headers?.get("Retry-After")));
    if (!worthIt || n >= settings.tries || delay > settings.patience) {
      throw response.error ?? new Error(`submitOnce: the token endpoint ${url.pathname} answered ${response.status}`);
    }
    await pause(delay);
  }
}
async function howStands(element, token) {
  try {
    const response = await ask(endpointsOf(element).status, { [HEADER]: token });
    if (response.ok) {
      const { state } = await response.json().catch(() => ({}));
      return ["free", "pending", "done"].includes(state) ? state : "unasked";
    }
    const problem = await problemIn(response);
    if (!problem && [404, 405, 501].includes(response.status)) return "unasked";
    const verdict = verdictOn(response.status, problem);
    return [UNCLAIMED, FOREIGN, STALE].includes(verdict) ? verdict : UNKNOWN;
  } catch {
    return UNKNOWN;
  }
}
function ask(url, headers = {}) {
  return fetch(url, {
    headers: { Accept: "application/json, application/problem+json", ...headers },
    credentials: settings.credentials,
    cache: "no-store",
    signal: AbortSignal.timeout(15_000), // these answers cost the server next to nothing
  });
}
const OURS = `${ATTRIBUTE}-field`;
function fieldOf(element) {
  return element.querySelector(`input[name="${FIELD}"]`);
}
function serverToken(element) {
  const field = fieldOf(element);
  return field && !field.hasAttribute(OURS) ? field.value : "";
}
function fill(element, token) {
  const field = fieldOf(element);
  if (!field) return;
  if (field.value !== token) field.value = token;
  field.setAttribute(OURS, "");
}
const FRESH = "fresh"; // not sent, or sent and refused
const SENT = "sent"; // its outcome is not known
const USED = "used"; // it has its outcome, which the same content gets again
const DEAD = "dead"; // refused for good; only the page or a reload goes on
const ASK_AFTER = 600_000; // ms; when to ask about a token of unknown lifetime
class Submission {
  record = null; // the token and what is known of it; kept in sessionStorage
  spare = ""; // a token that the server put into the page and that is not in use
  element = null; // the form element, if there is one
  flight = null; // the request that a script, not the browser, has under way
  held = null; // a submit that waits for its token
  answered = false; // this page has seen the outcome of the token
  passed = ""; // the digest of the submit that was last let through
  read = ""; // the digest of what a script last read out of the form
  #queue = Promise.resolve();
  #waiting = 0;
  constructor(key, name, instance) {
    this.key = key;
    this.name = name;
    this.instance = instance;
  }
  enqueue(task) {
    this.#waiting++;
    const done = this.#queue.then(task).finally(() => this.#waiting--);
    this.#queue = done.catch(() => {});
    return done;
  }
  passes(digest, by) {
    if (!this.record || this.#waiting) return false;
    if (this.flight?.by === by && this.flight.digest !== digest) return false;
    switch (this.record.phase) {
      case FRESH:
        return Date.now() < this.record.check;
      case DEAD:
        return true; // the server says why it is refused
    }
    return !this.#changed(digest, by);
  }
  #changed(digest, by) {
    return this.record.by === by && this.record.digest !== digest;
  }
  async prepare(digest, by) {
    let waited = false;
    while (this.flight?.by === by && this.flight.digest !== digest) {
      waited = true;
      await this.flight.over;
    }
    await this.ready();
    if (this.record.phase === SENT && this.#changed(digest, by)) await this.learn();
    if (this.record.phase === USED && this.#changed(digest, by)) {
      if (waited && !this.tell("changed", {}, true)) throw new DOMException("The page has cancelled the submit", "AbortError");
      await this.draw();
    }
    if (this.record.phase === FRESH && Date.now() >= this.record.check) await this.inspect();
  }
  async ready() {
    if (this.record) return;
    const stored = recall(this.key);
    const kept = stored && (await this.#adopt(stored));
    if (!kept) return this.draw();
    if (this.spare === stored.token) this.spare = "";
    this.keep(stored);
    if (!this.instance) this.#keepIfAlone(stored);
  }
  async #adopt(stored) {
    const elsewhere = stored.owner && stored.owner !== pageId && !this.instance;
    if (elsewhere && (await askOthers(stored.id, 250))) return false;
    const back = arrival.back || stored.arrival === arrival.id;
    switch (stored.phase) {
      case FRESH:
        return Date.now() < stored.check && (!this.spare || this.spare === stored.token);
      case USED:
        return back;
      case SENT:
        return this.#review(stored, back);
    }
    return false;
  }
  async #review(record, back) {
    switch (await howStands(this.element, record.token)) {
      case "done":
        record.phase = USED;
        return back;
      case "free":
        record.phase = FRESH;
        return !this.spare || this.spare === record.token;
      case "unasked":
        return back; // nobody can say; who comes by a link gets a form that works
      case UNCLAIMED:
      case FOREIGN:
      case STALE:
        return false;
    }
    return true;
  }
  async #keepIfAlone(record) {
    const held = await askOthers(record.id, 2_000);
    if (held && this.record === record && record.phase === FRESH) this.enqueue(() => this.draw()).catch(() => {});
  }
  comeBack() {
    const stored = recall(this.key);
    if (!this.record) return;
    if (stored?.token === this.record.token) this.record = stored;
    this.answered = false;
    this.keep(this.record);
    if (this.record.phase !== SENT) return;
    this.enqueue(async () => {
      const record = this.record;
      if (await this.#review(record, true)) this.keep(record);
      else await this.draw();
    }).catch(() => {});
  }
  async learn() {
    const record = this.record;
    const end = Date.now() + settings.patience;
    for (let wait = 100; ; wait = Math.min(wait * 1.5, 2_000)) {
      const state = await howStands(this.element, record.token);
      if (this.record !== record || record.phase !== SENT) return;
      if (state === "pending" && Date.now() < end) {
        await pause(wait);
        continue;
      }
      if (state === "done") record.phase = USED;
      if (state === "free") record.phase = FRESH;
      if (state === UNCLAIMED) return this.draw();
      return this.keep(record);
    }
  }
  async inspect() {
    const state = await howStands(this.element, this.record.token);
    if (state === UNCLAIMED || state === FOREIGN) return this.draw();
    this.record.check = Date.now() + ASK_AFTER;
    this.keep(this.record);
  }
  async draw() {
    const token = this.spare;
    this.spare = "";
    try {
      const drawn = token ? { token, check: Date.now() + ASK_AFTER } : await drawToken(this.element, this.name, this.instance);
      this.answered = false;
      this.read = "";
      this.keep({ id: random(), ...drawn, phase: FRESH, digest: "", by: "" });
    } catch (error) {
      this.tell("error", { error });
      throw error;
    }
    this.tell("ready", {});
  }
  renew() {
    return this.enqueue(() => (this.record?.phase === USED || this.record?.phase === DEAD ? this.draw() : this.ready()));
  }
  touch() {
    if (!this.answered || this.flight || this.record?.phase !== USED) return;
    this.answered = false;
    this.record.digest = ""; // if no token can be had now, it is drawn at the submit
    this.renew().catch(() => {});
  }
  begin(digest, by) {
    const flight = { digest, by, record: this.record, wasFresh: this.record.phase === FRESH };
    flight.over = new Promise((resolve) => (flight.land = resolve));
    this.flight = flight;
    this.sent(digest, by);
    this.showBusy();
    return flight;
  }
  sent(digest, by) {
    if (this.record.phase === USED || this.record.phase === DEAD) return;
    Object.assign(this.record, { phase: SENT, digest, by });
    this.save();
  }
  end(flight, verdict) {
    const { record, digest, by } = flight;
    if (verdict === DONE) {
      Object.assign(record, { phase: USED, digest, by });
      this.answered = true;
    } else if (verdict === REFUSED && flight.wasFresh) {
      record.phase = FRESH;
    } else if (verdict === STALE) {
      record.phase = DEAD;
    }
    if (this.record === record) this.save();
    if (this.flight === flight) this.flight = null;
    this.showBusy();
    flight.land();
  }
  keep(record) {
    this.record = record;
    this.save();
    if (this.element) fill(this.element, record.token);
  }
  save(owner = pageId) {
    if (this.record) remember(this.key, Object.assign(this.record, { owner, arrival: arrival.id }));
  }
  showBusy() {
    if (this.flight || this.held) this.element?.setAttribute("aria-busy", "true");
    else this.element?.removeAttribute("aria-busy");
  }
  tell(type, detail, cancelable = false) {
    const target = this.element?.isConnected ? this.element : document;
    detail.name = this.name;
    return target.dispatchEvent(new CustomEvent(`submitonce:${type}`, { bubbles: true, cancelable, detail }));
  }
}
async function send(submission, input, init = {}) {
  const call = await callOf(input, init);
  if (["GET", "HEAD", "OPTIONS"].includes(call.method)) return fetch(input, init);
  const flight = await submission.enqueue(() => board(submission, call));
  const response = await orAborted(flight.response, call.signal);
  return response.clone(); // whoever else has joined reads it, too
}
async function board(submission, call) {
  const { flight: other } = submission;
  if (other?.response && other.digest === call.digest) {
    if (!other.signal?.aborted) return other;
    await other.over;
  }
  await submission.prepare(call.digest, "call");
  call.signal?.throwIfAborted();
  const flight = submission.begin(call.digest, "call");
  flight.signal = call.signal;
  flight.response = persist(submission, call, flight);
  flight.response.catch(() => {}); // whoever has called hears of it
  return flight;
}
async function persist(submission, call, flight) {
  const end = Date.now() + settings.patience;
  let replaced = false;
  let verdict = UNKNOWN;
  try {
    for (let n = 1; ; n++) {
      let response = null;
      let problem = null;
      let failure = null;
      try {
        response = await fetch(call.request(flight.record.token));
        problem = await problemIn(response);
        verdict = verdictOn(response.status, problem, response.redirected);
      } catch (error) {
        if (call.signal?.aborted) throw error;
        failure = error;
        verdict = RETRY;
      }
      switch (verdict) {
        case UNCLAIMED: // certain never to have been used
        case FOREIGN: // nor this, unless it went out before, when it may have been the session's own
          if (!replaced && (verdict === UNCLAIMED || flight.wasFresh)) {
            replaced = true;
            await submission.draw();
            flight.record = submission.record;
            flight.wasFresh = true;
            submission.sent(call.digest, "call");
            continue;
          }
          verdict = STALE;
          break;
        case UNKNOWN:
          flight.wasFresh = false;
          break;
        case RETRY: {
          flight.wasFresh = false;
          const delay = backOff(n, retryAfter(response?.headers.get("Retry-After")));
          if (n >= settings.tries || Date.now() + delay > end) break;
          submission.tell("retry", { attempt: n, delay, status: response?.status ?? 0, error: failure });
          await orAborted(pause(delay), call.signal);
          continue;
        }
      }
      if (failure) throw failure;
      conclude(submission, flight, verdict, response, problem);
      return response;
    }
  } catch (error) {
    submission.end(flight, UNKNOWN);
    if (!call.signal?.aborted) submission.tell("error", { error });
    throw error;
  }
}
function conclude(submission, flight, verdict, response, problem) {
  submission.end(flight, verdict);
  if (verdict === DONE) {
    const replayed = problem !== null || response.headers.get("Idempotent-Replayed") === "true";
    submission.tell("success", withResponse({ replayed }, response));
  } else if (verdict === STALE) {
    submission.tell("stale", withResponse({ reason: codeOf(problem) }, response));
  } else if (verdict === RETRY) {
    submission.tell("error", withResponse({}, response));
  }
}
function withResponse(detail, response) {
  return Object.defineProperty(detail, "response", { enumerable: true, get: () => response.clone() });
}
async function callOf(input, init) {
  const given = input instanceof Request ? input : null;
  const method = (init.method ?? given?.method ?? "POST").toUpperCase();
  let body = withoutField(init.body);
  if (body === undefined && given) body = await given.clone().arrayBuffer();
  if (body instanceof ReadableStream) body = await new Response(body).arrayBuffer();
  if (body instanceof ArrayBuffer && body.byteLength === 0) body = undefined;
  const url = new URL(given ? given.url : input, document.baseURI).href;
  const headers = new Headers(init.headers ?? given?.headers);
  const request = (token) => {
    headers.set(HEADER, token);
    return new Request(given ? given.url : input, { ...optionsOf(given), ...init, method, headers, body });
  };
  if (!["GET", "HEAD"].includes(method)) request("-"); // what fetch would refuse is refused now, not tried five times
  return { method, request, signal: init.signal ?? given?.signal, digest: digestOfCall(method, url, body) };
}
function optionsOf(given) {
  if (!given) return {};
  const { cache, credentials, integrity, keepalive, mode, redirect, referrer, referrerPolicy, signal } = given;
  return { cache, credentials, integrity, keepalive, mode, redirect, referrer, referrerPolicy, signal };
}
function orAborted(promise, signal) {
  if (!signal) return promise;
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort);
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
async function sendXHR(submission, xhr, body) {
  const content = withoutField(body);
  const digest = digestOfCall("", "", content);
  const flight = await submission.enqueue(async () => {
    await submission.prepare(digest, "xhr");
    return submission.begin(digest, "xhr");
  });
  xhr.addEventListener("loadend", () => concludeXHR(submission, flight, xhr));
  try {
    xhr.setRequestHeader(HEADER, flight.record.token);
    xhr.send(content);
  } catch (error) {
    submission.end(flight, UNKNOWN);
    throw error;
  }
}
function concludeXHR(submission, flight, xhr) {
  if (xhr.status === 0) {
    submission.end(flight, UNKNOWN); // failed or aborted
    return UNKNOWN;
  }
  const problem = problemOfXHR(xhr);
  const verdict = verdictOn(xhr.status, problem);
  const again = verdict === UNCLAIMED || (verdict === FOREIGN && flight.wasFresh);
  submission.end(flight, verdict === FOREIGN && !flight.wasFresh ? STALE : verdict);
  if (verdict === DONE) {
    submission.tell("success", { xhr, replayed: problem !== null || xhr.getResponseHeader("Idempotent-Replayed") === "true" });
  } else if (again) {
    submission.enqueue(() => submission.draw()).catch(() => {});
  } else if (verdict === STALE || verdict === FOREIGN) {
    submission.tell("stale", { reason: codeOf(problem), xhr });
  }
  return again ? UNCLAIMED : verdict;
}
function problemOfXHR(xhr) {
  if (!xhr.getResponseHeader("Content-Type")?.startsWith("application/problem+json")) return null;
  try {
    return xhr.responseType === "json" ? xhr.response : JSON.parse(xhr.responseText);
  } catch {
    return null;
  }
}
const byKey = new Map();
const byElement = new WeakMap();
function submissionNamed(name, instance, place) {
  const key = JSON.stringify([location.pathname + location.search, name, instance, place]);
  if (!byKey.has(key)) byKey.set(key, new Submission(key, name, instance));
  return byKey.get(key);
}
function submissionFor(name, instance) {
  const submission = submissionNamed(name, instance, 0);
  scan();
  if (!submission.record) submission.enqueue(() => submission.ready()).catch(() => {});
  return submission;
}
function submissionOf(element) {
  if (!element?.matches?.(FORMS)) return null;
  const name = element.getAttribute(ATTRIBUTE);
  const instance = element.getAttribute(`${ATTRIBUTE}-instance`) ?? "";
  const known = byElement.get(element);
  if (known?.name === name && known.instance === instance) return known;
  if (known) known.element = null; // it has been given another cart
  for (let place = 0; ; place++) {
    const submission = submissionNamed(name, instance, place);
    if (submission.element?.isConnected) continue;
    attach(submission, element);
    return submission;
  }
}
function attach(submission, element) {
  byElement.set(element, submission);
  submission.element = element;
  submission.spare = serverToken(element) || submission.spare;
  const { record } = submission;
  if (record && record.arrival !== arrival.id && !submission.flight) submission.record = null; // the visitor came anew
  else if (record) fill(element, record.token);
  submission.showBusy();
  submission.enqueue(() => submission.ready()).catch(() => {});
}
function scan() {
  if (document.readyState === "loading") return; // a form may stand there without its field
  for (const element of document.querySelectorAll(FORMS)) {
    const submission = submissionOf(element);
    if (submission.record) fill(element, submission.record.token);
  }
}
let passing = null; // the form element whose submit has been held and now leaves
function onSubmit(event) {
  const element = event.target;
  const submission = submissionOf(element);
  if (!submission || methodOf(element, event.submitter) === "dialog") return;
  const digest = digestOfForm(element, event.submitter);
  if (element === passing || submission.passes(digest, "form")) {
    submission.passed = digest;
    fill(element, submission.record.token);
    return;
  }
  event.preventDefault();
  event.stopImmediatePropagation();
  hold(submission, element, event.submitter);
}
async function hold(submission, element, submitter) {
  if (submission.held) {
    submission.held = { element, submitter };
    return;
  }
  submission.held = { element, submitter };
  submission.showBusy();
  await pause(0); // a form ignores a second submit while it dispatches the event of the first
  try {
    for (let digest = ""; digest !== heldDigest(submission); ) {
      digest = heldDigest(submission);
      await submission.enqueue(() => submission.prepare(digest, "form"));
    }
  } catch {
    return; // the page has been told; the content stays where it is
  } finally {
    ({ element, submitter } = submission.held);
    submission.held = null;
    submission.showBusy();
  }
  if (!element.isConnected) element = submission.element; // it has been replaced meanwhile
  if (!element?.isConnected) return;
  passing = element;
  try {
    HTMLFormElement.prototype.requestSubmit.call(element, submitter?.form === element && submitter.isConnected ? submitter : undefined);
  } finally {
    passing = null;
  }
}
const heldDigest = ({ held }) => digestOfForm(held.element, held.submitter);
let leaving = null; // a submit that nobody has prevented, until the browser collects its data
function onSubmitted(event) {
  if (event.defaultPrevented || !submissionOf(event.target)) return;
  leaving = event;
  setTimeout(() => (leaving = null));
}
function onFormData(event) {
  const element = event.target;
  const submission = !ownReading && submissionOf(element);
  if (!submission?.record) return;
  const submitter = leaving?.target === element ? leaving.submitter : null;
  const digest = digestOfForm(element, submitter, event.formData);
  if (methodOf(element, submitter) === "post") event.formData.set(FIELD, submission.record.token);
  if (leaving?.target === element) submission.sent(digest, "form");
  else submission.read = digest; // by form.submit(), if the page is left now
}
function onTouch(event) {
  const element = formAround(event.target);
  if (event.isTrusted || event.type === "reset") byElement.get(element)?.touch();
}
function onHide() {
  for (const submission of byKey.values()) {
    if (submission.read && submission.record?.phase === FRESH) submission.sent(submission.read, "form");
    submission.save("");
  }
  stopListening();
}
function onShow(event) {
  if (!event.persisted) return;
  arrive(true);
  listen(holdsRecord);
  for (const submission of byKey.values()) submission.comeBack();
}
function holdsRecord(id) {
  for (const { record } of byKey.values()) {
    if (record?.id === id) return true;
  }
  return false;
}
function watch() {
  listen(holdsRecord);
  addEventListener("submit", onSubmit, true);
  addEventListener("submit", onSubmitted);
  addEventListener("formdata", onFormData);
  for (const type of ["input", "change", "reset"]) addEventListener(type, onTouch, true);
  addEventListener("pagehide", onHide);
  addEventListener("pageshow", onShow);
  addEventListener("popstate", () => arrive(true));
  globalThis.navigation?.addEventListener("currententrychange", ({ navigationType }) => {
    if (navigationType === "push") arrive(false);
  });
  new MutationObserver(scan).observe(document, {
    childList: true,
    subtree: true,
    attributes: true,
    attributeFilter: [ATTRIBUTE, `${ATTRIBUTE}-instance`],
  });
  if (document.readyState === "loading") addEventListener("DOMContentLoaded", scan);
  else setTimeout(scan); // after the module that imports this has called configure
}
const safe = (method) => ["get", "head"].includes(String(method).toLowerCase());
const submitterOf = ({ elt, triggeringEvent: event }) => (elt.matches(FORMS) ? (event?.submitter ?? null) : elt);
const htmxDigest = (form, detail) => digestOfForm(form, submitterOf(detail), undefined, detail.elt === form ? "" : detail.path);
const flights = new WeakMap(); // an htmx request's configuration: its flight
function onConfirm(event) {
  const { detail } = event;
  const form = formAround(detail.elt);
  const submission = submissionOf(form);
  if (!submission || safe(detail.verb)) return;
  if (submission.passes(htmxDigest(form, detail), "form")) return;
  event.preventDefault();
  submission
    .enqueue(() => submission.prepare(htmxDigest(form, detail), "form"))
    .then(() => detail.issueRequest(false)) // comes by here again, and then asks hx-confirm's question
    .catch(() => {}); // the page has been told
}
function onConfigRequest({ detail }) {
  const form = formAround(detail.elt);
  const submission = submissionOf(form);
  if (!submission?.record || safe(detail.verb)) return;
  detail.headers[HEADER] = submission.record.token;
  flights.set(detail, { submission, flight: null, digest: htmxDigest(form, detail) });
}
function onBeforeSend({ detail }) {
  const going = flights.get(detail.requestConfig);
  if (going) going.flight = going.submission.begin(going.digest, "form");
}
function onAfterRequest({ detail }) {
  const { submission, flight } = flights.get(detail.requestConfig) ?? {};
  if (!flight) return;
  const verdict = concludeXHR(submission, flight, detail.xhr);
  if (verdict !== UNCLAIMED || flight.again) return;
  submission.enqueue(() => {
    const { element } = submission;
    if (element?.isConnected && detail.elt.matches?.(FORMS)) setTimeout(() => HTMLFormElement.prototype.requestSubmit.call(element));
  });
}
const turboFlights = new WeakMap(); // a form element: its flight
function onTurboRequest({ target, detail }) {
  const submission = submissionOf(target);
  if (!submission?.record || safe(detail.fetchOptions.method)) return;
  detail.fetchOptions.headers[HEADER] = submission.record.token;
  turboFlights.set(target, submission.begin(submission.passed, "form"));
}
function onTurboEnd({ target, detail }) {
  const submission = submissionOf(target);
  const flight = turboFlights.get(target);
  if (!submission || !flight) return;
  turboFlights.delete(target);
  const response = detail.fetchResponse?.response;
  const verdict = response ? verdictOn(response.status, null, response.redirected) : UNKNOWN;
  submission.end(flight, verdict);
  if (verdict === DONE) {
    const replayed = response.headers.get("Idempotent-Replayed") === "true";
    submission.tell("success", withResponse({ replayed }, response));
  }
}
function watchLibraries() {
  addEventListener("htmx:confirm", onConfirm);
  addEventListener("htmx:configRequest", onConfigRequest);
  addEventListener("htmx:beforeSend", onBeforeSend);
  addEventListener("htmx:afterRequest", onAfterRequest);
  addEventListener("turbo:before-fetch-request", onTurboRequest);
  addEventListener("turbo:submit-end", onTurboEnd);
  addEventListener("turbo:visit", ({ detail }) => arrive(detail.action === "restore"));
}
const faces = new WeakMap();
function form(which, { instance = "" } = {}) {
  const submission = typeof which === "string" ? submissionFor(which, instance) : submissionOf(which);
  if (!submission) throw new TypeError("submitOnce.form: neither a name nor a form element with data-submit-once");
  if (!faces.has(submission)) {
    faces.set(submission, {
      name: submission.name,
      instance: submission.instance,
      get ready() {
        return submission.enqueue(() => submission.ready());
      },
      fetch: (input, init) => send(submission, input, init),
      send: (xhr, body) => sendXHR(submission, xhr, body),
      renew: () => submission.renew(),
    });
  }
  return faces.get(submission);
}
function start() {
  watch();
  watchLibraries();
}
const SHARED = Symbol.for("submitonce");
const submitOnce = (globalThis[SHARED] ??= setUp());
function setUp() {
  if (typeof document === "object") {
    if (document.prerendering) document.addEventListener("prerenderingchange", start, { once: true });
    else start();
  }
  return {
    configure,
    form,
    fetch: (which, input, init) => form(which).fetch(input, init),
  };
}
export { submitOnce };
export default submitOnce;
