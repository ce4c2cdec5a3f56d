import { scriptURL } from "./script.mjs";

// Names that the server shares (token.HeaderName, token.FieldName).
export const HEADER = "X-Submit-Token";
export const FIELD = "submit_token";

// <form data-submit-once="checkout"> hands a form over to this script.
export const ATTRIBUTE = "data-submit-once";
export const FORMS = `form[${ATTRIBUTE}]`;

export const settings = {
  endpoint: "/submit-token", // where tokens come from: token.Issuer.Handler
  status: "", // where to ask how a token stands: replay.Guard.Status; "" is endpoint + "/status"
  credentials: "same-origin", // of both; "include" if they are of another origin
  tries: 5, // how often a request is sent before the caller hears of a failure
  patience: 60_000, // milliseconds within which the last try begins
};

export function configure(options) {
  for (const [name, value] of Object.entries(options)) {
    if (!Object.hasOwn(settings, name)) throw new TypeError(`submitOnce.configure: no setting ${name}`);
    if (typeof value !== typeof settings[name]) {
      throw new TypeError(`submitOnce.configure: ${name} must be a ${typeof settings[name]}`);
    }
    settings[name] = value;
  }
}

// The script element may say data-endpoint and data-status.
const script = typeof document === "object" ? [...document.scripts].find((s) => s.src && s.src === scriptURL) : null;
if (script?.dataset.endpoint) settings.endpoint = script.dataset.endpoint;
if (script?.dataset.status) settings.status = script.dataset.status;

// endpointsOf returns where a form's tokens come from and where to ask for them.
// The form element may say otherwise than the settings do.
export function endpointsOf(element) {
  const endpoint = element?.getAttribute(`${ATTRIBUTE}-endpoint`) || settings.endpoint;
  const status = element?.getAttribute(`${ATTRIBUTE}-status`) || settings.status;
  return { endpoint, status: status || endpoint.replace(/[?#].*/s, "") + "/status" };
}

// random returns 96 random bits. crypto.randomUUID is missing on plain http.
export function random() {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (b) => b.toString(16).padStart(2, "0")).join("");
}

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
