package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ProblemBase is what the type of each problem begins with; the code follows. It
// is a page that explains them.
const ProblemBase = "https://github.com/submitonce/submitonce/blob/main/docs/problems.md#"

// A Problem is an error on the wire, as application/problem+json (RFC 9457).
type Problem struct {
	// Type is ProblemBase and a code that stays the same for good.
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`

	// Retryable says that the same request with the same token may be sent again,
	// after Retry-After where that is given.
	Retryable bool `json:"retryable"`

	// Unclaimed says of an expired token that it was never used, so that the same
	// content may be sent under a new one.
	Unclaimed bool `json:"unclaimed,omitempty"`

	// FirstStatus and Location are of the first response, where it succeeded but
	// cannot be given again.
	FirstStatus int    `json:"first_status,omitempty"`
	Location    string `json:"location,omitempty"`

	// RetryAfter is for the header of that name; zero means none.
	RetryAfter time.Duration `json:"-"`
}

// ProblemOf says how an error of this package looks on the wire. It shows no
// text of the error itself, which may tell of the inside. Other errors are a
// malformed request.
func ProblemOf(err error) Problem {
	var (
		expired  *ExpiredError
		pending  *PendingError
		tooLarge *TooLargeError
		limit    *http.MaxBytesError
		notKept  *NotKeptError
	)
	switch {
	case errors.As(err, &expired) && expired.Unclaimed:
		p := problem("expired-token", http.StatusForbidden, "The form was open for too long",
			"The submit token has expired without having been used. Get a new one and submit again.")
		p.Unclaimed = true
		return p
	case errors.As(err, &expired):
		return problem("expired-token", http.StatusForbidden, "The form was open for too long",
			"The submit token is so old that it can't be told whether it was used. "+
				"Look whether the first submit went through before you submit again.")
	case errors.As(err, &pending):
		p := problem("in-progress", http.StatusConflict, "Still working on it",
			"The first submit with this token is still being worked on. Send the same request again to get its result.")
		p.Retryable, p.RetryAfter = true, pending.RetryAfter
		return p
	case errors.As(err, &tooLarge):
		return problem("body-too-large", http.StatusRequestEntityTooLarge, "The form is too large",
			fmt.Sprintf("The submit token or key is looked for in bodies of up to %d bytes. "+
				"A token in a header has no such limit.", tooLarge.Limit))
	case errors.As(err, &limit):
		return problem("body-too-large", http.StatusRequestEntityTooLarge, "The body is too large",
			fmt.Sprintf("The body is larger than the %d bytes that are allowed.", limit.Limit))
	case errors.As(err, &notKept):
		p := problem("response-not-kept", http.StatusConflict, "Already done",
			fmt.Sprintf("The first submit with this token succeeded with status %d. "+
				"Its response can't be shown again.", notKept.Status))
		p.FirstStatus, p.Location = notKept.Status, notKept.Location
		return p
	case errors.Is(err, ErrMissingKey):
		return problem("missing-key", http.StatusBadRequest, "No submit token",
			"The request carries no submit token. The page has to get one when it loads, and send it with each submit.")
	case errors.Is(err, ErrConflictingKeys):
		return problem("conflicting-keys", http.StatusBadRequest, "Two different submit tokens",
			"The request carries two different tokens or keys. Send one.")
	case errors.Is(err, ErrIncompleteBody):
		p := problem("incomplete-body", http.StatusBadRequest, "The request broke off",
			"The body ended too early. Send the whole request again, with the same token.")
		p.Retryable = true
		return p
	case errors.Is(err, ErrInvalidToken):
		return problem("invalid-token", http.StatusForbidden, "The submit token is not valid here",
			"The token was issued for another form or another session, or not by this site. Load the form again.")
	case errors.Is(err, ErrNoSubject):
		return problem("no-subject", http.StatusForbidden, "Nobody's key",
			"A key of your own choice is accepted only from somebody who is known. Authenticate first.")
	case errors.Is(err, ErrMismatch):
		return problem("payload-mismatch", http.StatusUnprocessableEntity, "Another content was sent before",
			"This token has been used for a submit with other content, and that one stands. "+
				"To send this content, load the form again.")
	case errors.Is(err, ErrStoreAway):
		p := problem("store-unavailable", http.StatusServiceUnavailable, "Not available right now",
			"The request could not be brought to an end. Send it again, with the same token; that is safe.")
		p.Retryable, p.RetryAfter = true, 2*time.Second
		return p
	case errors.Is(err, ErrUnreadable):
		return problem("unreadable-record", http.StatusInternalServerError, "Already done",
			"This token has been used, but the first response can't be read any more.")
	}
	return problem("malformed-key", http.StatusBadRequest, "The submit token is malformed",
		"What was sent as the token or key is none: it was cut off or changed on the way. Send it exactly as it was given out.")
}

func problem(code string, status int, title, detail string) Problem {
	return Problem{Type: ProblemBase + code, Title: title, Status: status, Detail: detail}
}

// DefaultOnError answers err as a [Problem], or as a short HTML page if the client
// prefers text/html. Call it from your own [Config.OnError] for what that does
// not care about.
func DefaultOnError(w http.ResponseWriter, r *http.Request, err error) {
	p := ProblemOf(err)
	h := w.Header()
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(p.RetryAfter.Seconds()))))
	}
	h.Set("Cache-Control", "no-store")
	h.Del("Content-Length")
	if prefersHTML(r.Header.Values("Accept")) {
		h.Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(p.Status)
		_ = problemPage.Execute(w, p) // the client is gone
		return
	}
	h.Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client is gone
}

// prefersHTML reports whether an Accept header ranks text/html over JSON, as
// that of a browser's navigation does.
func prefersHTML(accept []string) bool {
	var html, other float64
	for _, v := range accept {
		for item := range strings.SplitSeq(v, ",") {
			media, params, _ := strings.Cut(strings.ToLower(item), ";")
			q := 1.0
			for param := range strings.SplitSeq(params, ";") {
				if w, ok := strings.CutPrefix(strings.TrimSpace(param), "q="); ok {
					if f, err := strconv.ParseFloat(w, 64); err == nil {
						q = f
					}
				}
			}
			switch media = strings.TrimSpace(media); {
			case media == "text/html", media == "application/xhtml+xml":
				html = max(html, q)
			case media == "application/json", media == "application/*", strings.HasSuffix(media, "+json"):
				other = max(other, q)
			}
		}
	}
	return html > other
}

var problemPage = template.Must(template.New("problem").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}}</title>
<style>
:root { color-scheme: light dark }
body { font: 1.05rem/1.6 system-ui, sans-serif; max-width: 34rem; margin: 18vh auto; padding: 0 1.5rem }
h1 { font-size: 1.5rem; line-height: 1.25 }
</style>
<h1>{{.Title}}</h1>
<p>{{.Detail}}</p>
{{if .Location}}<p><a href="{{.Location}}">See the result</a></p>{{end}}
{{if .Retryable}}<p>Reloading this page sends the same request again; that is safe.</p>{{end}}
</html>
`))
