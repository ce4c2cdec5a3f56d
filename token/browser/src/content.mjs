import { FIELD } from "./settings.mjs";

// Digests tell whether the visitor has changed what is to be sent. They stay in
// this tab; what the server compares is its own, far stronger fingerprint, so
// that two contents with one digest end in its refusal, never in a wrong order.
// crypto.subtle would be stronger, but is missing on plain http, and is too late
// for a page that is about to be left.
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

// A file is known by its name, type and size: its content cannot be read in
// time, and its date is that of the click if it was made by a script.
function entries(data) {
  const all = [];
  for (const [name, value] of data) {
    if (name !== FIELD) all.push(typeof value === "string" ? [name, value] : [name, value.name, value.type, value.size]);
  }
  return all;
}

// digestOfForm is of what the form would send now. Entries are sorted, because
// where the submit button stands among them is not the same in all browsers.
export function digestOfForm(element, submitter, data = formData(element, submitter), path = "") {
  const target = submitter?.getAttribute("formaction") || element.getAttribute("action") || "";
  const sorted = entries(data).map((e) => JSON.stringify(e)).sort();
  return hash(JSON.stringify([methodOf(element, submitter), target, path, sorted]));
}

// methodOf is read from the attributes, because a field named "method" hides the
// property of the form.
export function methodOf(element, submitter) {
  return (submitter?.getAttribute("formmethod") || element.getAttribute("method") || "get").toLowerCase();
}

// formAround returns the form that an element is or belongs to.
export function formAround(element) {
  if (element instanceof HTMLFormElement) return element; // a field may be named "form"
  return element?.form ?? element?.closest?.("form") ?? null;
}

// ownReading is true while this script reads a form, which makes the browser
// dispatch "formdata" as if the form were being sent.
export let ownReading = false;

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

// digestOfCall is of a request that a script sends.
export function digestOfCall(method, url, body) {
  return hash(JSON.stringify([method, url, describe(body)]));
}

function describe(body) {
  if (body instanceof FormData || body instanceof URLSearchParams) return entries(body);
  if (body instanceof Blob) return [body.name ?? "", body.type, body.size];
  if (body instanceof ArrayBuffer) return hash(new Uint8Array(body));
  if (ArrayBuffer.isView(body)) return hash(new Uint8Array(body.buffer, body.byteOffset, body.byteLength));
  return String(body ?? "");
}

// withoutField returns a body without the form's hidden field, because the token
// goes into the header, and the two must not differ.
export function withoutField(body) {
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
