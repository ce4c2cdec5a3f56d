import { ATTRIBUTE, FIELD } from "./settings.mjs";
import { methodOf } from "./content.mjs";

// OURS marks a hidden field whose value this script has set. A field without it
// is as the server wrote it.
const OURS = `${ATTRIBUTE}-field`;

function fieldOf(element) {
  return element.querySelector(`input[name="${FIELD}"]`);
}

// serverToken returns the token that the server put into the form, "" if none.
export function serverToken(element) {
  const field = fieldOf(element);
  return field && !field.hasAttribute(OURS) ? field.value : "";
}

// fill puts the token into the form's hidden field, so that the form can be sent
// without this script. A form that is sent by GET gets none, for its token would
// stand in the address bar and in logs.
export function fill(element, token, submitter) {
  let field = fieldOf(element);
  if (!field) {
    if (methodOf(element, submitter) !== "post") return;
    field = document.createElement("input");
    field.type = "hidden";
    field.name = FIELD;
    field.autocomplete = "off"; // Firefox would keep the used token over a reload
    element.append(field);
  }
  if (field.value !== token) field.value = token;
  field.setAttribute(OURS, "");
}
