package token

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// HeaderName is the header that carries a token, in requests and in the answers
// of [Issuer.Handler]. Where pages of another origin are to submit, CORS has to
// allow it in requests, and to expose it if they read it from answers.
const HeaderName = "X-Submit-Token"

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
	query, problem := parseQuery(r.URL.RawQuery)
	if problem != "" {
		writeProblem(w, http.StatusBadRequest, "invalid-token-request", problem)
		return
	}
	subject := i.Subject(r)
	var t Token
	switch {
	case !query.hasInstance:
		t = i.Issue(query.form, subject)
	case subject == "" && !i.sharedInstances:
		writeProblem(w, http.StatusForbidden, "missing-subject", "An instance token is bound to its subject, such as a session, and this request has none.")
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
