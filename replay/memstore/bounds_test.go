package memstore_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/memstore"
)

func claimOf(key string) replay.Claim {
	return replay.Claim{Key: key, Owner: newOwner(), Lease: time.Minute}
}

// fill claims fresh keys until the store is full, and returns keys and holds.
func fill(t *testing.T, s *memstore.Store, name string) (keys []string, holds []replay.Hold) {
	t.Helper()
	for {
		k := fmt.Sprint(name, len(keys))
		_, hold, err := s.Claim(t.Context(), claimOf(k))
		if errors.Is(err, replay.ErrStoreFull) {
			return keys, holds
		}
		if err != nil || hold == nil {
			t.Fatalf("claim of %s: hold %v, error %v", k, hold, err)
		}
		keys, holds = append(keys, k), append(holds, hold)
	}
}

func TestNewNamesEveryMistake(t *testing.T) {
	_, err := memstore.New(memstore.Config{MaxEntries: -1, MaxBytes: -2})
	for _, want := range []string{"Config.MaxEntries is -1", "Config.MaxBytes is -2"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: %v, want it to say %q", err, want)
		}
	}
}

func TestASmallStoreHoldsExactlyItsEntries(t *testing.T) {
	for _, most := range []int{1, 2, 100, 1000} {
		s := newStore(t, memstore.Config{MaxEntries: most})
		if keys, _ := fill(t, s, "key-"); len(keys) != most {
			t.Errorf("a store for %d entries took %d", most, len(keys))
		}
	}
}

func TestALargeStoreHoldsItsEntriesToAFewPercent(t *testing.T) {
	const most = 100_000
	s := newStore(t, memstore.Config{MaxEntries: most})
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				_, hold, err := s.Claim(t.Context(), claimOf(fmt.Sprint(next.Add(1))))
				if err != nil || hold == nil {
					if !errors.Is(err, replay.ErrStoreFull) {
						t.Errorf("claim: hold %v, error %v", hold, err)
					}
					return
				}
			}
		})
	}
	wg.Wait()
	if n, _ := s.Size(); n > most+runtime.GOMAXPROCS(0) || n < most*96/100 {
		t.Errorf("a store for %d entries holds %d", most, n)
	}
}

func TestBytesAreBounded(t *testing.T) {
	const most = 8 << 20
	s := newStore(t, memstore.Config{MaxBytes: most})
	response := make([]byte, 100<<10)
	n := 0
	for ; ; n++ {
		_, hold, err := s.Claim(t.Context(), claimOf(fmt.Sprint(n)))
		if errors.Is(err, replay.ErrStoreFull) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := hold.Seal(t.Context(), response, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	records, bytes := s.Size()
	if records != n || bytes < most*95/100 || bytes > most+100<<10+1000 {
		t.Errorf("the store holds %d of %d records, %d bytes; the bound is %d bytes", records, n, bytes, most)
	}
}

func TestAFullStoreServesWhatStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, memstore.Config{MaxEntries: 20})
		first := claimOf("first")
		_, hold, err := s.Claim(t.Context(), first)
		if err != nil {
			t.Fatal(err)
		}
		keys, holds := fill(t, s, "key-")

		if _, again, err := s.Claim(t.Context(), first); err != nil || again == nil {
			t.Errorf("a claim repeated by its owner: hold %v, error %v", again, err)
		}
		if rec, other, err := s.Claim(t.Context(), claimOf("first")); err != nil || other != nil || rec.State != replay.Pending {
			t.Errorf("a duplicate of a pending claim: %+v, hold %v, error %v", rec, other, err)
		}
		if err := hold.Extend(t.Context(), time.Hour); err != nil {
			t.Errorf("extend: %v", err)
		}
		if err := hold.Seal(t.Context(), []byte("outcome"), time.Hour); err != nil {
			t.Errorf("seal: %v", err)
		}
		rec, _, err := s.Claim(t.Context(), claimOf("first"))
		if err != nil || string(rec.Response) != "outcome" {
			t.Errorf("a duplicate of a done record: %+v, error %v", rec, err)
		}

		time.Sleep(time.Minute + time.Second) // the leases run out
		if rec, hold, err := s.Claim(t.Context(), claimOf(keys[0])); err != nil || hold == nil || rec.Attempt != 2 {
			t.Errorf("a takeover: %+v, hold %v, error %v", rec, hold, err)
		}
		if _, _, err := s.Claim(t.Context(), claimOf("fresh")); !errors.Is(err, replay.ErrStoreFull) {
			t.Errorf("a fresh claim: %v, want ErrStoreFull", err)
		}
		if err := holds[1].Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, hold, err := s.Claim(t.Context(), claimOf("fresh")); err != nil || hold == nil {
			t.Errorf("a fresh claim after a release: hold %v, error %v", hold, err)
		}
	})
}

func TestExpiredRecordsMakeRoomAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, memstore.Config{MaxEntries: 30})
		for round := range 3 {
			keys, holds := fill(t, s, fmt.Sprint("round-", round, "-"))
			if len(keys) != 30 {
				t.Fatalf("round %d: the store took %d records, want 30", round, len(keys))
			}
			for _, hold := range holds {
				if err := hold.Seal(t.Context(), []byte("x"), time.Hour); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Hour) // and not a moment more, so no timer has gone off
		}
	})
}

func TestNothingIsDroppedToMakeRoom(t *testing.T) {
	s := newStore(t, memstore.Config{MaxEntries: 500})
	keys, holds := fill(t, s, "key-")
	for i, hold := range holds {
		if i%2 == 0 {
			if err := hold.Seal(t.Context(), []byte(keys[i]), time.Hour); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range 2000 {
		if _, _, err := s.Claim(t.Context(), claimOf(fmt.Sprint("more-", i))); !errors.Is(err, replay.ErrStoreFull) {
			t.Fatalf("claim %d of a full store: %v, want ErrStoreFull", i, err)
		}
	}
	for i, k := range keys {
		rec, err := s.Look(t.Context(), k)
		want := replay.Pending
		if i%2 == 0 {
			want = replay.Done
		}
		if err != nil || rec.State != want {
			t.Errorf("look at %s: %+v, %v, want %v", k, rec, err, want)
		}
	}
}
