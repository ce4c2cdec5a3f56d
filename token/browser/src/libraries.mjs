import { FORMS, HEADER } from "./settings.mjs";
import { arrive } from "./memory.mjs";
import { digestOfForm, formAround } from "./content.mjs";
import { DONE, STALE, UNCLAIMED, UNKNOWN, verdictOn } from "./answers.mjs";
import { concludeXHR, withResponse } from "./sending.mjs";
import { submissionOf } from "./page.mjs";

// htmx and Turbo send forms by script and say so in events. None of this costs
// anything on a page without them.

const safe = (method) => ["get", "head"].includes(String(method).toLowerCase());

// htmx: a request of an element in the form is one of the form.
const submitterOf = ({ elt, triggeringEvent: event }) => (elt.matches(FORMS) ? (event?.submitter ?? null) : elt);
const htmxDigest = (form, detail) => digestOfForm(form, submitterOf(detail), undefined, detail.elt === form ? "" : detail.path);
const flights = new WeakMap(); // an htmx request's configuration: its flight

// htmx:confirm comes before each request and can hold it up.
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

// Turbo sends the form's data, with the hidden field, which it has read when the
// form was submitted.
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

export function watchLibraries() {
  addEventListener("htmx:confirm", onConfirm);
  addEventListener("htmx:configRequest", onConfigRequest);
  addEventListener("htmx:beforeSend", onBeforeSend);
  addEventListener("htmx:afterRequest", onAfterRequest);
  addEventListener("turbo:before-fetch-request", onTurboRequest);
  addEventListener("turbo:submit-end", onTurboEnd);
  addEventListener("turbo:visit", ({ detail }) => arrive(detail.action === "restore"));
}
