import { ATTRIBUTE, FIELD, FORMS, pause } from "./settings.mjs";
import { arrival, arrive, listen, stopListening } from "./memory.mjs";
import { digestOfForm, formAround, methodOf, ownReading } from "./content.mjs";
import { fill, serverToken } from "./field.mjs";
import { FRESH, Submission } from "./submission.mjs";

const byKey = new Map();
const byElement = new WeakMap();

// submissionNamed returns the submission at a place on this page: the place is
// the first, second, ... of the forms with this name and instance.
function submissionNamed(name, instance, place) {
  const key = JSON.stringify([location.pathname + location.search, name, instance, place]);
  if (!byKey.has(key)) byKey.set(key, new Submission(key, name, instance));
  return byKey.get(key);
}

// submissionFor returns the submission of a name, for pages that send by script.
// If the page has a form element of that name, it is that one's.
export function submissionFor(name, instance) {
  const submission = submissionNamed(name, instance, 0);
  scan();
  if (!submission.record) submission.enqueue(() => submission.ready()).catch(() => {});
  return submission;
}

// submissionOf returns the submission of a form element, null if the element has
// not been handed over to this script.
export function submissionOf(element) {
  if (!element?.matches?.(FORMS)) return null;
  const name = element.getAttribute(ATTRIBUTE);
  const instance = element.getAttribute(`${ATTRIBUTE}-instance`) ?? "";
  const known = byElement.get(element);
  if (known?.name === name && known.instance === instance) return known;
  if (known) known.element = null; // it has been given another cart

  // A framework replaces the elements of a page as it likes, so that the form is
  // the first place whose element is gone, not the element.
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

// scan finds the forms of the page and fills their fields.
function scan() {
  if (document.readyState === "loading") return; // a form may stand there without its field
  for (const element of document.querySelectorAll(FORMS)) {
    const submission = submissionOf(element);
    if (submission.record) fill(element, submission.record.token);
  }
}

let passing = null; // the form element whose submit has been held and now leaves

// onSubmit comes before all other listeners. It lets a submit pass that can
// leave, and holds one back that can't, before anybody has acted on it.
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

// hold dispatches a submit again when its token is there. Clicks meanwhile are
// one submit.
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
    // A field named "requestSubmit" would hide the method of the form.
    HTMLFormElement.prototype.requestSubmit.call(element, submitter?.form === element && submitter.isConnected ? submitter : undefined);
  } finally {
    passing = null;
  }
}

const heldDigest = ({ held }) => digestOfForm(held.element, held.submitter);

let leaving = null; // a submit that nobody has prevented, until the browser collects its data

// onSubmitted comes after all other listeners, so a validator that refuses the
// submit has done so.
function onSubmitted(event) {
  if (event.defaultPrevented || !submissionOf(event.target)) return;
  leaving = event;
  setTimeout(() => (leaving = null));
}

// onFormData is called when the browser collects what it sends, and when a
// script reads a form.
function onFormData(event) {
  const element = event.target;
  const submission = !ownReading && submissionOf(element);
  if (!submission?.record) return;
  const submitter = leaving?.target === element ? leaving.submitter : null;
  const digest = digestOfForm(element, submitter, event.formData);
  // By GET it would stand in the address bar and in logs.
  if (methodOf(element, submitter) === "post") event.formData.set(FIELD, submission.record.token);
  if (leaving?.target === element) submission.sent(digest, "form");
  else submission.read = digest; // by form.submit(), if the page is left now
}

// onTouch: the visitor changes something in a form.
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

// watch starts to look after the page. The listeners are there at once, so that
// no submit gets past them.
export function watch() {
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
