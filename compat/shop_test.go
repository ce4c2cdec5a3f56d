package compat

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/submitonce/submitonce/internal/testserver"
	"github.com/submitonce/submitonce/middleware/nethttp"
	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/memstore"
	"github.com/submitonce/submitonce/token"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// patience is how long anything may take that has to happen.
const patience = 10 * time.Second

// A shop is an app behind a real server, and its clients. Its handlers call run.
type shop struct {
	*testing.T
	guard  *replay.Guard
	tokens *token.Issuer
	once   func(http.Handler) http.Handler // guards, for net/http

	runs     atomic.Int64 // of handlers
	arrivals atomic.Int64 // of requests at the server
	awaited  atomic.Int64 // what arrivals must be before a handler goes on
	errors   locked       // what the server has logged

	url    string
	client *http.Client
}

// newShop returns a shop whose guard keeps its records in memory.
func newShop(t *testing.T) *shop {
	t.Helper()
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return newShopOn(t, store, replay.Config{})
}

func newShopOn(t *testing.T, store replay.Store, c replay.Config) *shop {
	t.Helper()
	ring, err := token.NewKeyring([]byte("a secret of these tests, and of nobody else"))
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{T: t}
	if s.tokens, err = token.New(ring, token.Config{}); err != nil {
		t.Fatal(err)
	}
	c.Tokens = s.tokens
	c.Logger = slog.New(slog.DiscardHandler)
	if s.guard, err = replay.New(store, c); err != nil {
		t.Fatal(err)
	}
	s.once = nethttp.Middleware(s.guard)
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	s.client = &http.Client{
		Timeout:       patience,
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s
}

// serve starts the server.
func (s *shop) serve(h http.Handler) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.arrivals.Add(1)
		h.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = log.New(&s.errors, "", 0)
	server.Start()
	s.Cleanup(func() {
		if s.Failed() {
			server.CloseClientConnections() // a handler may still be waiting
		}
		server.Close()
	})
	s.url = server.URL
}

// run counts a run of a handler and returns which one it is. It does not return
// before all of the requests are there that are sent at the same time.
func (s *shop) run() int64 {
	n := s.runs.Add(1)
	s.until("all requests", func() bool { return s.arrivals.Load() >= s.awaited.Load() })
	if s.awaited.Load() > 0 {
		time.Sleep(20 * time.Millisecond) // they have yet to get from the server to the guard
	}
	return n
}

func (s *shop) until(what string, holds func() bool) {
	for end := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			s.Errorf("not in %v: %s", patience, what)
			return
		}
	}
}

// ran checks how often a handler has run.
func (s *shop) ran(want int64) {
	s.Helper()
	if n := s.runs.Load(); n != want {
		s.Errorf("the handler ran %d times, want %d", n, want)
	}
}

// token returns a fresh token.
func (s *shop) token() string { return s.tokens.Issue("", "").Value }

// A request is a form that a client submits. Its token is a fresh one if empty.
type request struct {
	method, path, token string
	body                string
	kind                string // Content-Type; that of a form if empty
	header              http.Header
}

// An answer is what a client gets.
type answer struct {
	status int
	header http.Header
	body   string
	err    error
}

func (a answer) replayed() bool { return a.header.Get(replay.DefaultReplayedHeader) == "true" }

// send submits r and reads the answer.
func (s *shop) send(r request) (a answer) {
	req, err := http.NewRequestWithContext(context.Background(), or(r.method, "POST"), s.url+r.path, strings.NewReader(r.body))
	if err != nil {
		return answer{err: err}
	}
	maps.Copy(req.Header, r.header)
	req.Header.Set("Content-Type", or(r.kind, "application/x-www-form-urlencoded"))
	req.Header.Set(token.HeaderName, or(r.token, s.token()))
	resp, err := s.client.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(b), err}
}

// answers checks what r is answered with.
func (s *shop) answers(r request, status int, body string) answer {
	s.Helper()
	a := s.send(r)
	if a.err != nil || a.status != status || a.body != body {
		s.Errorf("answer is %d %q, %v; want %d %q", a.status, a.body, a.err, status, body)
	}
	return a
}

// runsOnce submits r three times after each other, and then, under another token,
// three times at the same time. Each three want one run and three equal answers, of
// which two are marked as replays. A %d in body stands for the number of the run.
func (s *shop) runsOnce(r request, status int, body string) {
	s.Helper()
	runs := s.runs.Load()
	check := func(when string, answers []answer) {
		s.Helper()
		runs++
		want := body
		if strings.Contains(body, "%d") {
			want = fmt.Sprintf(body, runs)
		}
		fresh := 0
		for i, a := range answers {
			if a.err != nil || a.status != status || a.body != want {
				s.Errorf("%s, answer %d: %d %q, %v; want %d %q", when, i, a.status, a.body, a.err, status, want)
			}
			for _, name := range []string{"Content-Type", "Location", "Set-Cookie", "X-Order"} {
				if got, want := a.header.Get(name), answers[0].header.Get(name); got != want {
					s.Errorf("%s, answer %d: %s is %q, want %q as in the first", when, i, name, got, want)
				}
			}
			if !a.replayed() {
				fresh++
			}
		}
		if fresh != 1 {
			s.Errorf("%s: %d answers are not marked as replays, want 1", when, fresh)
		}
		s.ran(runs)
	}

	r.token = s.token()
	after := make([]answer, 3)
	for i := range after {
		after[i] = s.send(r)
	}
	check("after each other", after)
	if after[0].replayed() {
		s.Error("the first answer is marked as a replay")
	}

	r.token = s.token()
	check("at the same time", s.together(r, 3))
}

// together sends r n times at the same time.
func (s *shop) together(r request, n int) []answer {
	s.awaited.Store(s.arrivals.Load() + int64(n))
	defer s.awaited.Store(0)
	answers := make([]answer, n)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() { answers[i] = s.send(r) })
	}
	wg.Wait()
	return answers
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// locked is a buffer for logs.
type locked struct {
	mu sync.Mutex
	b  strings.Builder // guarded by mu
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
