package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/submitonce/submitonce/replay"
)

const (
	promptness = "A call returns promptly once its context is cancelled."
	unanswered = "Any error other than [ErrLeaseLost], [ErrStoreFull] and [ErrUndone] means that the store could" +
		" not answer, and that the call may or may not have had its effect."
	repeatable = "It may be repeated: repeating one that had its effect succeeds and does no harm."
)

var contextTests = []test{
	{
		name:    "a cancelled claim returns at once and may be repeated",
		promise: promptness,
		run: func(t *trial) {
			for range 5 {
				c := claimOf(key())
				t.prompt("claim", func() {
					rec, hold, err := t.store.Claim(t.cancelled(), c)
					t.wantNoAnswer("claim", err)
					if hold != nil {
						t.Errorf("claim: hold %v and record %+v beside an error", hold, brief(rec))
					}
				})
				if t.Failed() {
					return
				}
				// It may have had its effect, so only its owner can know who wins.
				rec, hold := t.claim(t.store, c)
				if hold == nil || rec.Attempt != 1 {
					t.Fatalf("repeated claim: hold %v, record %+v, want attempt 1 won", hold, brief(rec))
				}
				t.seal(hold, "x")
				t.wantDone(c.Key, "x")
			}
		},
	},
	{
		name:    "a cancelled look returns at once",
		promise: promptness,
		run: func(t *trial) {
			k := key()
			t.seal(t.win(t.store, k, 1), "x")
			t.prompt("look", func() {
				_, err := t.store.Look(t.cancelled(), k)
				t.wantNoAnswer("look", err)
			})
			t.wantDone(k, "x")
		},
	},
	{
		name:    "a cancelled seal returns at once and may be repeated",
		promise: unanswered + " " + repeatable,
		leased:  true,
		run: func(t *trial) {
			k := key()
			hold := t.win(t.store, k, 1)
			t.prompt("seal", func() {
				t.wantNoAnswer("seal", hold.Seal(t.cancelled(), []byte("x"), retention))
			})
			t.seal(hold, "x")
			t.wantDone(k, "x")
		},
	},
	{
		name:    "a cancelled extend returns at once and may be repeated",
		promise: unanswered + " " + repeatable,
		leased:  true,
		run: func(t *trial) {
			k := key()
			hold := t.win(t.store, k, 1)
			t.prompt("extend", func() {
				t.wantNoAnswer("extend", hold.Extend(t.cancelled(), 2*lease))
			})
			t.extend(hold, 2*lease)
			t.wantPending(k, 1, 2*lease)
		},
	},
	{
		name:    "a cancelled release returns at once and may be repeated",
		promise: unanswered + " " + repeatable,
		leased:  true,
		run: func(t *trial) {
			k := key()
			hold := t.win(t.store, k, 1)
			t.prompt("release", func() {
				t.wantNoAnswer("release", hold.Release(t.cancelled()))
			})
			t.release(hold)
			t.wantFree(k)
			t.seal(t.win(t.peer, k, 1), "x")
			t.wantDone(k, "x")
		},
	},
	{
		name:    "calls that are cancelled halfway leave the store usable",
		promise: unanswered,
		run: func(t *trial) {
			const calls = 90
			t.prompt("cancelled calls", func() {
				crowd(calls, func(i int) {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*50*time.Microsecond)
					defer cancel()
					if i%3 == 0 {
						cancel()
					}
					s := t.both(i)
					if _, hold, err := s.Claim(ctx, claimOf(key())); err == nil && hold != nil {
						_ = hold.Seal(ctx, []byte("x"), retention) // cancelled or not
						_ = hold.Release(t.Context())
					}
					_, _ = s.Look(ctx, key())
				})
			})
			for i := range 20 {
				k := key()
				t.seal(t.win(t.both(i), k, 1), "x")
				t.wantDone(k, "x")
			}
		},
	},
}

// wantNoAnswer checks that err is there and is not mistaken for an answer.
func (t *trial) wantNoAnswer(call string, err error) {
	for _, answer := range []error{nil, replay.ErrLeaseLost, replay.ErrStoreFull, replay.ErrClosed} {
		if errors.Is(err, answer) {
			t.Errorf("%s with a cancelled context: %v, want an error that says that it was cancelled", call, err)
		}
	}
}
