package storetest

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/submitonce/submitonce/replay"
)

const (
	sweeping = "Sweep removes at most limit expired records and returns how many it removed; fewer than limit" +
		" means that there are no more for now."
	sparing = "It never removes a record that has not expired, and it leaves an abandoned claim in place for a" +
		" minute, so that a takeover can count the attempts on."
)

// sweep sweeps once.
func (t *trial) sweep(limit int) (removed int) {
	t.Helper()
	removed, err := t.store.(replay.Sweeper).Sweep(t.Context(), limit)
	if err != nil {
		t.Fatalf("sweep: %v", err)
	}
	if removed < 0 || removed > limit {
		t.Fatalf("sweep removed %d records, the limit was %d", removed, limit)
	}
	return removed
}

// sweepAll sweeps until there is no more, and returns how much there was.
func (t *trial) sweepAll() (removed int) {
	t.Helper()
	for {
		n := t.sweep(1000)
		removed += n
		if n < 1000 {
			return removed
		}
	}
}

// sealed returns n fresh keys that are sealed with themselves for d.
func (t *trial) sealed(n int, d time.Duration) (keys []string) {
	t.Helper()
	for range n {
		k := key()
		if err := t.win(t.store, k, 1).Seal(t.Context(), []byte(k), d); err != nil {
			t.Fatalf("seal: %v", err)
		}
		keys = append(keys, k)
	}
	return keys
}

var sweepTests = []test{
	{
		name:    "a sweep removes what has expired",
		promise: sweeping,
		needs:   sweeper,
		run: func(t *trial) {
			t.sweepAll()
			keys := t.sealed(7, retention)
			if n := t.sweepAll(); n != 0 {
				t.Fatalf("sweep removed %d records although none has expired", n)
			}
			t.advance(retention + time.Second)
			if n := t.sweepAll(); n < len(keys) {
				t.Fatalf("sweep removed %d records, want at least the %d that have expired", n, len(keys))
			}
			if n := t.sweepAll(); n != 0 {
				t.Fatalf("a second sweep removed %d records, want none", n)
			}
			for _, k := range keys {
				t.wantFree(k)
				t.seal(t.win(t.store, k, 1), "again")
				t.wantDone(k, "again")
			}
		},
	},
	{
		name:    "a sweep keeps to its limit",
		promise: sweeping,
		needs:   sweeper,
		run: func(t *trial) {
			t.sealed(7, retention)
			t.advance(retention + time.Second)
			total := 0
			for {
				n := t.sweep(3) // which fails if it is more
				total += n
				if n < 3 {
					break
				}
			}
			if total < 7 {
				t.Fatalf("sweeps of 3 said that there is no more after %d of at least 7", total)
			}
			if n := t.sweep(3); n != 0 {
				t.Fatalf("a sweep removed %d records after the one before said that there were no more", n)
			}
		},
	},
	{
		name:    "a sweep leaves alone what has not expired",
		promise: sparing,
		needs:   sweeper,
		run: func(t *trial) {
			gone := t.sealed(3, retention)
			live := t.sealed(3, 2*retention)
			t.advance(retention + time.Second)
			k := key()
			hold := t.win(t.store, k, 1)
			if n := t.sweepAll(); n < len(gone) {
				t.Fatalf("sweep removed %d records, want at least the %d that have expired", n, len(gone))
			}
			for _, k := range live {
				t.wantDone(k, k)
			}
			t.wantPending(k, 1, lease)
			t.seal(hold, "x")
			t.sweepAll()
			t.wantDone(k, "x")
		},
	},
	{
		name:    "a sweep leaves an abandoned claim for a minute",
		promise: sparing,
		needs:   sweeper,
		leased:  true,
		run: func(t *trial) {
			taken, sealed, left := key(), key(), key()
			t.win(t.store, taken, 1)
			hold := t.win(t.store, sealed, 1)
			t.win(t.store, left, 1)
			t.advance(lease + time.Second)
			t.sweepAll()
			t.advance(time.Minute - slack)
			t.sweepAll()
			t.win(t.peer, taken, 2)
			t.seal(hold, "late")
			t.wantDone(sealed, "late")
			t.advance(2 * slack)
			if n := t.sweepAll(); n < 1 {
				t.Fatal("sweep has not removed a claim that was abandoned more than a minute ago")
			}
			t.win(t.store, left, 1)
			t.wantPending(taken, 2, lease-2*slack)
		},
	},
	{
		name:    "a sweep beside other calls removes nothing alive",
		promise: sparing,
		needs:   sweeper,
		run: func(t *trial) {
			const owners, rounds = 8, 15
			old := t.sealed(40, retention)
			t.advance(retention + time.Second)
			var swept, working atomic.Int32
			working.Store(owners)
			crowd(owners+2, func(i int) {
				if i >= owners {
					for done := false; !done; {
						done = working.Load() == 0
						n, err := t.both(i).(replay.Sweeper).Sweep(t.Context(), 5)
						if err != nil || n > 5 {
							t.Errorf("sweep with a limit of 5: %d, %v", n, err)
							return
						}
						swept.Add(int32(n))
					}
					return
				}
				defer working.Add(-1)
				for round := range rounds {
					k := old[(i*rounds+round)%len(old)] + fmt.Sprint(i)
					_, hold := t.tryClaim(t.both(i), claimOf(k))
					if hold == nil {
						continue // this owner has sealed it in an earlier round
					}
					t.trySeal(hold, k)
					if rec := t.peek(t.both(i+1), k); rec.State != replay.Done || string(rec.Response) != k {
						t.Errorf("look after seal: %+v", brief(rec))
					}
				}
			})
			for range old {
				if t.sweepAll() == 0 {
					break
				}
			}
			for i := range owners {
				for round := range rounds {
					k := old[(i*rounds+round)%len(old)] + fmt.Sprint(i)
					t.isDone("look", t.look(t.peer, k), k)
				}
			}
			for _, k := range old {
				t.wantFree(k)
			}
		},
	},
}
