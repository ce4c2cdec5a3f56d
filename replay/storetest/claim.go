package storetest

import (
	"time"

	"github.com/submitonce/submitonce/replay"
)

const (
	winning = "Claim takes c.Key if no record stands under it, and then returns a Hold that is not nil and the" +
		" Pending record that it made."
	losing = "Otherwise it changes nothing, and returns a nil Hold and the record that stands: Pending or Done," +
		" never Free."
	repeating = "A Claim by the owner that already holds the key wins again and changes nothing but the lease," +
		" which starts anew."
	oneRecord = "A Store keeps at most one record per key and decides who owns it."
	looking   = "Look returns the record that stands under key, or a Free one. It changes nothing."
)

var claimTests = []test{
	{
		name:    "a free key is won and stands pending",
		promise: winning,
		run: func(t *trial) {
			k := key()
			rec, hold := t.claim(t.store, claimOf(k))
			if hold == nil {
				t.Fatalf("claim was not won, the record is %+v", brief(rec))
			}
			t.isPending("won claim", rec, 1, lease)
			t.wantPending(k, 1, lease)
			t.release(hold)
		},
	},
	{
		name:    "a lost claim changes nothing",
		promise: losing,
		run: func(t *trial) {
			k := key()
			hold := t.win(t.store, k, 1)
			t.advance(lease / 2)
			for i := range 4 {
				c := claimOf(k)
				c.Lease = retention
				rec, lost := t.claim(t.both(i), c)
				if lost != nil {
					t.Fatal("a claim was won although another owner's stands")
				}
				t.isPending("lost claim", rec, 1, lease/2)
			}
			t.wantPending(k, 1, lease/2)
			t.seal(hold, "first")
			t.wantDone(k, "first")
		},
	},
	{
		name:    "keys do not touch each other",
		promise: oneRecord,
		run: func(t *trial) {
			sealed, released, pending := key(), key(), key()
			t.seal(t.win(t.store, sealed, 1), "a")
			t.release(t.win(t.store, released, 1))
			hold := t.win(t.store, pending, 1)
			t.wantDone(sealed, "a")
			t.wantFree(released)
			t.wantPending(pending, 1, lease)
			t.release(hold)
			t.wantDone(sealed, "a")
			t.wantFree(pending)
		},
	},
	{
		name:    "a claim repeated by its owner wins again",
		promise: repeating,
		leased:  true,
		run: func(t *trial) {
			c := claimOf(key())
			for i := range 4 {
				rec, hold := t.claim(t.both(i), c)
				if hold == nil {
					t.Fatalf("claim %d of the same owner was not won, the record is %+v", i+1, brief(rec))
				}
				t.isPending("repeated claim", rec, 1, lease)
				t.wantPending(c.Key, 1, lease)
				t.advance(lease / 2)
			}
			// A repetition may come late; nobody has taken over.
			t.advance(lease)
			rec, hold := t.claim(t.peer, c)
			if hold == nil || rec.Attempt != 1 {
				t.Fatalf("late repetition: hold %v, record %+v, want attempt 1 won again", hold, brief(rec))
			}
			t.seal(hold, "x")
			t.wantDone(c.Key, "x")
		},
	},
	{
		name:    "any hold of a repeated claim is the hold",
		promise: repeating,
		leased:  true,
		run: func(t *trial) {
			c := claimOf(key())
			_, first := t.claim(t.store, c)
			_, second := t.claim(t.peer, c)
			if first == nil || second == nil {
				t.Fatal("a claim repeated by its owner was not won")
			}
			t.extend(second, lease)
			t.seal(first, "x")
			t.seal(second, "y") // the repetition of a seal
			t.wantDone(c.Key, "x")
		},
	},
	{
		name:    "an owner does not win what it has sealed",
		promise: losing,
		run: func(t *trial) {
			c := claimOf(key())
			_, hold := t.claim(t.store, c)
			t.seal(hold, "x")
			rec, again := t.claim(t.peer, c)
			if again != nil {
				t.Fatal("the owner won a key that it has sealed")
			}
			t.isDone("claim", rec, "x")
		},
	},
	{
		name: "a done record tells its attempt",
		promise: "Attempt is 1 for the first owner and one more for each owner that took over an abandoned claim." +
			" Response is what Seal was given, to be read only.",
		run: func(t *trial) {
			k := key()
			t.seal(t.win(t.store, k, 1), "x")
			if rec := t.look(t.peer, k); rec.Attempt != 1 {
				t.Fatalf("look: attempt %d, want 1", rec.Attempt)
			}
			if rec := t.lose(t.peer, k); rec.Attempt != 1 {
				t.Fatalf("claim: attempt %d, want 1", rec.Attempt)
			}
		},
	},
}

