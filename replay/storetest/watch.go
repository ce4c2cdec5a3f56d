package storetest

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/submitonce/submitonce/replay"
)

const (
	watching = "Watch returns a channel that receives a value after each seal and each release of key that begins" +
		" after Watch has returned."
	watchFirst = "The caller watches first and claims then, so that no change falls between the two, and calls stop," +
		" which may be called twice, when it has seen enough."
)

// watch watches key until the case ends.
func (t *trial) watch(s replay.Store, key string) (changed <-chan struct{}, stop func()) {
	t.Helper()
	changed, stop, err := s.(replay.Watcher).Watch(t.Context(), key)
	if err != nil {
		t.Fatalf("watch: %v", err)
	}
	if changed == nil || stop == nil {
		t.Fatal("watch returned nil without an error")
	}
	t.Cleanup(stop)
	return changed, stop
}

// woken reports whether a value arrives before patience ends.
func (t *trial) woken(changed <-chan struct{}) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case _, ok := <-changed:
		if !ok {
			t.Error("the channel of a watch was closed")
		}
		return ok
	case <-timer.C:
		return false
	}
}

// drain takes what is in the channel already.
func drain(changed <-chan struct{}) {
	select {
	case <-changed:
	default:
	}
}

var watchTests = []test{
	{
		name:    "a seal wakes its watchers",
		promise: watching,
		needs:   watcher,
		run: func(t *trial) {
			for i := range 4 {
				k := key()
				hold := t.win(t.store, k, 1)
				changed, _ := t.watch(t.both(i), k)
				t.lose(t.both(i), k)
				t.seal(hold, "x")
				if !t.woken(changed) {
					t.Fatalf("no word of a seal within %v", patience)
				}
				t.wantDone(k, "x")
			}
		},
	},
	{
		name:    "a release wakes its watchers",
		promise: watching,
		needs:   watcher,
		run: func(t *trial) {
			for i := range 4 {
				k := key()
				hold := t.win(t.store, k, 1)
				changed, _ := t.watch(t.both(i), k)
				t.lose(t.both(i), k)
				t.release(hold)
				if !t.woken(changed) {
					t.Fatalf("no word of a release within %v", patience)
				}
				t.wantFree(k)
			}
		},
	},
	{
		name:    "one watch hears of one change after the other",
		promise: watching,
		needs:   watcher,
		run: func(t *trial) {
			k := key()
			changed, _ := t.watch(t.peer, k)
			for i := range 5 {
				hold := t.win(t.store, k, 1)
				drain(changed)
				t.release(hold)
				if !t.woken(changed) {
					t.Fatalf("no word of release %d within %v", i+1, patience)
				}
			}
			hold := t.win(t.store, k, 1)
			drain(changed)
			t.seal(hold, "x")
			if !t.woken(changed) {
				t.Fatalf("no word of the seal within %v", patience)
			}
		},
	},
	{
		name:    "all of many watchers are woken",
		promise: watching,
		needs:   watcher,
		run: func(t *trial) {
			k := key()
			hold := t.win(t.store, k, 1)
			const watchers = 60
			var channels [watchers]<-chan struct{}
			for i := range channels {
				changed, stop := t.watch(t.both(i), k)
				channels[i] = changed
				if i%3 == 2 {
					stop()
				}
			}
			t.seal(hold, "x")
			for i, changed := range channels {
				if i%3 != 2 && !t.woken(changed) {
					t.Fatalf("watcher %d of %d has no word of a seal", i+1, watchers)
				}
			}
		},
	},
	{
		name:    "a watch may be stopped twice and stops no other",
		promise: watchFirst,
		needs:   watcher,
		run: func(t *trial) {
			k := key()
			hold := t.win(t.store, k, 1)
			_, stop := t.watch(t.peer, k)
			changed, _ := t.watch(t.peer, k)
			stop()
			stop()
			again, _ := t.watch(t.peer, k)
			stop()
			t.seal(hold, "x")
			if !t.woken(changed) || !t.woken(again) {
				t.Fatal("stopping one watch twice has stopped another")
			}
		},
	},
	{
		name:    "the channel of a watch is not closed",
		promise: "The channel is never closed.",
		needs:   watcher,
		run: func(t *trial) {
			k := key()
			hold := t.win(t.store, k, 1)
			changed, stop := t.watch(t.store, k)
			t.seal(hold, "x")
			stop()
			for range 3 {
				select {
				case _, ok := <-changed:
					if !ok {
						t.Fatal("the channel was closed by stop")
					}
				default:
				}
			}
		},
	},
	{
		name:    "watching is not claiming",
		promise: "A Watcher is a [Store] that can tell when a record changes.",
		needs:   watcher,
		run: func(t *trial) {
			k := key()
			_, stop := t.watch(t.peer, k)
			t.wantFree(k)
			hold := t.win(t.store, k, 1)
			stop()
			t.wantPending(k, 1, lease)
			t.seal(hold, "x")
			t.wantDone(k, "x")
		},
	},
	{
		name:    "watching first and claiming then misses nothing",
		promise: watchFirst,
		needs:   watcher,
		run:     missNothing,
	},
	{
		name:    "a watch with a cancelled context returns at once",
		promise: promptness,
		needs:   watcher,
		run: func(t *trial) {
			k := key()
			t.prompt("watch", func() {
				if _, stop, err := t.store.(replay.Watcher).Watch(t.cancelled(), k); err == nil {
					stop()
				}
			})
			hold := t.win(t.store, k, 1)
			changed, _ := t.watch(t.store, k)
			t.seal(hold, "x")
			if !t.woken(changed) {
				t.Fatal("after a cancelled watch, the next hears nothing")
			}
		},
	},
}

// missNothing has duplicates that do as the guard does, but never poll: a
// message that is lost leaves one of them waiting.
func missNothing(t *trial) {
	const rounds, duplicates = 25, 8
	for round := range rounds {
		k := key()
		var runs, releases atomic.Int32
		crowd(duplicates, func(i int) {
			s := t.both(i)
			changed, stop, err := s.(replay.Watcher).Watch(t.Context(), k)
			if err != nil {
				t.Errorf("watch: %v", err)
				return
			}
			defer stop()
			for !t.Failed() {
				rec, hold := t.tryClaim(s, claimOf(k))
				if hold != nil { // works for a while, or for none
					time.Sleep(time.Duration(round%4) * 200 * time.Microsecond)
				}
				switch {
				case hold != nil && releases.Add(1) <= 2:
					if err := hold.Release(t.Context()); err != nil {
						t.Errorf("release: %v", err)
					}
					return // one of those who wait has to go on
				case hold != nil:
					runs.Add(1)
					t.trySeal(hold, fmt.Sprint("round ", round))
					return
				case rec.State == replay.Done:
					if string(rec.Response) != fmt.Sprint("round ", round) {
						t.Errorf("response %q", rec.Response)
					}
					return
				case !t.woken(changed):
					t.Errorf("round %d: a duplicate still waits after %v: %+v", round, patience, brief(t.peek(s, k)))
				}
			}
		})
		if t.Failed() {
			return
		}
		if n := runs.Load(); n != 1 {
			t.Fatalf("round %d: %d owners sealed, want one", round, n)
		}
	}
}

// peek is look for goroutines and messages.
func (t *trial) peek(s replay.Store, key string) replay.Record {
	rec, err := s.Look(t.Context(), key)
	if err != nil {
		t.Errorf("look: %v", err)
	}
	return rec
}
