package token

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"
)

// HeaderName is the header that carries a token, in requests and in the answers
// of [Issuer.Handler]. Where pages of another origin are to submit, CORS has to
// allow it in requests, and to expose it if they read it from answers.
const HeaderName = "X-Submit-Token"

// What the token endpoint takes, in bytes. [Issuer.Issue] and
// [Issuer.IssueInstance], whose names do not come from strangers, take any.
const (
	MaxFormLen     = 128 // of a form's name
	MaxInstanceLen = 255 // of an instance's name
)

// Handler returns the token endpoint. It answers GET with a fresh token,
//
//	{"token":"…","expires_at":"2026-12-01T09:30:00.123Z"}
//
// for the form that the query parameter form names, or the form "" if there is
// none, and for the request's subject. With a parameter instance it answers with
// the token of that instance; without a subject it refuses to (403), unless
// [Config.SharedInstances] is set. Names are valid UTF-8 without control
// characters, at most [MaxFormLen] and [MaxInstanceLen] bytes; others are
// answered with 400. Errors are application/problem+json (RFC 9457). The token
// stands in the header [HeaderName], too.
//
// Every call draws another token, so the answer says Cache-Control: no-store,
// has no validators and ignores those of the request. HEAD is answered like GET,
// and OPTIONS with the methods there are, for what CORS needs is the business of
// a middleware around this. The endpoint does no I/O and keeps nothing.
func (i *Issuer) Handler() http.Handler {
	return http.HandlerFunc(i.serveToken)
}

func (i *Issuer) serveToken(w http.ResponseWriter, r *http.Request) {
	const methods = "GET, HEAD, OPTIONS"
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodOptions:
		w.Header().Set("Allow", methods)
		w.WriteHeader(http.StatusNoContent)
		return
	default:
		w.Header().Set("Allow", methods)
		writeProblem(w, http.StatusMethodNotAllowed, "method-not-allowed", "The token endpoint answers GET only.")
		return
	}
	query, err := parseQuery(r.URL.RawQuery)
	if err != nil {
		writeProblem(w, http.StatusBadRequest, "invalid-token-request", err.Error())
		return
	}
	subject := i.Subject(r)
	var t Token
	switch {
	case !query.hasInstance:
		t = i.Issue(query.form, subject)
	case subject == "" && !i.sharedInstances:
		writeProblem(w, http.StatusForbidden, "missing-subject", "An instance token is for somebody known, such as by a session, and this request comes from nobody.")
		return
	default:
		t = i.IssueInstance(query.form, subject, query.instance)
	}

	// Neither a token nor a time holds anything that JSON would escape.
	body := append(make([]byte, 0, 128), `{"token":"`...)
	body = append(body, t.Value...)
	body = append(body, `","expires_at":"`...)
	body = t.ExpiresAt.AppendFormat(body, time.RFC3339Nano)
	body = append(body, "\"}\n"...)
	h := w.Header()
	h.Set(HeaderName, t.Value)
	writeBody(w, http.StatusOK, "application/json", body)
}

// tokenQuery is what a request to the endpoint asks for.
type tokenQuery struct {
	form        string
	instance    string
	hasInstance bool
}

func parseQuery(rawQuery string) (tokenQuery, error) {
	values, err := url.ParseQuery(rawQuery)
	if err != nil {
		return tokenQuery{}, errors.New("The query cannot be read.")
	}
	var q tokenQuery
	if q.form, _, err = parameter(values, "form", MaxFormLen); err != nil {
		return tokenQuery{}, err
	}
	q.instance, q.hasInstance, err = parameter(values, "instance", MaxInstanceLen)
	if err == nil && q.hasInstance && q.instance == "" {
		// A page that lost its cart's name must not go on with a token that lets
		// the cart be ordered once in every tab.
		err = errors.New("The parameter instance is empty; leave it out for a fresh token.")
	}
	return q, err
}

func parameter(values url.Values, name string, limit int) (value string, set bool, err error) {
	all := values[name]
	switch len(all) {
	case 0:
		return "", false, nil
	case 1:
	default:
		return "", false, fmt.Errorf("The parameter %s stands there twice.", name)
	}
	value = all[0]
	if len(value) > limit {
		return "", false, fmt.Errorf("The parameter %s has %d bytes; it may have %d.", name, len(value), limit)
	}
	if !utf8.ValidString(value) {
		return "", false, fmt.Errorf("The parameter %s is not valid UTF-8.", name)
	}
	for _, c := range value {
		if unicode.IsControl(c) {
			return "", false, fmt.Errorf("The parameter %s holds a control character.", name)
		}
	}
	return value, true, nil
}

// problemBase is where the endpoint's problem types are explained.
const problemBase = "https://github.com/submitonce/submitonce/blob/main/docs/problems.md#"

// writeProblem answers with a problem of RFC 9457. None of the endpoint's goes
// away by trying again.
func writeProblem(w http.ResponseWriter, status int, code, detail string) {
	body, _ := json.Marshal(struct { // strings, an int and a bool: cannot fail
		Type      string `json:"type"`
		Title     string `json:"title"`
		Status    int    `json:"status"`
		Detail    string `json:"detail"`
		Retryable bool   `json:"retryable"`
	}{problemBase + code, http.StatusText(status), status, detail, false})
	writeBody(w, status, "application/problem+json", append(body, '\n'))
}

// writeBody sends an answer that nothing may cache. net/http leaves the body
// out for HEAD.
func writeBody(w http.ResponseWriter, status int, contentType string, body []byte) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	w.Write(body) // if the client is gone, nobody is left to be told
}
