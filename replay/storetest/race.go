package storetest

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/submitonce/submitonce/replay"
)

const (
	atomicity  = "Every method is atomic against all other calls for its key from any process."
	losingFair = "A lost race is not an error."
)

var raceTests = []test{
	{
		name:    "one of many claims wins",
		promise: atomicity + " " + losingFair,
		run: func(t *trial) {
			for range 3 {
				k := key()
				var won atomic.Pointer[replay.Hold]
				crowd(300, func(i int) {
					rec, hold := t.tryClaim(t.both(i), claimOf(k))
					switch {
					case hold != nil && !won.CompareAndSwap(nil, &hold):
						t.Errorf("a second claim was won: %+v", brief(rec))
					case hold == nil && rec.State == replay.Done:
						t.Errorf("done before it was sealed: %+v", brief(rec))
					}
				})
				if won.Load() == nil {
					t.Fatal("none of 300 claims of a free key was won")
				}
				t.seal(*won.Load(), "x")
				t.wantDone(k, "x")
			}
		},
	},
	{
		name:    "one of many claims wins each of many keys",
		promise: atomicity,
		run: func(t *trial) {
			const keys, claimers = 64, 32
			var (
				name [keys]string
				wins [keys]atomic.Int32
			)
			for i := range name {
				name[i] = key()
			}
			crowd(claimers, func(c int) {
				for n := range keys {
					i := (n + c%4) % keys // nearly in step, so that they meet
					_, hold := t.tryClaim(t.both(c), claimOf(name[i]))
					if hold != nil {
						wins[i].Add(1)
						t.trySeal(hold, fmt.Sprint("key ", i))
					}
				}
			})
			for i := range name {
				if n := wins[i].Load(); n != 1 {
					t.Errorf("key %d was won %d times, want once", i, n)
				}
				t.isDone("look", t.look(t.both(i), name[i]), fmt.Sprint("key ", i))
			}
		},
	},
	{
		name:    "nobody owns a key that another owns",
		promise: atomicity,
		run:     interleave,
	},
	{
		name:    "one of many takeovers wins",
		promise: atomicity,
		leased:  true,
		run: func(t *trial) {
			k := key()
			t.win(t.store, k, 1)
			for attempt := 2; attempt <= 4; attempt++ {
				t.advance(lease + time.Second)
				var wins atomic.Int32
				crowd(100, func(i int) {
					rec, hold := t.tryClaim(t.both(i), claimOf(k))
					if hold != nil {
						wins.Add(1)
					}
					if rec.Attempt != attempt {
						t.Errorf("attempt %d, want %d", rec.Attempt, attempt)
					}
				})
				if n := wins.Load(); n != 1 {
					t.Fatalf("an abandoned key was taken over by %d owners as attempt %d, want one", n, attempt)
				}
			}
		},
	},
	{
		name:    "one of many claims wins an expired record",
		promise: atomicity,
		run: func(t *trial) {
			k := key()
			for round := range 4 {
				var won atomic.Pointer[replay.Hold]
				crowd(50, func(i int) {
					rec, hold := t.tryClaim(t.both(i), claimOf(k))
					if hold != nil && !won.CompareAndSwap(nil, &hold) {
						t.Errorf("a second claim was won: %+v", brief(rec))
					}
				})
				if won.Load() == nil {
					t.Fatalf("round %d: nobody won", round)
				}
				t.seal(*won.Load(), fmt.Sprint("round ", round))
				t.wantDone(k, fmt.Sprint("round ", round))
				t.advance(retention + time.Second)
			}
		},
	},
	{
		name:    "seal and takeover at once have one winner",
		promise: atomicity,
		leased:  true,
		run: func(t *trial) {
			t.against(func(h replay.Hold) error {
				return h.Seal(t.Context(), []byte("old"), retention)
			}, func(k string, err error, won replay.Record, hold replay.Hold) {
				switch {
				case err == nil && hold == nil:
					t.wantDone(k, "old")
				case errors.Is(err, replay.ErrLeaseLost) && hold != nil && won.Attempt == 2:
					t.wantPending(k, 2, lease)
				default:
					t.Fatalf("seal: %v, takeover: hold %v, record %+v", err, hold, brief(won))
				}
			})
		},
	},
	{
		name:    "extend and takeover at once have one winner",
		promise: atomicity,
		leased:  true,
		run: func(t *trial) {
			t.against(func(h replay.Hold) error {
				return h.Extend(t.Context(), lease)
			}, func(k string, err error, won replay.Record, hold replay.Hold) {
				switch {
				case err == nil && hold == nil:
					t.wantPending(k, 1, lease)
				case errors.Is(err, replay.ErrLeaseLost) && hold != nil && won.Attempt == 2:
					t.wantPending(k, 2, lease)
				default:
					t.Fatalf("extend: %v, takeover: hold %v, record %+v", err, hold, brief(won))
				}
			})
		},
	},
	{
		name:    "release and takeover at once leave the successor alone",
		promise: atomicity,
		leased:  true,
		run: func(t *trial) {
			t.against(func(h replay.Hold) error {
				return h.Release(t.Context())
			}, func(k string, err error, won replay.Record, hold replay.Hold) {
				if err != nil || hold == nil || won.Attempt > 2 {
					t.Fatalf("release: %v, claim: hold %v, record %+v", err, hold, brief(won))
				}
				t.wantPending(k, won.Attempt, lease) // 1 or 2, as they came
			})
		},
	},
	{
		name:    "one of many seals of a hold stands",
		promise: copying,
		run: func(t *trial) {
			for range 10 {
				const sealers = 10
				var (
					k     = key()
					hold  = t.win(t.store, k, 1)
					found [sealers]string
				)
				crowd(sealers, func(i int) {
					t.trySeal(hold, fmt.Sprint("seal ", i))
					found[i] = string(t.peek(t.both(i), k).Response)
				})
				for i, response := range found {
					if response != found[0] {
						t.Fatalf("after their seals, owner 0 found %q and owner %d found %q", found[0], i, response)
					}
				}
				t.trySeal(hold, "one more")
				t.wantDone(k, found[0])
			}
		},
	},
	{
		name:    "seal and release of a hold at once have one winner",
		promise: atomicity,
		run: func(t *trial) {
			for range 20 {
				k := key()
				hold := t.win(t.store, k, 1)
				var sealed error
				crowd(2, func(i int) {
					if i == 0 {
						sealed = hold.Seal(t.Context(), []byte("x"), retention)
					} else if err := hold.Release(t.Context()); err != nil {
						t.Errorf("release: %v", err)
					}
				})
				switch {
				case sealed == nil:
					t.wantDone(k, "x")
				case errors.Is(sealed, replay.ErrLeaseLost):
					t.wantFree(k)
				default:
					t.Fatalf("seal: %v", sealed)
				}
			}
		},
	},
}

