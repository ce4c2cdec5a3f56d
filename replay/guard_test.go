package replay_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/memstore"
	"github.com/submitonce/submitonce/token"
)

func newTokens(t testing.TB) *token.Issuer {
	t.Helper()
	ring, err := token.NewKeyring(bytes.Repeat([]byte("k"), 32))
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := token.New(ring, token.Config{Subject: func(r *http.Request) string { return r.Header.Get("X-User") }})
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

func newMemstore(t testing.TB) *memstore.Store {
	t.Helper()
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func newGuard(t testing.TB, store replay.Store, c replay.Config) *replay.Guard {
	t.Helper()
	if c.Tokens == nil && !c.IdempotencyKey && c.Key == nil {
		c.Tokens = newTokens(t)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	g, err := replay.New(store, c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func freshToken(t testing.TB) string {
	t.Helper()
	return newTokens(t).Issue("", "").Value
}

// serve brings one POST through g.
func serve(g *replay.Guard, ctx context.Context, tok, body string, next http.HandlerFunc) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/orders", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if tok != "" {
		r.Header.Set("X-Submit-Token", tok)
	}
	w := httptest.NewRecorder()
	g.Serve(w, r, next)
	return w
}

// answer checks what a client got, and whether it is marked as a replay.
func answer(t *testing.T, who string, w *httptest.ResponseRecorder, status int, body string, replayed bool) {
	t.Helper()
	if w.Code != status || w.Body.String() != body {
		t.Errorf("%s got %d %q, want %d %q", who, w.Code, w.Body, status, body)
	}
	if got := w.Header().Get("Idempotent-Replayed") == "true"; got != replayed {
		t.Errorf("%s: marked as a replay: %v, want %v", who, got, replayed)
	}
}

// problemCode checks for a problem and returns nothing else of it.
func problemCode(t *testing.T, who string, w *httptest.ResponseRecorder, status int, code string) {
	t.Helper()
	if w.Code != status || !strings.Contains(w.Body.String(), `"`+replay.ProblemBase+code+`"`) {
		t.Errorf("%s got %d %s, want %d with the problem %s", who, w.Code, w.Body, status, code)
	}
}

// A countingStore counts calls, and lets a test step in before each.
type countingStore struct {
	replay.Store
	claims, looks, seals, extends, releases atomic.Int64

	mu     sync.Mutex
	before func(call string) error // guarded by mu
}

func (s *countingStore) onCall(f func(call string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

func (s *countingStore) enter(n *atomic.Int64, call string) error {
	n.Add(1)
	s.mu.Lock()
	f := s.before
	s.mu.Unlock()
	if f == nil {
		return nil
	}
	return f(call)
}

func (s *countingStore) Claim(ctx context.Context, c replay.Claim) (replay.Record, replay.Hold, error) {
	if err := s.enter(&s.claims, "claim"); err != nil {
		return replay.Record{}, nil, err
	}
	rec, hold, err := s.Store.Claim(ctx, c)
	if hold != nil {
		hold = &countingHold{hold, s}
	}
	return rec, hold, err
}

func (s *countingStore) Look(ctx context.Context, key string) (replay.Record, error) {
	if err := s.enter(&s.looks, "look"); err != nil {
		return replay.Record{}, err
	}
	return s.Store.Look(ctx, key)
}

func (s *countingStore) Watch(ctx context.Context, key string) (<-chan struct{}, func(), error) {
	return s.Store.(replay.Watcher).Watch(ctx, key)
}

func (s *countingStore) total() int64 {
	return s.claims.Load() + s.looks.Load() + s.seals.Load() + s.extends.Load() + s.releases.Load()
}

type countingHold struct {
	replay.Hold
	s *countingStore
}

func (h *countingHold) Extend(ctx context.Context, lease duration) error {
	if err := h.s.enter(&h.s.extends, "extend"); err != nil {
		return err
	}
	return h.Hold.Extend(ctx, lease)
}

func (h *countingHold) Seal(ctx context.Context, response []byte, retention duration) error {
	if err := h.s.enter(&h.s.seals, "seal"); err != nil {
		return err
	}
	return h.Hold.Seal(ctx, response, retention)
}

func (h *countingHold) Release(ctx context.Context) error {
	if err := h.s.enter(&h.s.releases, "release"); err != nil {
		return err
	}
	return h.Hold.Release(ctx)
}

var errAway = errors.New("connection refused")

func created(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, body)
	}
}
