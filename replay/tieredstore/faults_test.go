package tieredstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/tieredstore"
)

// A moodyFront fails, hangs, forgets and loses at random.
type moodyFront struct {
	mu    sync.Mutex
	inner replay.Store // guarded by mu; exchanged when it forgets everything
	fresh func() replay.Store
	calls atomic.Int64
}

var errMood = errors.New("no mood")

// mood says what happens to a call: before it, and to its answer.
func (f *moodyFront) mood(ctx context.Context) (inner replay.Store, before, after error) {
	f.calls.Add(1)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch n := rand.IntN(100); {
	case n < 10:
		before = errMood
	case n < 20:
		after = errMood // it had its effect, and nobody hears of it
	case n < 24:
		f.inner = f.fresh() // emptied
	case n < 26:
		<-ctx.Done() // hangs
		before = ctx.Err()
	}
	return f.inner, before, after
}

func (f *moodyFront) Claim(ctx context.Context, c replay.Claim) (replay.Record, replay.Hold, error) {
	inner, before, after := f.mood(ctx)
	if before != nil {
		return replay.Record{}, nil, before
	}
	rec, hold, err := inner.Claim(ctx, c)
	if after != nil {
		return replay.Record{}, nil, after
	}
	if hold != nil {
		hold = moodyHold{hold, f}
	}
	return rec, hold, err
}

func (f *moodyFront) Look(ctx context.Context, key string) (replay.Record, error) {
	inner, before, after := f.mood(ctx)
	if err := errors.Join(before, after); err != nil {
		return replay.Record{}, err
	}
	return inner.Look(ctx, key)
}

type moodyHold struct {
	replay.Hold
	f *moodyFront
}

func (h moodyHold) Seal(ctx context.Context, response []byte, retention time.Duration) error {
	_, before, after := h.f.mood(ctx)
	if before != nil {
		return before
	}
	return errors.Join(h.Hold.Seal(ctx, response, retention), after)
}

func (h moodyHold) Release(ctx context.Context) error {
	_, before, after := h.f.mood(ctx)
	if before != nil {
		return before
	}
	return errors.Join(h.Hold.Release(ctx), after)
}

// TestFrontHasNoSayInWhatIsTrue lets many owners race for many keys before a
// front that cannot be trusted, and counts.
func TestFrontHasNoSayInWhatIsTrue(t *testing.T) {
	back := newMemstore(t)
	front := &moodyFront{inner: newMemstore(t), fresh: func() replay.Store { return newMemstore(t) }}
	quiet := tieredstore.Config{FrontTimeout: 2 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)}
	processes := []replay.Store{tier(t, front, back, quiet), tier(t, front, back, quiet), tier(t, front, back, quiet)}

	const keys, owners = 300, 12
	var sealed, answers sync.Map // by key: the one response
	var effects, replays atomic.Int64
	var wg sync.WaitGroup
	for k := range keys {
		key := fmt.Sprintf("k%d", k)
		for o := range owners {
			wg.Go(func() {
				store := processes[rand.IntN(len(processes))]
				for {
					rec, hold, err := store.Claim(t.Context(), replay.Claim{
						Key: key, Owner: replay.Owner{byte(k), byte(k >> 8), byte(o), 1}, Lease: time.Minute,
					})
					switch {
					case err != nil:
						t.Errorf("claim: %v", err)
						return
					case hold != nil && rand.IntN(4) == 0:
						if err := hold.Release(t.Context()); err != nil {
							t.Errorf("release: %v", err)
						}
					case hold != nil:
						response := fmt.Sprintf("%s by %d", key, o)
						if err := hold.Seal(t.Context(), []byte(response), time.Hour); err != nil {
							t.Errorf("seal: %v", err)
						}
						effects.Add(1)
						if first, again := sealed.LoadOrStore(key, response); again {
							t.Errorf("%s was sealed twice: %v, %s", key, first, response)
						}
					case rec.State == replay.Done:
						replays.Add(1)
						if first, again := answers.LoadOrStore(key, string(rec.Response)); again && first != string(rec.Response) {
							t.Errorf("%s was answered with %v and with %s", key, first, rec.Response)
						}
						return
					}
				}
			})
		}
	}
	wg.Wait()
	if effects.Load() != keys || replays.Load() != keys*owners {
		t.Errorf("%d effects and %d replays, want %d and %d", effects.Load(), replays.Load(), keys, keys*owners)
	}
	for k := range keys {
		key := fmt.Sprintf("k%d", k)
		a, _ := answers.Load(key)
		if s, _ := sealed.Load(key); s != a {
			t.Errorf("%s was sealed as %v and answered as %v", key, s, a)
		}
	}
	if front.calls.Load() < 3 { // so many it is asked before the breaker gives it up
		t.Errorf("the front was asked %d times only", front.calls.Load())
	}
}

