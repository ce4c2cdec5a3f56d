package replay_test

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/submitonce/submitonce/replay"
)

func justCreated(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }

// sendTo brings one request through g.
func sendTo(g *replay.Guard, method, target, contentType, tok string, body io.Reader, next http.HandlerFunc) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, body)
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("X-Submit-Token", tok)
	w := httptest.NewRecorder()
	g.Serve(w, r, next)
	return w
}

// Where the handler left a large body unread, the target still tells requests
// apart.
func TestTheTargetIsComparedEvenIfTheBodyIsUnknown(t *testing.T) {
	g := newGuard(t, newMemstore(t), replay.Config{})
	tok, large := freshToken(t), strings.Repeat("x", 1<<20)
	answer(t, "first", sendTo(g, "POST", "/a", "text/plain", tok, strings.NewReader(large), justCreated), 201, "", false)
	answer(t, "the same", sendTo(g, "POST", "/a", "text/plain", tok, strings.NewReader(large), justCreated), 201, "", true)
	for _, other := range []struct{ method, target string }{{"POST", "/b"}, {"PUT", "/a"}, {"POST", "/a?x=1"}} {
		if w := sendTo(g, other.method, other.target, "text/plain", tok, strings.NewReader(large), justCreated); w.Code != 422 {
			t.Errorf("%s %s: %d, want 422", other.method, other.target, w.Code)
		}
	}
}

func TestABodyThatIsNoMultipartIsComparedByItsBytes(t *testing.T) {
	g := newGuard(t, newMemstore(t), replay.Config{})
	const kind = "multipart/form-data; boundary=b"
	tok := freshToken(t)
	answer(t, "first", sendTo(g, "POST", "/", kind, tok, strings.NewReader(`{"qty":1}`), justCreated), 201, "", false)
	answer(t, "the same", sendTo(g, "POST", "/", kind, tok, strings.NewReader(`{"qty":1}`), justCreated), 201, "", true)
	if w := sendTo(g, "POST", "/", kind, tok, strings.NewReader(`{"qty":9}`), justCreated); w.Code != 422 {
		t.Errorf("another quantity: %d, want 422", w.Code)
	}
}

// net/http reads such a form, and so does the guard.
func TestAFormsTypeMayHaveAMalformedParameter(t *testing.T) {
	g := newGuard(t, newMemstore(t), replay.Config{})
	for _, parameter := range []string{"; charset", "; charset=", "; charset=UTF-8; foo"} {
		r := httptest.NewRequest("POST", "/", strings.NewReader("item=tea&submit_token="+freshToken(t)))
		r.Header.Set("Content-Type", urlencoded+parameter)
		w := httptest.NewRecorder()
		g.Serve(w, r, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.FormValue("item")) }))
		answer(t, parameter, w, 200, "tea", false)
	}
}

func TestNoBodyStaysNoBody(t *testing.T) {
	g := newGuard(t, newMemstore(t), replay.Config{})
	r := httptest.NewRequest("POST", "/", http.NoBody)
	r.Header.Set("X-Submit-Token", freshToken(t))
	g.Serve(httptest.NewRecorder(), r, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Body != http.NoBody {
			t.Errorf("the handler's body is %T, want http.NoBody, which clients send as no body at all", r.Body)
		}
	}))
}

func TestALimitOnTheBodyIsTheHandlersToAnswer(t *testing.T) {
	g := newGuard(t, newMemstore(t), replay.Config{})
	tok, runs := freshToken(t), 0
	submit := func() *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "/", strings.NewReader(strings.Repeat("x", 2000)))
		r.Header.Set("X-Submit-Token", tok)
		w := httptest.NewRecorder()
		r.Body = http.MaxBytesReader(w, r.Body, 1000)
		g.Serve(w, r, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			runs++
			w.WriteHeader(http.StatusCreated) // it has no use for the body
		}))
		return w
	}
	answer(t, "first", submit(), 201, "", false)
	answer(t, "duplicate", submit(), 201, "", true)
	if runs != 1 {
		t.Errorf("%d runs, want 1", runs)
	}
}

// What outer middleware says with such a header for the replay stands beside what
// the first response says.
func TestAReplayKeepsFreshListHeadersOfOuterMiddleware(t *testing.T) {
	g := newGuard(t, newMemstore(t), replay.Config{})
	tok := freshToken(t)
	submit := func(outer string) http.Header {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header.Set("X-Submit-Token", tok)
		w := httptest.NewRecorder()
		for _, name := range []string{"Set-Cookie", "Vary", "Link"} {
			if outer != "" {
				w.Header().Set(name, outer)
			}
		}
		g.Serve(w, r, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for _, name := range []string{"Set-Cookie", "Vary", "Link"} {
				w.Header().Add(name, "handler")
			}
		}))
		return w.Result().Header
	}
	submit("")
	for name, values := range submit("fresh") {
		if got := strings.Join(values, ", "); (name == "Set-Cookie" || name == "Vary" || name == "Link") && got != "fresh, handler" {
			t.Errorf("%s: %q, want %q", name, got, "fresh, handler")
		}
	}
}

// The second token is found only when what the handler has left is read.
func TestASecondTokenInWhatTheHandlerLeftIsRefusedEachTime(t *testing.T) {
	g := newGuard(t, newMemstore(t), replay.Config{})
	tok := freshToken(t)
	var form bytes.Buffer
	m := multipart.NewWriter(&form)
	_ = m.WriteField("note", strings.Repeat("n", 100<<10))
	_ = m.WriteField("submit_token", freshToken(t))
	_ = m.Close()
	for range 2 {
		w := sendTo(g, "POST", "/", m.FormDataContentType(), tok, bytes.NewReader(form.Bytes()), justCreated)
		problemCode(t, "the client", w, 400, "conflicting-keys")
	}
}

// A handler that has heard of the limit and goes on all the same has worked on half
// a form.
func TestAnAnswerToHalfABodyIsNoOutcome(t *testing.T) {
	g := newGuard(t, newMemstore(t), replay.Config{})
	tok := freshToken(t)
	for range 2 {
		r := httptest.NewRequest("POST", "/", strings.NewReader(strings.Repeat("x", 2000)))
		r.Header.Set("X-Submit-Token", tok)
		w := httptest.NewRecorder()
		r.Body = http.MaxBytesReader(w, r.Body, 1000)
		g.Serve(w, r, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			_, _ = fmt.Fprint(w, len(b))
		}))
		answer(t, "each", w, 200, "1000", false)
	}
}
