import { ATTRIBUTE, FIELD } from "./settings.mjs";

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

// fill puts the token into the form's hidden field, if it has one. It adds none:
// the token joins the form's data when the browser collects it ("formdata"), and
// a form with one field more than the server wrote would lose what the visitor
// has typed when he comes Back, because browsers know a form again by its fields.
export function fill(element, token) {
  const field = fieldOf(element);
  if (!field) return;
  if (field.value !== token) field.value = token;
  field.setAttribute(OURS, "");
}