// A countingStore counts claims, and fails them on demand.
type countingStore struct {
	replay.Store
	claims atomic.Int64
	err    atomic.Pointer[error]
}

func (s *countingStore) Claim(ctx context.Context, c replay.Claim) (replay.Record, replay.Hold, error) {
	s.claims.Add(1)
	if err := s.err.Load(); err != nil {
		return replay.Record{}, nil, *err
	}
	return s.Store.Claim(ctx, c)
}

func claimOf(key string, n byte) replay.Claim {
	return replay.Claim{Key: key, Owner: replay.Owner{n}, Lease: 30 * time.Second}
}

func TestDuplicateOfADoneRecordCostsTheBackNothing(t *testing.T) {
	front, back := &countingStore{Store: newMemstore(t)}, &countingStore{Store: newMemstore(t)}
	s := tier(t, front, back, tieredstore.Config{})
	_, hold, err := s.Claim(t.Context(), claimOf("k", 1))
	if err != nil || hold == nil {
		t.Fatalf("claim: %v", err)
	}
	if err := hold.Seal(t.Context(), []byte("r"), time.Hour); err != nil {
		t.Fatal(err)
	}
	before := back.claims.Load()
	for range 10 {
		rec, _, err := s.Claim(t.Context(), claimOf("k", 2))
		if err != nil || string(rec.Response) != "r" {
			t.Errorf("claim = %+v, %v; want done", rec, err)
		}
	}
	if n := back.claims.Load() - before; n != 0 {
		t.Errorf("%d calls of the back, want 0", n)
	}
	if n := front.claims.Load(); n != 11 {
		t.Errorf("%d claims in the front, want 11", n)
	}
}

func TestEmptiedFrontLearnsFromTheBack(t *testing.T) {
	old, back := newMemstore(t), &countingStore{Store: newMemstore(t)}
	_, hold, err := tier(t, old, back, tieredstore.Config{}).Claim(t.Context(), claimOf("k", 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := hold.Seal(t.Context(), []byte("r"), time.Hour); err != nil {
		t.Fatal(err)
	}
	s := tier(t, newMemstore(t), back, tieredstore.Config{})
	for range 3 {
		if rec, _, err := s.Claim(t.Context(), claimOf("k", 2)); err != nil || string(rec.Response) != "r" {
			t.Errorf("claim = %+v, %v; want done", rec, err)
		}
	}
	if n := back.claims.Load(); n != 2 {
		t.Errorf("%d claims in the back, want 2: its own, and the first after the loss", n)
	}
}

func TestBreakerLeavesAFailingFrontAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		front := &countingStore{Store: newMemstore(t)}
		var failures atomic.Int64
		s := tier(t, front, newMemstore(t), tieredstore.Config{
			Logger:       slog.New(slog.DiscardHandler),
			OnFrontError: func(string, error) { failures.Add(1) },
		})
		err := errors.New("connection refused")
		front.err.Store(&err)
		submit := func(n int) {
			t.Helper()
			for i := range n {
				_, hold, err := s.Claim(t.Context(), claimOf(fmt.Sprintf("%d-%d", time.Now().UnixNano(), i), 1))
				if err != nil || hold == nil {
					t.Fatalf("claim with the front away: %v", err)
				}
			}
		}
		submit(100)
		if n := front.claims.Load(); n != 3 || failures.Load() != 3 {
			t.Errorf("the front was asked %d times and %d failures were told, want 3", n, failures.Load())
		}
		time.Sleep(1100 * time.Millisecond)
		submit(100)
		if n := front.claims.Load(); n != 4 {
			t.Errorf("the front was asked %d times, want 4: once more after a second", n)
		}
		front.err.Store(nil)
		time.Sleep(1100 * time.Millisecond)
		submit(10)
		if n := front.claims.Load(); n != 14 {
			t.Errorf("the front was asked %d times, want 14: it is back", n)
		}
	})
}

