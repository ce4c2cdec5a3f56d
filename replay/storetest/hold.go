package storetest

import (
	"errors"
	"time"

	"github.com/submitonce/submitonce/replay"
)

const (
	sealing    = "Seal makes the record Done with response, for retention from now."
	sealLost   = "It returns ErrLeaseLost if the hold has ended otherwise."
	resealing  = "Repeating a Seal that had its effect succeeds and keeps the first response."
	extendLost = "It returns ErrLeaseLost if the hold has ended."
	expired    = "An expired record counts as none, whether or not its space has been reclaimed yet."

	releasing   = "Release removes the record, so that the next claim wins at once, as attempt 1."
	releaseLost = "It does nothing if the hold has ended."
)

func (t *trial) wantExtendLost(h replay.Hold) {
	t.Helper()
	if err := h.Extend(t.Context(), 3*retention); !errors.Is(err, replay.ErrLeaseLost) {
		t.Errorf("extend of an ended hold: %v, want ErrLeaseLost", err)
	}
}

func (t *trial) wantSealLost(h replay.Hold) {
	t.Helper()
	if err := h.Seal(t.Context(), []byte("late"), retention); !errors.Is(err, replay.ErrLeaseLost) {
		t.Errorf("seal of an ended hold: %v, want ErrLeaseLost", err)
	}
}

var sealTests = []test{
	{
		name:    "a sealed response stands for everyone",
		promise: sealing,
		run: func(t *trial) {
			k := key()
			t.seal(t.win(t.store, k, 1), "the response")
			t.wantDone(k, "the response")
			t.wantDone(k, "the response")
		},
	},
	{
		name:    "a repeated seal keeps the first response",
		promise: resealing,
		run: func(t *trial) {
			k := key()
			hold := t.win(t.store, k, 1)
			t.seal(hold, "first")
			t.seal(hold, "second")
			t.wantDone(k, "first")
			t.seal(hold, "third")
			t.wantDone(k, "first")
		},
	},
	{
		name:    "a seal is kept for its retention and counts from the seal",
		promise: sealing,
		run: func(t *trial) {
			k := key()
			hold := t.win(t.store, k, 1)
			t.advance(lease - slack)
			t.seal(hold, "x")
			t.advance(retention - slack)
			t.wantDone(k, "x")
			t.advance(2 * slack)
			t.wantFree(k)
		},
	},
	{
		name:    "a record that has expired counts as none",
		promise: expired,
		run: func(t *trial) {
			k := key()
			for range 3 {
				t.seal(t.win(t.store, k, 1), "old")
				t.wantDone(k, "old")
				t.advance(retention + time.Second)
				t.wantFree(k)
			}
			hold := t.win(t.peer, k, 1)
			t.wantPending(k, 1, lease)
			t.seal(hold, "new")
			t.wantDone(k, "new")
		},
	},
	{
		name:    "each seal has a retention of its own",
		promise: "A record expires: a pending one when its lease has run out, a done one when its retention has.",
		run: func(t *trial) {
			short, long := key(), key()
			for k, d := range map[string]time.Duration{short: retention, long: 7 * 24 * time.Hour} {
				if err := t.win(t.store, k, 1).Seal(t.Context(), []byte("x"), d); err != nil {
					t.Fatalf("seal: %v", err)
				}
			}
			t.advance(6 * 24 * time.Hour)
			t.wantFree(short)
			t.release(t.win(t.peer, short, 1))
			t.wantDone(long, "x")
			t.advance(25 * time.Hour)
			t.wantFree(long)
		},
	},
	{
		name:    "a sealed hold has no lease to extend",
		promise: extendLost,
		run: func(t *trial) {
			k := key()
			hold := t.win(t.store, k, 1)
			t.seal(hold, "x")
			t.wantExtendLost(hold)
			t.wantDone(k, "x")
			t.advance(retention + time.Second)
			t.wantFree(k)
		},
	},
}

var releaseTests = []test{
	{
		name:    "a released key is won at once as attempt 1",
		promise: releasing,
		run: func(t *trial) {
			k := key()
			for i := range 4 {
				hold := t.win(t.both(i), k, 1)
				t.release(hold)
				t.wantFree(k)
			}
			t.seal(t.win(t.peer, k, 1), "x")
			t.wantDone(k, "x")
		},
	},
	{
		name:    "an owner may claim again what it has released",
		promise: releasing,
		run: func(t *trial) {
			c := claimOf(key())
			_, hold := t.claim(t.store, c)
			t.release(hold)
			rec, again := t.claim(t.store, c)
			if again == nil || rec.Attempt != 1 {
				t.Fatalf("hold %v, record %+v, want attempt 1 won", again, brief(rec))
			}
			t.release(again)
		},
	},
	{
		name:    "a repeated release does no harm",
		promise: releaseLost,
		run: func(t *trial) {
			k := key()
			hold := t.win(t.store, k, 1)
			t.release(hold)
			t.release(hold)
			t.wantFree(k)
			next := t.win(t.peer, k, 1)
			t.release(hold)
			t.wantPending(k, 1, lease)
			t.seal(next, "next")
			t.release(hold)
			t.wantDone(k, "next")
		},
	},
	{
		name:    "release leaves a sealed record alone",
		promise: ending,
		run: func(t *trial) {
			k := key()
			hold := t.win(t.store, k, 1)
			t.seal(hold, "x")
			t.release(hold)
			t.wantDone(k, "x")
		},
	},
	{
		name:    "a released hold can do nothing more",
		promise: sealLost,
		run: func(t *trial) {
			k := key()
			hold := t.win(t.store, k, 1)
			t.release(hold)
			t.wantExtendLost(hold)
			t.wantSealLost(hold)
			t.wantFree(k)
			next := t.win(t.peer, k, 1)
			t.wantExtendLost(hold)
			t.wantSealLost(hold)
			t.wantPending(k, 1, lease)
			t.seal(next, "next")
			t.wantExtendLost(hold)
			t.wantSealLost(hold)
			t.wantDone(k, "next")
		},
	},
}
