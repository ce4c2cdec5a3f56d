package storetest

import (
	"time"
)

const (
	takingOver = "A claim that takes over an expired lease counts the attempts on, for as long as the store still" +
		" has the abandoned record; it keeps one for at least a minute."
	extending = "Extend lets the lease run for lease from now, and never shortens it."
	sealLate  = "It succeeds after the lease has run out, too, as long as nobody has taken the key over."
	ending    = "It ends with Seal or Release, or when another owner takes over after its lease has run out."
)

var leaseTests = []test{
	{
		name:    "a lease that has run out is taken over and attempts count on",
		promise: takingOver,
		leased:  true,
		run: func(t *trial) {
			k := key()
			t.win(t.store, k, 1)
			for attempt := 2; attempt <= 4; attempt++ {
				t.advance(lease - slack)
				t.wantPending(k, attempt-1, slack)
				t.advance(slack + time.Second)
				t.wantFree(k)
				t.win(t.both(attempt), k, attempt)
				t.wantPending(k, attempt, lease)
			}
		},
	},
	{
		name:    "an abandoned claim keeps its attempt for a minute",
		promise: takingOver,
		leased:  true,
		run: func(t *trial) {
			k := key()
			t.win(t.store, k, 1)
			t.advance(lease + time.Minute - slack)
			t.wantFree(k)
			hold := t.win(t.peer, k, 2)
			t.seal(hold, "x")
			if rec := t.look(t.store, k); rec.Attempt != 2 {
				t.Errorf("attempt of the done record is %d, want 2", rec.Attempt)
			}
		},
	},
	{
		name:    "attempts start again after a release",
		promise: releasing,
		leased:  true,
		run: func(t *trial) {
			k := key()
			t.win(t.store, k, 1)
			t.advance(lease + time.Second)
			t.release(t.win(t.peer, k, 2))
			t.wantFree(k)
			late := t.win(t.store, k, 1)
			t.advance(lease + time.Second) // nobody takes over
			t.release(late)
			t.wantFree(k)
			t.win(t.store, k, 1)
		},
	},
	{
		name:    "attempts start again after a retention",
		promise: expired,
		leased:  true,
		run: func(t *trial) {
			k := key()
			t.win(t.store, k, 1)
			t.advance(lease + time.Second)
			t.seal(t.win(t.peer, k, 2), "x")
			t.advance(retention + time.Second)
			t.win(t.store, k, 1)
		},
	},
	{
		name:    "each claim has a lease of its own",
		promise: "Lease is how long the claim stands without being extended.",
		leased:  true,
		run: func(t *trial) {
			short, long := claimOf(key()), claimOf(key())
			long.Lease = 10 * lease
			t.claim(t.store, short)
			t.claim(t.store, long)
			t.advance(lease + time.Second)
			t.wantFree(short.Key)
			t.wantPending(long.Key, 1, 9*lease)
			// A takeover has the lease that it asks for, not what the other had.
			short.Owner, short.Lease = newOwner(), 3*lease
			t.claim(t.store, short)
			t.wantPending(short.Key, 2, 3*lease)
		},
	},
	{
		name:    "extend keeps a claim alive",
		promise: extending,
		leased:  true,
		run: func(t *trial) {
			k := key()
			hold := t.win(t.store, k, 1)
			for range 5 {
				t.advance(lease - slack)
				t.extend(hold, lease)
				t.wantPending(k, 1, lease)
			}
			t.advance(lease - slack)
			t.wantPending(k, 1, slack)
			t.advance(slack + time.Second)
			t.wantFree(k)
		},
	},
	{
		name:    "extend never shortens a lease",
		promise: extending,
		leased:  true,
		run: func(t *trial) {
			k := key()
			hold := t.win(t.store, k, 1)
			t.extend(hold, 10*lease)
			t.extend(hold, time.Second)
			t.wantPending(k, 1, 10*lease)
			t.advance(5 * lease)
			t.extend(hold, lease)
			t.wantPending(k, 1, 5*lease)
		},
	},
	{
		name:    "extend revives a lease that nobody took over",
		promise: ending,
		leased:  true,
		run: func(t *trial) {
			k := key()
			hold := t.win(t.store, k, 1)
			t.advance(lease + time.Second)
			t.wantFree(k)
			t.extend(hold, lease)
			t.wantPending(k, 1, lease)
			t.seal(hold, "x")
			t.wantDone(k, "x")
		},
	},
	{
		name:    "a late seal succeeds if nobody took over",
		promise: sealLate,
		leased:  true,
		run: func(t *trial) {
			k := key()
			hold := t.win(t.store, k, 1)
			t.advance(lease + time.Minute - slack)
			t.wantFree(k)
			t.seal(hold, "late")
			t.wantDone(k, "late")
			t.advance(retention - slack)
			t.wantDone(k, "late")
		},
	},
}

var fencingTests = []test{
	{
		name:    "a late seal does not touch its successor",
		promise: sealLate + " " + sealLost,
		leased:  true,
		run: func(t *trial) {
			k := key()
			old := t.win(t.store, k, 1)
			t.advance(lease + time.Second)
			hold := t.win(t.peer, k, 2)
			t.wantSealLost(old)
			t.wantPending(k, 2, lease)
			t.seal(hold, "standing")
			t.wantSealLost(old)
			t.wantDone(k, "standing")
		},
	},
	{
		name:    "a late extend does not touch its successor",
		promise: extendLost,
		leased:  true,
		run: func(t *trial) {
			k := key()
			old := t.win(t.store, k, 1)
			t.advance(lease + time.Second)
			t.win(t.peer, k, 2)
			t.wantExtendLost(old)
			t.wantPending(k, 2, lease)
			t.advance(lease + time.Second)
			t.wantFree(k)
			t.wantExtendLost(old) // nor when its successor has lost the lease, too
			t.wantFree(k)
			t.win(t.store, k, 3)
		},
	},
	{
		name:    "a late release does not touch its successor",
		promise: releaseLost,
		leased:  true,
		run: func(t *trial) {
			k := key()
			old := t.win(t.store, k, 1)
			t.advance(lease + time.Second)
			hold := t.win(t.peer, k, 2)
			t.release(old)
			t.wantPending(k, 2, lease)
			t.seal(hold, "standing")
			t.release(old)
			t.wantDone(k, "standing")
		},
	},
	{
		name:    "an old hold does not touch a record that came after a release",
		promise: sealLost,
		leased:  true,
		run: func(t *trial) {
			k := key()
			old := t.win(t.store, k, 1)
			t.advance(lease + time.Second)
			t.release(t.win(t.peer, k, 2))
			t.wantSealLost(old)
			t.wantExtendLost(old)
			t.wantFree(k)
			hold := t.win(t.store, k, 1) // the same attempt as the old hold's
			t.wantSealLost(old)
			t.wantExtendLost(old)
			t.release(old)
			t.wantPending(k, 1, lease)
			t.seal(hold, "standing")
			t.wantDone(k, "standing")
		},
	},
}
