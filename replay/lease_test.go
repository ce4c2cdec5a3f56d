package replay_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/submitonce/submitonce/replay"
)

type duration = time.Duration

// abandon claims the token's key as a process does that dies thereafter.
func abandon(t *testing.T, store replay.Store, tok string, lease duration) {
	t.Helper()
	died := errors.New("died")
	dying := &dyingStore{Store: store, lease: lease, err: died}
	g := newGuard(t, dying, replay.Config{})
	serve(g, t.Context(), tok, "{}", created("never"))
}

// A dyingStore claims, and then nothing more is heard of the claimer.
type dyingStore struct {
	replay.Store
	lease duration
	err   error
}

func (s *dyingStore) Claim(ctx context.Context, c replay.Claim) (replay.Record, replay.Hold, error) {
	c.Lease = s.lease
	_, _, err := s.Store.Claim(ctx, c)
	return replay.Record{}, nil, errors.Join(err, s.err)
}

func TestHeartbeatKeepsTheLeaseOfASlowHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &countingStore{Store: newMemstore(t)}
		first := newGuard(t, store, replay.Config{Lease: time.Second})
		second := newGuard(t, store, replay.Config{Lease: time.Second}) // stands for another process
		tok := freshToken(t)
		var runs atomic.Int32
		slow := func(w http.ResponseWriter, r *http.Request) {
			runs.Add(1)
			time.Sleep(3 * time.Second)
			created("order 1")(w, r)
		}
		began := time.Now()
		var a, b *httptest.ResponseRecorder
		var wg sync.WaitGroup
		wg.Go(func() { a = serve(first, t.Context(), tok, "{}", slow) })
		wg.Go(func() {
			time.Sleep(1500 * time.Millisecond)
			b = serve(second, t.Context(), tok, "{}", slow)
		})
		wg.Wait()
		answer(t, "the owner", a, 201, "order 1", false)
		answer(t, "the duplicate", b, 201, "order 1", true)
		if n := runs.Load(); n != 1 {
			t.Errorf("%d runs, want 1", n)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("the duplicate was answered after %v, want 3s: at once with the seal", took)
		}
		n := store.extends.Load()
		if n < 5 || n > 9 {
			t.Errorf("%d heartbeats in 3 s with a lease of 1 s, want one each 333 to 500 ms", n)
		}
		time.Sleep(time.Minute)
		if later := store.extends.Load(); later != n {
			t.Errorf("%d heartbeats after the handler had returned", later-n)
		}
	})
}

func TestHandlerBeyondItsTimeoutLosesItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemstore(t)
		c := replay.Config{Lease: time.Second, HandlerTimeout: 2 * time.Second, Wait: time.Minute}
		tok := freshToken(t)
		var cause error
		var wg sync.WaitGroup
		wg.Go(func() {
			serve(newGuard(t, store, c), t.Context(), tok, "{}", func(w http.ResponseWriter, r *http.Request) {
				<-r.Context().Done()
				cause = context.Cause(r.Context())
				time.Sleep(time.Hour) // deaf to its context
			})
		})
		synctest.Wait()
		var attempt int
		w := serve(newGuard(t, store, c), t.Context(), tok, "{}", func(w http.ResponseWriter, r *http.Request) {
			attempt = replay.Attempt(r.Context())
			created("second")(w, r)
		})
		answer(t, "the waiter", w, 201, "second", false)
		if attempt != 2 {
			t.Errorf("attempt %d, want 2", attempt)
		}
		wg.Wait()
		if !errors.Is(cause, context.DeadlineExceeded) {
			t.Errorf("the handler's context ended with %v, want DeadlineExceeded", cause)
		}
	})
}

func TestHandlerBeyondItsTimeoutIsTakenOverInItsOwnProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t, newMemstore(t), replay.Config{Lease: time.Second, HandlerTimeout: 2 * time.Second, Wait: time.Minute})
		tok := freshToken(t)
		var wg sync.WaitGroup
		wg.Go(func() {
			w := serve(g, t.Context(), tok, "{}", func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(time.Hour) // deaf to its context
				created("first")(w, r)
			})
			answer(t, "the late owner", w, 201, "second", true)
		})
		synctest.Wait()
		for range 2 {
			wg.Go(func() {
				w := serve(g, t.Context(), tok, "{}", created("second"))
				answer(t, "a waiter", w, 201, "second", w.Header().Get("Idempotent-Replayed") == "true")
			})
		}
		wg.Wait()
	})
}

func TestAbandonedClaimIsTakenOverWhenItsLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemstore(t)
		tok := freshToken(t)
		abandon(t, store, tok, 30*time.Second)
		time.Sleep(10 * time.Second)

		impatient := newGuard(t, store, replay.Config{Wait: -1})
		w := serve(impatient, t.Context(), tok, "{}", created("no"))
		problemCode(t, "an impatient duplicate", w, 409, "in-progress")
		if got := w.Header().Get("Retry-After"); got != "20" {
			t.Errorf("Retry-After %q, want 20, the rest of the lease", got)
		}

		began := time.Now()
		var attempt int
		var key string
		w = serve(newGuard(t, store, replay.Config{}), t.Context(), tok, "{}", func(w http.ResponseWriter, r *http.Request) {
			attempt, key = replay.Attempt(r.Context()), replay.Key(r.Context())
			created("taken over")(w, r)
		})
		answer(t, "the duplicate that waits", w, 201, "taken over", false)
		if attempt != 2 || len(key) != 56 {
			t.Errorf("the handler saw attempt %d and key %q, want 2 and a key of 56 bytes", attempt, key)
		}
		if took := time.Since(began).Round(10 * time.Millisecond); took != 20*time.Second {
			t.Errorf("taken over after %v, want 20s", took)
		}
	})
}

