package pgstore_test

import (
	"testing"
	"time"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/pgstore"
)

// within fails the test unless ch receives within d.
func within(t testing.TB, what string, ch <-chan struct{}, d time.Duration) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(d):
		t.Fatalf("%s: not woken within %v", what, d)
	}
}

func watch(t testing.TB, s replay.Watcher, key string) <-chan struct{} {
	t.Helper()
	ch, stop, err := s.Watch(t.Context(), key)
	if err != nil {
		t.Fatalf("watch: %v", err)
	}
	t.Cleanup(stop)
	return ch
}

func TestWaiterOfAnotherProcessIsWokenByNotification(t *testing.T) {
	pool := newPool(t, serverURL(t))
	c := newTable(t, pool, pgstore.Config{})
	ours, theirs := newStore(t, pool, c), newStore(t, newPool(t, serverURL(t)), c)
	for i, end := range []func(replay.Hold) error{
		func(h replay.Hold) error { return h.Seal(t.Context(), []byte("answer"), time.Hour) },
		func(h replay.Hold) error { return h.Release(t.Context()) },
	} {
		key := string(rune('a' + i))
		before := watch(t, theirs, key) // nothing stands yet
		h := mustClaim(t, ours, claimOf(key))
		after := watch(t, theirs, key)
		if err := end(h); err != nil {
			t.Fatal(err)
		}
		// Half of the poller's interval: it was the notification.
		within(t, "watched before the claim", before, 125*time.Millisecond)
		within(t, "watched after the claim", after, 125*time.Millisecond)
	}
}

func TestWaiterIsWokenByPollingWithoutListen(t *testing.T) {
	pool := newPool(t, serverURL(t))
	c := newTable(t, pool, pgstore.Config{NoListen: true})
	ours, theirs := newStore(t, pool, c), newStore(t, pool, c)
	h := mustClaim(t, ours, claimOf("k"))
	ch := watch(t, theirs, "k")
	if err := h.Seal(t.Context(), nil, time.Hour); err != nil {
		t.Fatal(err)
	}
	within(t, "sealed elsewhere", ch, time.Second)
}
