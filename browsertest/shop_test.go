package browsertest

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
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
	cut map[int]bool
	// gate holds handlers up until it is closed.
	gate chan struct{}
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
func (s *shop) submit(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the browser has given this one up
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	p := &post{token: r.Header.Get(token.HeaderName)}
	copied := r.Clone(r.Context())
	copied.Body = io.NopCloser(bytes.NewReader(body))
	fields := readFields(copied)
	if p.token == "" {
		p.token = fields[token.FieldName]
	}
	p.content = contentOf(fields)
	s.mu.Lock()
	s.posts = append(s.posts, p)
	n := len(s.posts)
	s.mu.Unlock()
	if s.front != nil && s.front(w, r, n) {
		return
	}

	held := httptest.NewRecorder()
	s.guard.Serve(held, r, http.HandlerFunc(s.order))
	s.mu.Lock()
	p.status = held.Code
	p.replay = held.Header().Get(replay.DefaultReplayedHeader) != ""
	lost := s.cut[n]
	s.mu.Unlock()
	if lost {
		panic(http.ErrAbortHandler) // the line goes dead
	}
	for name, values := range held.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(held.Code)
	_, _ = w.Write(held.Body.Bytes())
}

// order is the handler behind the guard.
func (s *shop) order(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.runs++
	s.mu.Unlock()
	if s.gate != nil {
		<-s.gate
	}
	fields := readFields(r)
	if fields["quantity"] == "0" {
		s.refuse(w, r)
		return
	}
	s.mu.Lock()
	s.orders = append(s.orders, contentOf(fields))
	number := fmt.Sprint(len(s.orders))
	s.mu.Unlock()
	switch {
	case !strings.Contains(r.Header.Get("Accept"), "text/html"):
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]string{"order_no": number})
	case fields["answer"] == "page":
		s.sendPage(w, 200, orderPage(number))
	default:
		http.Redirect(w, r, "/orders/"+number, http.StatusSeeOther)
	}
}

func (s *shop) refuse(w http.ResponseWriter, r *http.Request) {
	switch {
	case s.invalid != nil:
		s.invalid(w, r)
	case strings.Contains(r.Header.Get("Accept"), "text/html"):
		s.sendForm(w, r, http.StatusUnprocessableEntity, "<p id=problem>At least one.</p>"+s.pages[r.URL.Path])
	default:
		http.Error(w, `{"quantity":"at least one"}`, http.StatusUnprocessableEntity)
	}
}

func readFields(r *http.Request) map[string]string {
	fields := map[string]string{}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		_ = json.NewDecoder(r.Body).Decode(&fields) // a test that sends nonsense finds nothing
		return fields
	}
	_ = r.ParseMultipartForm(1 << 20) // nor here
	for name := range r.PostForm {
		fields[name] = r.PostForm.Get(name)
	}
	return fields
}

func contentOf(fields map[string]string) string {
	return fields["item"] + " x " + fields["quantity"]
}

// until waits until a condition holds, and fails the test if it never does.
func (s *shop) until(what string, holds func() bool, state ...func() string) {
	s.t.Helper()
	deadline := time.After(patience)
	for tick := time.NewTicker(15 * time.Millisecond); ; {
		if holds() {
			tick.Stop()
			return
		}
		select {
		case <-deadline:
			tick.Stop()
			report := s.report()
			for _, f := range state {
				report += "\n" + f()
			}
			s.t.Fatalf("not in %v: %s\n%s", patience, what, report)
		case <-tick.C:
		}
	}
}

// waitForPosts waits until n submits have arrived.
func (s *shop) waitForPosts(n int) {
	s.t.Helper()
	s.until(fmt.Sprintf("%d submits", n), func() bool { return len(s.seen()) >= n })
}

// waitForAnswers waits until n submits have been answered.
func (s *shop) waitForAnswers(n int) {
	s.t.Helper()
	s.until(fmt.Sprintf("%d answers", n), func() bool {
		answered := 0
		for _, p := range s.seen() {
			if p.status != 0 {
				answered++
			}
		}
		return answered >= n
	})
}

func (s *shop) waitForRuns(n int) {
	s.t.Helper()
	s.until(fmt.Sprintf("%d handler runs", n), func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.runs >= n
	})
}

// seen returns what has arrived so far.
func (s *shop) seen() []post {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]post, len(s.posts))
	for i, p := range s.posts {
		all[i] = *p
	}
	return all
}

func (s *shop) report() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "orders %q, %d runs, %d tokens drawn, %d asked about; submits:", s.orders, s.runs, s.drawn, s.asked)
	for _, p := range s.posts {
		fmt.Fprintf(&b, "\n  %s %q -> %d, replay %t", token.Redact(p.token), p.content, p.status, p.replay)
	}
	return b.String()
}

// mend lets answers through again.
func (s *shop) mend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.cut)
}

// wantOrders fails the test unless these orders exist, and no others, each made
// by one run.
func (s *shop) wantOrders(want ...string) {
	s.t.Helper()
	s.mu.Lock()
	got := fmt.Sprintf("%q", s.orders)
	s.mu.Unlock()
	if got != fmt.Sprintf("%q", want) {
		s.t.Fatalf("want the orders %q; %s", want, s.report())
	}
}

// wantOneToken fails the test unless all n submits had the same token.
func (s *shop) wantOneToken(n int) {
	s.t.Helper()
	all := s.seen()
	if len(all) != n {
		s.t.Fatalf("want %d submits; %s", n, s.report())
	}
	for _, p := range all {
		if p.token == "" || p.token != all[0].token {
			s.t.Fatalf("want one token; %s", s.report())
		}
	}
}
