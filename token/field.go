package token

import (
	"errors"
	"html/template"
	"net/http"
)

// FieldName is the name of the hidden field that carries a token in a form
// without JavaScript.
const FieldName = "submit_token"

// Field returns a hidden field with a fresh token for the form and the request's
// subject, to stand inside the form element. Call it before the page is written:
// it sets Cache-Control: no-store on w, because a page with a token in it is for
// one visitor and must not come out of a cache.
func (i *Issuer) Field(w http.ResponseWriter, r *http.Request, form string) template.HTML {
	noStore(w)
	return hiddenField(i.Issue(form, i.Subject(r)))
}

// InstanceField is like [Issuer.Field] with the token of an instance, which
// [Issuer.IssueInstance] explains. The names must come from the server, not from
// the request, if the subject is "".
func (i *Issuer) InstanceField(w http.ResponseWriter, r *http.Request, form, instance string) template.HTML {
	noStore(w)
	return hiddenField(i.IssueInstance(form, i.Subject(r), instance))
}

// FuncMap returns the template function submitToken, which writes what
// [Issuer.Field] and [Issuer.InstanceField] return:
//
//	{{ submitToken "checkout" }}
//	{{ submitToken "checkout" .CartID }}
//
// It sets Cache-Control: no-store on w at once. A template needs its functions
// when it is parsed, so give that one FuncMap(nil, nil), and each request a
// clone with its own:
//
//	t := template.Must(page.Clone()).Funcs(iss.FuncMap(w, r))
//
// Passing a Field among the template's data does the same with less work.
func (i *Issuer) FuncMap(w http.ResponseWriter, r *http.Request) template.FuncMap {
	if w != nil {
		noStore(w)
	}
	return template.FuncMap{"submitToken": func(form string, instance ...string) (template.HTML, error) {
		switch {
		case w == nil || r == nil:
			return "", errors.New("token: submitToken: the template has the functions of no request; give a clone of it FuncMap(w, r)")
		case len(instance) == 0:
			return i.Field(w, r, form), nil
		case len(instance) > 1:
			return "", errors.New("token: submitToken: more than a form and an instance")
		case instance[0] == "":
			return "", errors.New("token: submitToken: the instance is empty; leave it out for a fresh token")
		}
		return i.InstanceField(w, r, form, instance[0]), nil
	}}
}

func noStore(w http.ResponseWriter) {
	w.Header().Set("Cache-Control", "no-store")
}

// hiddenField returns the field. Firefox keeps what a field held over a reload,
// hidden ones too, unless autocomplete is off; the page's own token would then
// give way to the one that has been used.
func hiddenField(t Token) template.HTML {
	return template.HTML(`<input type="hidden" name="` + FieldName + `" value="` + t.Value + `" autocomplete="off">`)
}
