// The browser client of submitonce: one token per form, drawn when the page
// loads and sent with every submit, until the server has given it its outcome.
//
// A page needs no code for it:
//
//   <script src="/submitonce.js"></script>
//   <form method="post" action="/orders" data-submit-once="checkout"> ... </form>
//
// Attributes of the form element:
//
//   data-submit-once            the form's name at the server; may be empty
//   data-submit-once-instance   what is to be submitted once in all tabs, such as a cart
//   data-submit-once-endpoint   where its tokens come from, if not from where the others do
//   data-submit-once-status     where to ask how a token stands
//
// and of the script element: data-endpoint and data-status. The defaults are
// /submit-token (token.Issuer.Handler) and the endpoint with /status behind it
// (replay.Guard.Status, of the guard that the form is sent to). The status
// endpoint is optional, but only with it can changed content be sent as a new
// submit after Back.
//
// The token is sent as the field submit_token of a form that the browser sends,
// and as the header X-Submit-Token by fetch, XMLHttpRequest, htmx and Turbo. The
// client adds no element to the form; a hidden field submit_token that the page
// has is kept filled, and a token that the server has put there is used.
//
// - It is kept over a reload and for Back, for this form at this address. A
//   duplicated tab gets one of its own; an instance has the same one everywhere.
// - A submit that comes before its token waits for it. Nothing is sent without.
// - A double click is one submit. No button is disabled; aria-busy on the form
//   says that something is under way.
// - While its outcome is not known, it stays. The same content is sent under it
//   again and gets the one outcome; changed content waits until the server has
//   said what came of the first.
// - After the outcome, the same content gets the same answer again, so that a
//   late second click orders nothing. Changed content is the next submit and gets
//   a new token. So does everything once the visitor has touched the form after
//   an answer that this page has seen, or has come to it anew by a link.
// - A 4xx answer of the handler is no outcome: the corrected form is sent under
//   the same token.
// - A token that is too old, which the server says was never used, is replaced
//   and the submit sent again, once.
//
// Fields are read when a submit begins. Call form.requestSubmit(), not
// form.submit(), which nobody can hold back.
//
// It needs no https, no storage (without, a token lasts until its page is left),
// and no Content-Security-Policy other than script-src and connect-src of the
// site itself. Browsers since 2022 will do.

/** What {@link SubmitOnce.configure} takes. */
export interface Settings {
  /** Where tokens come from. The default is "/submit-token". */
  endpoint?: string;
  /** Where to ask how a token stands. The default is the endpoint with "/status" behind it. */
  status?: string;
  /** Of the requests to both. The default is "same-origin"; "include" if they are of another origin. */
  credentials?: RequestCredentials;
  /** How often a request is sent before the caller hears of a failure. The default is 5. */
  tries?: number;
  /** Milliseconds within which the last try begins. The default is 60000. */
  patience?: number;
}

export interface FormOptions {
  /** What is to be submitted once in all tabs, such as a cart. The default is "": each page is a submit of its own. */
  instance?: string;
}

/** A form that is submitted once, whether or not the page has an element for it. */
export interface SubmitForm {
  readonly name: string;
  readonly instance: string;

  /** Resolves when the form has a token; rejects if none can be had now. */
  readonly ready: Promise<void>;

  /**
   * fetch with the form's token, by POST unless the method is given.
   *
   * A call with the same method, address and content as one that is under way
   * sends nothing and gets its answer. Other content waits for the outcome of
   * the one that is under way.
   *
   * It is sent again, under the same token, after a network error, 502, 503, 504
   * and answers that say that they are worth it (still in progress, store away),
   * with growing random pauses and no sooner than Retry-After says. Other answers
   * resolve, as with fetch. When trying is over, the last answer resolves, or the
   * last network error rejects; the next call goes on under the same token.
   */
  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;

  /**
   * xhr.send with the form's token. It resolves when the request has been sent,
   * which waits for the token. Nothing is tried again by itself; the next send
   * has the same token until there is an outcome.
   */
  send(xhr: XMLHttpRequest, body?: XMLHttpRequestBodyInit | null): Promise<void>;

  /**
   * Ends with an outcome that the visitor has seen: the next submit is another
   * one, even if its content is the same. For pages that stay and have no form
   * element that the visitor touches, such as one with an "Order again" button.
   * Before the outcome it does nothing, and no token is replaced.
   */
  renew(): Promise<void>;
}

export interface SubmitOnce {
  /** Changes settings. Call it in the script or module that loads this one, at once. */
  configure(settings: Settings): void;

  /**
   * Returns the form of a name, or of a form element with data-submit-once. It
   * is the same object for the same form, so calling this at each click is as
   * good as calling it once.
   */
  form(which: string | HTMLFormElement, options?: FormOptions): SubmitForm;

  /** Is form(which).fetch(input, init). */
  fetch(which: string | HTMLFormElement, input: string | URL | Request, init?: RequestInit): Promise<Response>;
}

export const submitOnce: SubmitOnce;
export default submitOnce;

/** What all events know. */
export interface SubmitOnceDetail {
  /** The form's name. */
  name: string;
}

/** The outcome is there. */
export interface SuccessDetail extends SubmitOnceDetail {
  /** Another copy each time it is read. */
  readonly response?: Response;
  /** In place of response, if the request was an XMLHttpRequest or one of htmx. */
  xhr?: XMLHttpRequest;
  /** It is the answer of an earlier request with the same token. */
  replayed: boolean;
}

/** The same request will be sent again. */
export interface RetryDetail extends SubmitOnceDetail {
  /** How many have been sent: 1 before the first retry. */
  attempt: number;
  /** Milliseconds until the next. */
  delay: number;
  /** Of the answer; 0 if there was none. */
  status: number;
  /** The network error, or null. */
  error: unknown;
}

/**
 * The server refuses the token for good, and only the visitor can know whether
 * to submit anew: renew() after asking him, or a reload, goes on.
 */
export interface StaleDetail extends SubmitOnceDetail {
  /**
   * "expired-token": so old that its outcome may have been forgotten;
   * "payload-mismatch": other content has been sent under it, and stands;
   * "invalid-token": of a session that is over, in which it may have been used.
   */
  reason: string;
  readonly response?: Response;
  xhr?: XMLHttpRequest;
}

/** No token could be had, or trying again has come to its end. */
export interface ErrorDetail extends SubmitOnceDetail {
  error?: unknown;
  readonly response?: Response;
}

/** Events on the form element, or on the document if there is none. They bubble. */
export interface SubmitOnceEventMap {
  "submitonce:ready": CustomEvent<SubmitOnceDetail>;
  "submitonce:success": CustomEvent<SuccessDetail>;
  "submitonce:retry": CustomEvent<RetryDetail>;
  /**
   * Changed content that was submitted while the first was under way is about to
   * be sent as a submit of its own, because the first has succeeded.
   * preventDefault() drops it.
   */
  "submitonce:changed": CustomEvent<SubmitOnceDetail>;
  "submitonce:stale": CustomEvent<StaleDetail>;
  "submitonce:error": CustomEvent<ErrorDetail>;
}

declare global {
  var submitOnce: SubmitOnce; // made by the plain script only
  interface HTMLElementEventMap extends SubmitOnceEventMap {}
  interface DocumentEventMap extends SubmitOnceEventMap {}
}
