import { HEADER, endpointsOf, pause, settings } from "./settings.mjs";

// What an answer means for the token that was sent.
export const DONE = "done"; // the submit has its outcome; the token is used up
export const REFUSED = "refused"; // not an outcome: correct it and send it again, with the same token
export const UNKNOWN = "unknown"; // may have been carried out or not: the same token
export const RETRY = "retry"; // as unknown, and worth trying again soon
export const UNCLAIMED = "unclaimed"; // too old, and certainly never used: a new token
export const FOREIGN = "foreign"; // of another session: never used in this one
export const STALE = "stale"; // used for something else, or so long ago that nobody knows

// verdictOn says what a status and a problem (RFC 9457, or null) mean.
export function verdictOn(status, problem, redirected = false) {
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
  // A redirect answers the submit; what the page behind it says is another
  // matter. Status 0 is a redirect that was not followed.
  if (redirected || (status >= 200 && status < 400) || status === 0) return DONE;
  if (status === 502 || status === 503 || status === 504) return RETRY;
  return status < 500 ? REFUSED : UNKNOWN;
}

// codeOf returns which problem it is: the end of its type.
export function codeOf(problem) {
  const type = problem?.type;
  return typeof type === "string" && type.includes("/docs/problems.md#") ? type.slice(type.indexOf("#") + 1) : "";
}

// problemIn reads the problem out of a response and leaves its body unread.
export async function problemIn(response) {
  if (!response.headers.get("Content-Type")?.startsWith("application/problem+json")) return null;
  return response.clone().json().catch(() => null);
}

// retryAfter returns how many milliseconds a Retry-After header asks for: it
// holds seconds or a date (RFC 9110, section 10.2.3).
export function retryAfter(value) {
  if (!value) return 0;
  const ms = /^\s*\d+\s*$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return ms > 0 ? ms : 0;
}

// backOff returns how long to wait before the nth retry: a random time below a
// bound that doubles, so that clients do not come back in step.
export function backOff(n, atLeast = 0) {
  return atLeast + Math.random() * Math.min(10_000, 300 * 2 ** n);
}

// drawToken asks the endpoint for a token. It resolves to the token and to when,
// by this computer's clock, it is time to ask how it stands before sending it.
export async function drawToken(element, name, instance) {
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

// howStands asks how a token stands. It resolves to "free", "pending" or "done";
// to UNCLAIMED, FOREIGN or STALE, which mean what they do for a submit; to
// "unasked" if the server has no such endpoint; or to UNKNOWN.
export async function howStands(element, token) {
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