var lookTests = []test{
	{
		name:    "look claims nothing",
		promise: looking,
		run: func(t *trial) {
			k := key()
			t.wantFree(k)
			t.wantFree(k)
			t.release(t.win(t.store, k, 1))
			t.wantFree(k)
			t.seal(t.win(t.store, k, 1), "x")
			t.wantDone(k, "x")
		},
	},
	{
		name:    "look does not extend a lease",
		promise: looking,
		leased:  true,
		run: func(t *trial) {
			k := key()
			t.win(t.store, k, 1)
			for left := lease; left > 0; left -= lease / 2 {
				t.isPending("look", t.look(t.peer, k), 1, left)
				t.advance(lease / 2)
			}
			t.advance(time.Second)
			t.wantFree(k)
			t.win(t.store, k, 2) // it has not removed what was abandoned, either
		},
	},
	{
		name:    "look does not extend a retention",
		promise: looking,
		run: func(t *trial) {
			k := key()
			t.seal(t.win(t.store, k, 1), "x")
			for range 2 {
				t.advance(retention/2 - time.Minute)
				t.isDone("look", t.look(t.peer, k), "x")
			}
			t.advance(3 * time.Minute)
			t.wantFree(k)
		},
	},
	{
		name: "look tells how far a record has come",
		promise: "Free means that no record stands: nobody has claimed the key, or its claim was released, or the" +
			" record has expired. Pending means that an owner holds the key and its lease is running. Done means" +
			" that the key is sealed with a response.",
		run: func(t *trial) {
			k := key()
			for i := range 2 {
				s := t.both(i)
				t.wantState(s, k, replay.Free)
				hold := t.win(t.store, k, 1)
				t.wantState(s, k, replay.Pending)
				t.release(hold)
				t.wantState(s, k, replay.Free)
				hold = t.win(t.store, k, 1)
				t.wantState(s, k, replay.Pending)
				t.seal(hold, "x")
				t.wantState(s, k, replay.Done)
				t.advance(retention + time.Second)
				t.wantState(s, k, replay.Free)
			}
		},
	},
	{
		name: "a record tells what is so and nothing else",
		promise: "It is 0 where it cannot be seen: a record that is Free, or a claim inside a transaction that has" +
			" not committed yet. It is set on Done records only. It is set on Pending records only, and is 0 there if" +
			" the store cannot tell, as with a claim that lives in somebody's open transaction and ends with it.",
		run: func(t *trial) {
			k := key()
			t.wantFree(k)
			hold := t.win(t.store, k, 1)
			for i := range 2 {
				rec := t.look(t.both(i), k)
				if problem := t.answer(rec, nil); problem != "" || rec.State != replay.Pending {
					t.Errorf("look at a pending key: %+v: %s", brief(rec), problem)
				}
				if t.h.Transactional && (rec.Attempt != 0 || rec.LeaseLeft != 0) {
					t.Errorf("look at a key in an open transaction: %+v, want neither attempt nor lease", brief(rec))
				}
			}
			t.seal(hold, "x")
			for i := range 2 {
				rec := t.look(t.both(i), k)
				if problem := t.answer(rec, nil); problem != "" || rec.State != replay.Done {
					t.Errorf("look at a sealed key: %+v: %s", brief(rec), problem)
				}
			}
		},
	},
}

func (t *trial) wantState(s replay.Store, key string, want replay.State) {
	t.Helper()
	if rec := t.look(s, key); rec.State != want {
		t.Fatalf("look: %+v, want %v", brief(rec), want)
	}
}
