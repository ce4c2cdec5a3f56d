import { configure } from "./settings.mjs";
import { send, sendXHR } from "./sending.mjs";
import { submissionFor, submissionOf, watch } from "./page.mjs";
import { watchLibraries } from "./libraries.mjs";

// faces are what callers get for a submission: the same object each time, so
// that asking for the form in a click handler draws no token.
const faces = new WeakMap();

// form returns the form of a name (and instance), or of a form element.
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

export const submitOnce = {
  configure,
  form,
  fetch: (which, input, init) => form(which).fetch(input, init),
};

if (typeof document === "object") {
  const start = () => {
    watch();
    watchLibraries();
  };
  // A page that is rendered ahead of the visit has not been opened by anybody.
  if (document.prerendering) document.addEventListener("prerenderingchange", start, { once: true });
  else start();
}
