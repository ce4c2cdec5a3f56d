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

function start() {
  watch();
  watchLibraries();
}

// The script may run more than once on a page: as a module of each bundle, or
// because Turbo has shown an error page, whose scripts it runs. All share the
// first one's forms.
const SHARED = Symbol.for("submitonce");

export const submitOnce = (globalThis[SHARED] ??= setUp());

function setUp() {
  if (typeof document === "object") {
    // A page that is rendered ahead of the visit has not been opened by anybody.
    if (document.prerendering) document.addEventListener("prerenderingchange", start, { once: true });
    else start();
  }
  return {
    configure,
    form,
    fetch: (which, input, init) => form(which).fetch(input, init),
  };
}
