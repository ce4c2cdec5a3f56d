package replay_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/submitonce/submitonce/replay"
)

func newOnce(t *testing.T, store replay.Store, c replay.OnceConfig) *replay.Once {
	t.Helper()
	c.Logger = slog.New(slog.DiscardHandler)
	o, err := replay.NewOnce(store, c)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestOnceRunsOncePerKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemstore(t)
		consumers := []*replay.Once{newOnce(t, store, replay.OnceConfig{Name: "receipt"}), newOnce(t, store, replay.OnceConfig{Name: "receipt"})}
		var runs, replays atomic.Int32
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				v, replayed, err := consumers[i%2].Do(t.Context(), "message 7", func(ctx context.Context) ([]byte, error) {
					runs.Add(1)
					time.Sleep(time.Second)
					if replay.Attempt(ctx) != 1 || replay.Key(ctx) == "" {
						t.Errorf("attempt %d, key %q", replay.Attempt(ctx), replay.Key(ctx))
					}
					return everyByte(), nil
				})
				if err != nil || string(v) != string(everyByte()) {
					t.Errorf("Do = %q, %v", v, err)
				}
				if replayed {
					replays.Add(1)
				}
			})
		}
		wg.Wait()
		if runs.Load() != 1 || replays.Load() != 99 {
			t.Errorf("%d runs, %d replays; want 1, 99", runs.Load(), replays.Load())
		}
	})
}

func TestOnceErrorIsNoOutcome(t *testing.T) {
	o := newOnce(t, newMemstore(t), replay.OnceConfig{Name: "receipt"})
	errWork := errors.New("no paper")
	_, _, err := o.Do(t.Context(), "k", func(context.Context) ([]byte, error) { return []byte("x"), errWork })
	if err != errWork {
		t.Errorf("Do = %v, want the work's own error", err)
	}
	v, replayed, err := o.Do(t.Context(), "k", func(context.Context) ([]byte, error) { return nil, nil })
	if len(v) != 0 || replayed || err != nil {
		t.Errorf("Do = %q, %v, %v; want an empty first result", v, replayed, err)
	}
	v, replayed, err = o.Do(t.Context(), "k", func(context.Context) ([]byte, error) { return []byte("no"), nil })
	if len(v) != 0 || !replayed || err != nil {
		t.Errorf("Do = %q, %v, %v; want the empty result again", v, replayed, err)
	}
}

func TestOncePanicReleases(t *testing.T) {
	o := newOnce(t, newMemstore(t), replay.OnceConfig{Name: "receipt"})
	func() {
		defer func() {
			if p := recover(); p != "boom" {
				t.Errorf("recovered %v, want boom", p)
			}
		}()
		_, _, _ = o.Do(t.Context(), "k", func(context.Context) ([]byte, error) { panic("boom") })
	}()
	v, replayed, err := o.Do(t.Context(), "k", func(context.Context) ([]byte, error) { return []byte("ok"), nil })
	if string(v) != "ok" || replayed || err != nil {
		t.Errorf("Do = %q, %v, %v; want a first run", v, replayed, err)
	}
}

func TestOnceKeys(t *testing.T) {
	o := newOnce(t, newMemstore(t), replay.OnceConfig{Name: "receipt"})
	for _, key := range []string{"a", "A", "a ", " a", "ä", "a\x00", strings.Repeat("a", 255), strings.Repeat("a", 5000)} {
		v, replayed, err := o.Do(t.Context(), key, func(context.Context) ([]byte, error) { return []byte(key), nil })
		if string(v) != key || replayed || err != nil {
			t.Errorf("Do(%.20q) = %.20q, %v, %v; want a first run", key, v, replayed, err)
		}
		v, replayed, err = o.Do(t.Context(), key, func(context.Context) ([]byte, error) { return []byte("no"), nil })
		if string(v) != key || !replayed || err != nil {
			t.Errorf("again Do(%.20q) = %.20q, %v, %v; want a replay", key, v, replayed, err)
		}
	}
	if _, _, err := o.Do(t.Context(), "", nil); !errors.Is(err, replay.ErrMissingKey) {
		t.Errorf(`Do("") = %v, want ErrMissingKey`, err)
	}
}

func TestOnceWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOnce(t, newMemstore(t), replay.OnceConfig{Name: "receipt"})
		var wg sync.WaitGroup
		wg.Go(func() {
			_, _, _ = o.Do(t.Context(), "k", func(context.Context) ([]byte, error) {
				time.Sleep(10 * time.Second)
				return nil, nil
			})
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, err := o.Do(ctx, "k", nil)
		var pending *replay.PendingError
		if !errors.As(err, &pending) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Do = %v, want a PendingError and DeadlineExceeded", err)
		}
		wg.Wait()
	})
}

func TestKindsOfWorkHaveKeysOfTheirOwn(t *testing.T) {
	store := newMemstore(t)
	for _, kind := range []string{"mail", "bill"} {
		o := newOnce(t, store, replay.OnceConfig{Name: kind})
		value, replayed, err := o.Do(t.Context(), "order-42", func(context.Context) ([]byte, error) { return []byte(kind), nil })
		if string(value) != kind || replayed || err != nil {
			t.Errorf("%s: %q, replayed %v, %v; want its own work done", kind, value, replayed, err)
		}
	}
	if _, err := replay.NewOnce(store, replay.OnceConfig{}); err == nil || !strings.Contains(err.Error(), "OnceConfig.Name") {
		t.Errorf("without a name: %v, want an error that says so", err)
	}
}

func TestWorkDoesNotWaitForItself(t *testing.T) {
	o := newOnce(t, newMemstore(t), replay.OnceConfig{Name: "receipt"})
	began := time.Now()
	_, _, err := o.Do(t.Context(), "k", func(ctx context.Context) ([]byte, error) {
		value, _, err := o.Do(ctx, "k", func(context.Context) ([]byte, error) { return nil, nil })
		return value, err
	})
	var pending *replay.PendingError
	if !errors.As(err, &pending) || time.Since(began) > replay.DefaultWait/2 {
		t.Errorf("after %v: %v, want a PendingError at once", time.Since(began), err)
	}
}

// Nobody can change what stands by changing what Do returned.
func TestResultsAreTheCallersOwn(t *testing.T) {
	o := newOnce(t, newMemstore(t), replay.OnceConfig{Name: "receipt"})
	for i := range 3 {
		value, _, err := o.Do(t.Context(), "k", func(context.Context) ([]byte, error) { return []byte("as it was"), nil })
		if string(value) != "as it was" || err != nil {
			t.Errorf("time %d: %q, %v", i+1, value, err)
		}
		clear(value)
	}
}