// tryClaim is claim for goroutines, which may not end the test.
func (t *trial) tryClaim(s replay.Store, c replay.Claim) (replay.Record, replay.Hold) {
	rec, hold, err := s.Claim(t.Context(), c)
	if err != nil {
		t.Errorf("claim: %v", err)
		return rec, nil
	}
	if problem := t.answer(rec, hold); problem != "" {
		t.Errorf("claim: record %+v, hold %v: %s", brief(rec), hold, problem)
	}
	return rec, hold
}

func (t *trial) trySeal(h replay.Hold, response string) {
	if err := h.Seal(t.Context(), []byte(response), retention); err != nil {
		t.Errorf("seal: %v", err)
	}
}

// against lets a call of an expired hold race with claims of another owner, and
// gives judge what came of both.
func (t *trial) against(call func(replay.Hold) error,
	judge func(key string, err error, won replay.Record, hold replay.Hold),
) {
	t.Helper()
	const rounds = 40
	var (
		keys  [rounds]string
		holds [rounds]replay.Hold
	)
	for i := range rounds {
		keys[i] = key()
		holds[i] = t.win(t.store, keys[i], 1)
	}
	t.advance(lease + time.Second)
	for i, k := range keys {
		var (
			lost error
			won  replay.Record
			hold replay.Hold
		)
		crowd(2, func(c int) {
			if c == i%2 {
				lost = call(holds[i])
			} else {
				won, hold = t.tryClaim(t.peer, claimOf(k))
			}
		})
		judge(k, lost, won, hold)
	}
}

// interleave mixes claims, releases and seals of few keys, and checks that no
// two owners are inside at once, and that what is sealed stays.
func interleave(t *trial) {
	const keys, claimers, rounds = 8, 24, 12
	type place struct {
		key    string
		inside atomic.Int32
		sealed atomic.Pointer[string] // set before the seal
	}
	var places [keys]place
	for i := range places {
		places[i].key = key()
	}
	crowd(claimers, func(c int) {
		for round := range rounds {
			for n := range keys {
				p := &places[(n+c)%keys]
				rec, hold := t.tryClaim(t.both(c), claimOf(p.key))
				sealed := p.sealed.Load()
				switch {
				case rec.State == replay.Done && (sealed == nil || string(rec.Response) != *sealed):
					t.Errorf("claim: %+v, which is not what was sealed", brief(rec))
				case hold == nil:
				case sealed != nil:
					t.Error("a sealed key was won")
				case p.inside.Add(1) != 1:
					t.Error("two owners hold one key at once")
				case rec.Attempt != 1:
					t.Errorf("attempt %d without an abandoned claim", rec.Attempt)
				case round < rounds/2 || (c+n)%3 != 0:
					p.inside.Add(-1)
					if err := hold.Release(t.Context()); err != nil {
						t.Errorf("release: %v", err)
					}
				default:
					response := fmt.Sprintf("claimer %d, round %d", c, round)
					p.sealed.Store(&response)
					t.trySeal(hold, response)
				}
			}
		}
	})
	for i := range places {
		p := &places[i]
		if sealed := p.sealed.Load(); sealed != nil {
			t.wantDone(p.key, *sealed)
		} else {
			t.wantFree(p.key)
		}
	}
}