func TestLateOwnerGetsTheOutcomeThatStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := newMemstore(t)
		paused := &countingStore{Store: mem}
		paused.onCall(func(call string) error { // its heartbeats do not get through
			if call == "extend" {
				return errAway
			}
			return nil
		})
		tok := freshToken(t)
		var late *httptest.ResponseRecorder
		var wg sync.WaitGroup
		wg.Go(func() {
			g := newGuard(t, paused, replay.Config{Lease: time.Second})
			late = serve(g, t.Context(), tok, "{}", func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Late", "yes")
				time.Sleep(10 * time.Second)
				created("late")(w, r)
			})
		})
		synctest.Wait()
		quick := newGuard(t, mem, replay.Config{Lease: time.Second})
		w := serve(quick, t.Context(), tok, "{}", created("in time"))
		answer(t, "who took over", w, 201, "in time", false)
		wg.Wait()
		answer(t, "the late owner's client", late, 201, "in time", true)
		if late.Header().Get("X-Late") != "" {
			t.Error("a header of the late response reached the client")
		}
		w = serve(quick, t.Context(), tok, "{}", created("no"))
		answer(t, "a later duplicate", w, 201, "in time", true)
	})
}

func TestLateOwnerStandsIfWhoTookOverGaveBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := newMemstore(t)
		paused := &countingStore{Store: mem}
		paused.onCall(func(call string) error {
			if call == "extend" {
				return errAway
			}
			return nil
		})
		tok := freshToken(t)
		var late *httptest.ResponseRecorder
		var wg sync.WaitGroup
		wg.Go(func() {
			g := newGuard(t, paused, replay.Config{Lease: time.Second})
			late = serve(g, t.Context(), tok, "{}", func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(10 * time.Second)
				created("late")(w, r)
			})
		})
		synctest.Wait()
		other := newGuard(t, mem, replay.Config{Lease: time.Second})
		w := serve(other, t.Context(), tok, "{}", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) })
		answer(t, "who took over and failed", w, 500, "", false)
		wg.Wait()
		answer(t, "the late owner's client", late, 201, "late", false)
		answer(t, "a later duplicate", serve(other, t.Context(), tok, "{}", created("no")), 201, "late", true)
	})
}

func TestHandlerThatOnlyPollsItsContextLearnsTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := fmt.Errorf("gone: %w", context.DeadlineExceeded) // of somebody else's deadline
		ctx, hangUp := context.WithCancelCause(t.Context())
		var polled context.Context
		serve(newGuard(t, newMemstore(t), replay.Config{KeepClientCancel: true}), ctx, freshToken(t), "{}",
			func(w http.ResponseWriter, r *http.Request) {
				hangUp(gone)
				synctest.Wait()
				polled = r.Context()
			})
		select {
		case <-polled.Done():
		default:
			t.Error("after the hang-up: not done")
		}
		if err, cause := polled.Err(), context.Cause(polled); err != context.Canceled || cause != gone {
			t.Errorf("after the hang-up: %v because of %v, want Canceled because of gone", err, cause)
		}
		time.Sleep(time.Hour) // beyond the handler's timeout
		if err := polled.Err(); err != context.Canceled {
			t.Errorf("an hour later: %v, want Canceled still", err)
		}

		serve(newGuard(t, newMemstore(t), replay.Config{HandlerTimeout: time.Second}), t.Context(), freshToken(t), "{}",
			func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(2 * time.Second)
				polled = r.Context()
				if err := polled.Err(); err != context.DeadlineExceeded {
					t.Errorf("beyond the timeout: %v, want DeadlineExceeded", err)
				}
			})
		if err, cause := polled.Err(), context.Cause(polled); err != context.DeadlineExceeded || cause != context.DeadlineExceeded {
			t.Errorf("after the handler: %v because of %v, want DeadlineExceeded still", err, cause)
		}
	})
}

func TestLostLeaseCancelsTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &countingStore{Store: newMemstore(t)}
		store.onCall(func(call string) error {
			if call == "extend" {
				return replay.ErrLeaseLost
			}
			return nil
		})
		var cause error
		serve(newGuard(t, store, replay.Config{}), t.Context(), freshToken(t), "{}",
			func(w http.ResponseWriter, r *http.Request) {
				<-r.Context().Done()
				cause = context.Cause(r.Context())
			})
		if !errors.Is(cause, replay.ErrLeaseLost) {
			t.Errorf("the handler's context ended with %v, want ErrLeaseLost", cause)
		}
	})
}
