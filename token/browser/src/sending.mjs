import { HEADER, pause, settings } from "./settings.mjs";
import { digestOfCall, withoutField } from "./content.mjs";
import { DONE, FOREIGN, RETRY, STALE, UNCLAIMED, UNKNOWN, backOff, codeOf, problemIn, retryAfter, verdictOn } from "./answers.mjs";

// send is fetch with the submission's token, tried again under the same token
// until there is an answer.
export async function send(submission, input, init = {}) {
  const call = await callOf(input, init);
  if (["GET", "HEAD", "OPTIONS"].includes(call.method)) return fetch(input, init);
  const flight = await submission.enqueue(() => board(submission, call));
  const response = await orAborted(flight.response, call.signal);
  return response.clone(); // whoever else has joined reads it, too
}

// board joins the request that is under way for the same content, or starts one.
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

// persist sends the request until it is answered, or there is no use in it.
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

// conclude ends the flight, and tells the page what came of it.
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

// withResponse lets listeners read a response that others read, too: each time
// that it is asked for, it is another copy.
export function withResponse(detail, response) {
  return Object.defineProperty(detail, "response", { enumerable: true, get: () => response.clone() });
}

// callOf reads what fetch was called with into something that can be sent more
// than once. A stream is read to its end for that.
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

// orAborted settles like the promise, but rejects as soon as the signal does.
function orAborted(promise, signal) {
  if (!signal) return promise;
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort);
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

// sendXHR is xhr.send with the submission's token. It does not try again; the
// next send has the same token until there is an outcome.
export async function sendXHR(submission, xhr, body) {
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

// concludeXHR reads the answer of an XMLHttpRequest, ours or that of a library.
// It returns the verdict.
export function concludeXHR(submission, flight, xhr) {
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
