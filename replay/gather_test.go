package replay_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/submitonce/submitonce/replay"
)

func TestTenThousandDuplicatesCostTheStoreOneClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &countingStore{Store: newMemstore(t)}
		g := newGuard(t, store, replay.Config{})
		tok := freshToken(t)
		var runs atomic.Int32
		var wg sync.WaitGroup
		const n = 10_000
		answers := make([]*httptest.ResponseRecorder, n)
		for i := range n {
			wg.Go(func() {
				answers[i] = serve(g, t.Context(), tok, "{}", func(w http.ResponseWriter, r *http.Request) {
					runs.Add(1)
					time.Sleep(200 * time.Millisecond)
					created("order 1")(w, r)
				})
			})
		}
		wg.Wait()
		replays := 0
		for i, w := range answers {
			if w.Code != 201 || w.Body.String() != "order 1" {
				t.Fatalf("answer %d: %d %q", i, w.Code, w.Body)
			}
			if w.Header().Get("Idempotent-Replayed") != "" {
				replays++
			}
		}
		if runs.Load() != 1 || replays != n-1 {
			t.Errorf("%d runs and %d replays, want 1 and %d", runs.Load(), replays, n-1)
		}
		if c, s := store.claims.Load(), store.seals.Load(); c != 1 || s != 1 {
			t.Errorf("%d claims and %d seals, want 1 and 1", c, s)
		}
	})
}

func TestReleaseLetsExactlyOneWaiterRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemstore(t)
		guards := []*replay.Guard{newGuard(t, store, replay.Config{}), newGuard(t, store, replay.Config{})}
		tok := freshToken(t)
		var runs, atOnce atomic.Int32
		handler := func(w http.ResponseWriter, r *http.Request) {
			if atOnce.Add(1) > 1 {
				t.Error("two handlers at once")
			}
			defer atOnce.Add(-1)
			n := runs.Add(1)
			time.Sleep(100 * time.Millisecond)
			if n < 3 {
				w.WriteHeader(http.StatusUnprocessableEntity)
				return
			}
			created("third time")(w, r)
		}
		var wg sync.WaitGroup
		var ok, refused atomic.Int32
		for i := range 40 {
			wg.Go(func() {
				switch w := serve(guards[i%2], t.Context(), tok, "{}", handler); w.Code {
				case 201:
					ok.Add(1)
				case 422:
					refused.Add(1)
				default:
					t.Errorf("status %d: %s", w.Code, w.Body)
				}
			})
		}
		began := time.Now()
		wg.Wait()
		if runs.Load() != 3 || refused.Load() != 2 || ok.Load() != 38 {
			t.Errorf("%d runs, %d refused, %d ok; want 3, 2, 38", runs.Load(), refused.Load(), ok.Load())
		}
		if took := time.Since(began); took > 400*time.Millisecond {
			t.Errorf("took %v: waiters did not wake at the release", took)
		}
	})
}

func TestWaiterWhoseClientLeavesHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemstore(t)
		owner := newGuard(t, store, replay.Config{}) // another process
		g := newGuard(t, store, replay.Config{})
		tok := freshToken(t)
		gone, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			serve(owner, t.Context(), tok, "{}", func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(5 * time.Second)
				w.WriteHeader(http.StatusServiceUnavailable) // gives up without effect
			})
		})
		synctest.Wait()
		var b, c *httptest.ResponseRecorder
		began := time.Now()
		wg.Go(func() {
			c = serve(g, gone, tok, "{}", created("no")) // leads the wait, then leaves
			if took := time.Since(began); took != time.Second {
				t.Errorf("the leaving waiter returned after %v, want 1s", took)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			b = serve(g, t.Context(), tok, "{}", created("second"))
			if took := time.Since(began); took != 5*time.Second {
				t.Errorf("the waiter that stayed was answered after %v, want 5s", took)
			}
		})
		time.Sleep(time.Second)
		leave()
		wg.Wait()
		problemCode(t, "the waiter that left", c, 409, "in-progress")
		answer(t, "the waiter that stayed", b, 201, "second", false)
	})
}

func TestWaitIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemstore(t)
		c := replay.Config{Wait: time.Second}
		local, remote := newGuard(t, store, c), newGuard(t, store, c)
		tok := freshToken(t)
		var wg sync.WaitGroup
		wg.Go(func() {
			w := serve(local, t.Context(), tok, "{}", func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(3 * time.Second)
				created("slow")(w, r)
			})
			answer(t, "the owner", w, 201, "slow", false)
		})
		synctest.Wait()
		for who, g := range map[string]*replay.Guard{"beside the owner": local, "elsewhere": remote} {
			wg.Go(func() {
				began := time.Now()
				w := serve(g, t.Context(), tok, "{}", created("no"))
				problemCode(t, "a duplicate "+who, w, 409, "in-progress")
				if w.Header().Get("Retry-After") == "" {
					t.Errorf("a duplicate %s got no Retry-After", who)
				}
				if took := time.Since(began); took != time.Second {
					t.Errorf("a duplicate %s waited %v, want 1s", who, took)
				}
			})
		}
		wg.Wait()
		answer(t, "a later duplicate", serve(remote, t.Context(), tok, "{}", created("no")), 201, "slow", true)
	})
}

func TestHangUpDoesNotCancelTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type ctxKey struct{}
		store := newMemstore(t)
		g := newGuard(t, store, replay.Config{})
		tok := freshToken(t)
		ctx, hangUp := context.WithCancel(context.WithValue(t.Context(), ctxKey{}, "kept"))
		var during error
		var value any
		serve(g, ctx, tok, "{}", func(w http.ResponseWriter, r *http.Request) {
			hangUp()
			synctest.Wait()
			during, value = r.Context().Err(), r.Context().Value(ctxKey{})
			if cause := context.Cause(r.Context()); cause != nil {
				t.Errorf("cause %v, want none", cause)
			}
			created("order 1")(w, r)
		})
		if during != nil || value != "kept" {
			t.Errorf("after the hang-up: error %v, value %v; want none, kept", during, value)
		}
		answer(t, "the second click", serve(g, t.Context(), tok, "{}", created("no")), 201, "order 1", true)
	})
}

func TestKeepClientCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t, newMemstore(t), replay.Config{KeepClientCancel: true})
		ctx, hangUp := context.WithCancel(t.Context())
		var during error
		serve(g, ctx, freshToken(t), "{}", func(w http.ResponseWriter, r *http.Request) {
			hangUp()
			<-r.Context().Done()
			during = r.Context().Err()
		})
		if during != context.Canceled {
			t.Errorf("after the hang-up: %v, want Canceled", during)
		}
	})
}
