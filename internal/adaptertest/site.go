package adaptertest

import (
	"bytes"
	"cmp"
	"context"
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

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/token"
)

// A site is one app behind a real server, with a client.
type site struct {
	*testing.T
	framework Framework
	store     *watched
	tokens    *token.Issuer
	url       string
	server    *httptest.Server
	serverLog lockedBuffer
	client    *http.Client
	runs      atomic.Int64 // of handlers behind count
}

func newSite(t *testing.T, f Framework, store replay.Store) *site {
	s := &site{T: t, framework: f, store: watch(store)}
	s.tokens = s.issuer(token.Config{Subject: func(r *http.Request) string { return r.Header.Get("X-User") }})
	s.client = s.newClient()
	return s
}

func (s *site) issuer(c token.Config) *token.Issuer {
	s.Helper()
	ring, err := token.NewKeyring([]byte("a secret of the test suite, and of nobody else"))
	if err != nil {
		s.Fatal(err)
	}
	i, err := token.New(ring, c)
	if err != nil {
		s.Fatal(err)
	}
	return i
}

// newClient returns a client that shows responses as they are.
func (s *site) newClient() *http.Client {
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}
	s.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Timeout:       30 * time.Second, // so that a broken adapter fails and does not hang
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// guard returns a guard over the site's store.
func (s *site) guard(c replay.Config) *replay.Guard {
	s.Helper()
	if c.Tokens == nil && c.Key == nil {
		c.Tokens = s.tokens
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.StoreTimeout = cmp.Or(c.StoreTimeout, 10*time.Second) // however busy the machine is
	g, err := replay.New(s.store, c)
	if err != nil {
		s.Fatal(err)
	}
	return g
}

// open serves the app behind a guard of its own.
func (s *site) open(a App, c replay.Config) {
	s.Helper()
	if a.Guards == nil {
		a.Guards = []*replay.Guard{s.guard(c)}
	}
	s.serve(s.framework.Build(a))
}

// orders serves POST /orders by h behind a guard.
func (s *site) orders(h Handler, c replay.Config) {
	s.Helper()
	s.open(App{Routes: s.route(h)}, c)
}

// route returns POST /orders by h, whose runs are counted.
func (s *site) route(h Handler) []Route { return []Route{{"POST", "/orders", s.count(h)}} }

func (s *site) count(h Handler) Handler {
	return func(x Exchange) error {
		s.runs.Add(1)
		return h(x)
	}
}

// serve starts a server; the site's requests go to the one that was started
// last.
func (s *site) serve(h http.Handler) {
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = log.New(&s.serverLog, "", 0)
	server.Start()
	s.Cleanup(func() {
		if s.Failed() {
			server.CloseClientConnections() // a handler may still be waiting
		}
		server.Close()
	})
	s.server, s.url = server, server.URL
}

// token returns a fresh token for nobody in particular.
func (s *site) token() string { return s.tokens.Issue("", "").Value }

// A request is what a client sends. Zero fields mean POST /orders without token
// and body.
type request struct {
	method, path string
	token        string
	kind         string // Content-Type
	body         string
	stream       io.Reader // instead of body, without a length
	header       http.Header
	ctx          context.Context
}

// An answer is what a client gets.
type answer struct {
	status  int
	header  http.Header
	body    []byte
	length  int64 // Content-Length; -1 if none was sent
	trailer http.Header
}

// send sends r and reads the answer, which has to come.
func (s *site) send(r request) answer {
	s.Helper()
	a, err := s.try(r)
	if err != nil {
		s.Fatalf("%s %s: %v", r.method, r.path, err)
	}
	return a
}

// sent sends r in the background.
func (s *site) sent(r request) <-chan result {
	c := make(chan result, 1)
	go func() {
		a, err := s.try(r)
		c <- result{a, err}
	}()
	return c
}

type result struct {
	answer
	err error
}

func (s *site) try(r request) (answer, error) {
	var body io.Reader = strings.NewReader(r.body)
	if r.stream != nil {
		body = struct{ io.Reader }{r.stream} // hides the length
	}
	ctx := s.Context()
	if r.ctx != nil {
		ctx = r.ctx
	}
	req, err := http.NewRequestWithContext(ctx, or(r.method, "POST"), s.url+or(r.path, "/orders"), body)
	if err != nil {
		return answer{}, err
	}
	maps.Copy(req.Header, r.header)
	if r.token != "" {
		req.Header.Set(token.HeaderName, r.token)
	}
	if r.kind != "" {
		req.Header.Set("Content-Type", r.kind)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, b, resp.ContentLength, resp.Trailer}, err
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