func TestHangingFrontCostsItsTimeoutAFewTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tier(t, hangingStore{}, newMemstore(t), tieredstore.Config{Logger: slog.New(slog.DiscardHandler)})
		began := time.Now()
		for i := range 50 {
			_, hold, err := s.Claim(t.Context(), claimOf(fmt.Sprint(i), 1))
			if err != nil {
				t.Fatal(err)
			}
			if err := hold.Seal(t.Context(), nil, time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 3*tieredstore.DefaultFrontTimeout {
			t.Errorf("50 submits took %v, want three timeouts of %v", took, tieredstore.DefaultFrontTimeout)
		}
	})
}

type hangingStore struct{}

func (hangingStore) Claim(ctx context.Context, _ replay.Claim) (replay.Record, replay.Hold, error) {
	<-ctx.Done()
	return replay.Record{}, nil, ctx.Err()
}

func (hangingStore) Look(ctx context.Context, _ string) (replay.Record, error) {
	<-ctx.Done()
	return replay.Record{}, ctx.Err()
}

// TestRedisDiesInMidTraffic kills Redis, and starts it empty, while guards of two
// processes are submitted to.
func TestRedisDiesInMidTraffic(t *testing.T) {
	s := newSite(t)
	guard := func() *replay.Guard {
		g, err := replay.New(s.process(t, false), replay.Config{
			IdempotencyKey: true, SharedKeys: true, Logger: slog.New(slog.DiscardHandler),
			StoreTimeout: 10 * time.Second, // this machine may be slow
		})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	guards := []*replay.Guard{guard(), guard()}
	var runs sync.Map
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := runs.LoadOrStore(replay.Key(r.Context()), new(atomic.Int64))
		n.(*atomic.Int64).Add(1)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, replay.Key(r.Context()))
	})
	submit := func(key string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders", strings.NewReader("{}"))
		r.Header.Set("Idempotency-Key", key)
		w := httptest.NewRecorder()
		guards[rand.IntN(len(guards))].Serve(w, r, handler)
		if w.Code != http.StatusCreated {
			t.Errorf("%s was answered %d: %s", key, w.Code, w.Body)
		}
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	var keys atomic.Int64
	begun := make(chan struct{}) // a key; told only to who waits for it
	for c := range 6 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				key := fmt.Sprintf("%d-%d", c, i)
				keys.Add(1)
				select {
				case begun <- struct{}{}:
				default:
				}
				var both sync.WaitGroup
				for range 2 {
					both.Go(func() { submit(key) })
				}
				both.Wait()
				submit(fmt.Sprintf("%d-%d", c, rand.IntN(i+1))) // an old one again
			}
		})
	}
	goOn := func() { // for fifty keys
		for range 50 {
			<-begun
		}
	}
	for range 3 {
		s.redis.Kill()
		goOn()
		if err := s.redis.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		goOn()
	}
	close(done)
	wg.Wait()
	n := int64(0)
	runs.Range(func(key, count any) bool {
		n++
		if c := count.(*atomic.Int64).Load(); c != 1 {
			t.Errorf("%v ran %d times", key, c)
		}
		return true
	})
	if n != keys.Load() || n < 300 {
		t.Errorf("%d keys have run, %d were submitted; want all of at least 300", n, keys.Load())
	}
}

func TestConfigIsChecked(t *testing.T) {
	_, err := tieredstore.New(nil, nil, tieredstore.Config{FrontRetention: -1, FrontTimeout: -1})
	for _, text := range []string{"the front is nil", "the back is nil", "FrontRetention", "FrontTimeout"} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("New = %v, want it to say %q", err, text)
		}
	}
}
