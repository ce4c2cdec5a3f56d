package browsertest

import (
	"crypto/rand"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/memstore"
	"github.com/submitonce/submitonce/token"
)

// A post is a submit that has reached the server.
type post struct {
	token   string // in the header, or else in the form
	content string // without the token
	status  int    // of the answer; 0 while there is none
	replay  bool
}

// A shop is a server whose pages each test writes, and that counts what really
// happens.
type shop struct {
	t      testing.TB
	url    string
	issuer *token.Issuer
	guard  *replay.Guard

	pages   map[string]string // path: the form page's body
	scripts map[string]string // path: a script of the page
	others  map[string]http.HandlerFunc
	head    http.Header // what form pages have besides
	policy  string      // Content-Security-Policy of all pages

	// tokens and statuses stand before the two endpoints, if they are not nil,
	// and report whether they have answered.
	tokens, statuses func(w http.ResponseWriter, r *http.Request, n int) bool
	// front stands before the guard in the same way, at the nth submit.
	front func(w http.ResponseWriter, r *http.Request, n int) bool
	// cut lists the submits whose answer is lost on the way.
	cut  map[int]bool
	gate chan struct{} // holds handlers up until it is closed; nil if it is open
	// invalid answers a quantity of 0; the default is the form page with 422.
	invalid http.HandlerFunc

	mu     sync.Mutex
	posts  []*post
	runs   int      // of the handler
	orders []string // contents
	drawn  int      // tokens
	asked  int      // how a token stands
	users  int
}

func newShop(t testing.TB, config token.Config, changes ...func(*replay.Config)) *shop {
	t.Helper()
	s := &shop{t: t, pages: map[string]string{}, scripts: map[string]string{}, others: map[string]http.HandlerFunc{}, head: http.Header{}, cut: map[int]bool{}}
	s.policy = "default-src 'none'; script-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'"
	secret := make([]byte, token.MinKeyLen)
	_, _ = rand.Read(secret) // never fails
	ring, err := token.NewKeyring(secret)
	if err != nil {
		t.Fatal(err)
	}
	config.Subject = visitor
	if s.issuer, err = token.New(ring, config); err != nil {
		t.Fatal(err)
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() }) // it only ends what it has started
	policy := replay.Config{Tokens: s.issuer, Forms: []string{"", "checkout"}, Wait: 10 * time.Second}
	for _, change := range changes {
		change(&policy)
	}
	if s.guard, err = replay.New(store, policy); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(s.handler())
	server.Config.ErrorLog = nil
	server.Start()
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// visitor is who a token is for.
func visitor(r *http.Request) string {
	cookie, err := r.Cookie("session")
	if err != nil {
		return ""
	}
	return cookie.Value
}

func (s *shop) handler() http.Handler {
	mux := http.NewServeMux()
	script := token.BrowserScript()
	mux.Handle("GET /submitonce.js", script)
	mux.Handle("GET /submitonce.mjs", script)
	mux.HandleFunc("GET /log.js", func(w http.ResponseWriter, _ *http.Request) { sendScript(w, logScript) })
	mux.HandleFunc("GET /favicon.ico", http.NotFound)
	mux.HandleFunc("GET /submit-token", s.counted(&s.drawn, &s.tokens, s.issuer.Handler()))
	mux.HandleFunc("GET /submit-token/status", s.counted(&s.asked, &s.statuses, s.guard.Status()))
	mux.HandleFunc("GET /orders/{number}", func(w http.ResponseWriter, r *http.Request) {
		s.sendPage(w, 200, orderPage(r.PathValue("number")))
	})
	mux.HandleFunc("POST /", s.submit)
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		switch body, ok := s.pages[r.URL.Path]; {
		case s.others[r.URL.Path] != nil:
			s.others[r.URL.Path](w, r)
		case ok:
			s.sendForm(w, r, 200, body)
		case s.scripts[r.URL.Path] != "":
			sendScript(w, s.scripts[r.URL.Path])
		default:
			http.NotFound(w, r)
		}
	})
	return mux
}

// logScript notes the client's events and what a policy has forbidden.
const logScript = `
window.events = [];
for (const type of ["ready", "success", "retry", "changed", "stale", "error"]) {
  document.addEventListener("submitonce:" + type, ({ detail }) => {
    window.events.push(type + (detail.replayed ? "(replayed)" : "") + (detail.reason ? "(" + detail.reason + ")" : ""));
  });
}
document.addEventListener("securitypolicyviolation", (e) => window.events.push("forbidden " + e.violatedDirective));
addEventListener("pageshow", (e) => { window.fromCache = e.persisted; });
`

func sendScript(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
	_, _ = io.WriteString(w, text)
}

func orderPage(number string) string {
	return `<title>Order</title><p>Your order: <b id="order">` + html.EscapeString(number) + `</b></p><a id="again" href="/">Order another</a>`
}

func (s *shop) counted(count *int, before *func(http.ResponseWriter, *http.Request, int) bool, next http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		*count++
		n := *count
		s.mu.Unlock()
		if *before == nil || !(*before)(w, r, n) {
			next.ServeHTTP(w, r)
		}
	}
}

// sendForm sends a form page, with the server's own field where it says {{field}}.

// A visitor who is not known yet becomes so.
func (s *shop) sendForm(w http.ResponseWriter, r *http.Request, status int, body string) {
	if visitor(r) == "" {
		s.mu.Lock()
		s.users++
		cookie := &http.Cookie{Name: "session", Value: fmt.Sprint("visitor-", s.users), Path: "/"}
		s.mu.Unlock()
		http.SetCookie(w, cookie)
		r.AddCookie(cookie)
	}
	if strings.Contains(body, "{{field}}") {
		body = strings.ReplaceAll(body, "{{field}}", string(s.issuer.Field(w, r, "checkout")))
	}
	for name, values := range s.head {
		w.Header()[name] = values
	}
	s.sendPage(w, status, body)
}

func (s *shop) sendPage(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", s.policy)
	w.WriteHeader(status)
	script := `<script src="/submitonce.js"></script>`
	if strings.Contains(body, "<script") {
		script = "" // it brings its own
	}
	_, _ = fmt.Fprintf(w, "<!doctype html><html lang=en><meta charset=utf-8><script src=/log.js></script>%s%s", script, body)
}

// submit is what stands at the address of all forms.

// order is the handler behind the guard.

// until waits until a condition holds, and fails the test if it never does.

// waitForPosts waits until n submits have arrived.

// waitForAnswers waits until n submits have been answered.

// seen returns what has arrived so far.

// gateway returns a channel and what closes it, which happens at the end of the

// test at the latest.
func (s *shop) gateway() (gate chan struct{}, open func()) {
	gate = make(chan struct{})
	open = sync.OnceFunc(func() { close(gate) })
	s.t.Cleanup(open)
	return gate, open
}

// holdHandlers holds all handlers up until open is called.
func (s *shop) holdHandlers() (open func()) {
	s.gate, open = s.gateway()
	return open
}

// holdTokens holds all tokens back until arrive is called.
func (s *shop) holdTokens() (arrive func()) {
	gate, arrive := s.gateway()
	s.tokens = func(http.ResponseWriter, *http.Request, int) bool { <-gate; return false }
	return arrive
}

// mend lets answers through again.
func (s *shop) mend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.cut)
}

// wantOrders fails the test unless these orders exist, and no others, each made

// by one run.

// wantOneToken fails the test unless all n submits had the same token.
