package memstore_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/memstore"
)

// settled is how long after its end a record is gone for certain.
const settled = 3 * time.Second

func TestRecordsGoAfterTheirEndWithoutTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, memstore.Config{})
		start := time.Now()
		// Claims with leases of all lengths, of which some are given up, some are
		// released, and most are sealed, in no order.
		claims := make([]replay.Claim, 8000)
		holds := make([]replay.Hold, len(claims))
		for i := range claims {
			claims[i] = claimOf(fmt.Sprint(i))
			claims[i].Lease = rand.N(2 * time.Hour)
			var err error
			if _, holds[i], err = s.Claim(t.Context(), claims[i]); err != nil {
				t.Fatal(err)
			}
		}
		var ends []time.Duration
		for _, i := range rand.Perm(len(claims)) {
			switch i % 5 {
			case 0:
				ends = append(ends, claims[i].Lease+time.Minute)
			case 1:
				if err := holds[i].Release(t.Context()); err != nil {
					t.Fatal(err)
				}
			default:
				retention := rand.N(2 * time.Hour)
				if err := holds[i].Seal(t.Context(), []byte("x"), retention); err != nil {
					t.Fatal(err)
				}
				ends = append(ends, retention)
			}
		}
		slices.Sort(ends)
		for len(ends) > 0 {
			time.Sleep(rand.N(5 * time.Minute))
			since := time.Since(start)
			live, _ := slices.BinarySearch(ends, since+1) // the first that has not ended
			gone, _ := slices.BinarySearch(ends, since-settled)
			n, _ := s.Size()
			if most, least := len(ends)-gone, len(ends)-live; n > most || n < least {
				t.Fatalf("after %v, the store holds %d records, want %d to %d", since, n, least, most)
			}
			if n == 0 {
				break
			}
		}
		if n, bytes := s.Size(); n != 0 || bytes != 0 {
			t.Errorf("at last, the store holds %d records and %d bytes", n, bytes)
		}
	})
}

func TestClaimsAloneGoAfterTheirEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, memstore.Config{})
		for i := range 1000 {
			if _, _, err := s.Claim(t.Context(), claimOf(fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute + time.Minute - time.Nanosecond)
		if n, _ := s.Size(); n != 1000 {
			t.Errorf("%d of 1000 abandoned claims are kept for a minute", n)
		}
		time.Sleep(settled)
		if n, _ := s.Size(); n != 0 {
			t.Errorf("%d abandoned claims are kept for more than a minute", n)
		}
	})
}

func TestARepeatedClaimIsKeptForItsNewLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, memstore.Config{})
		c := claimOf("k")
		for range 5 {
			if _, hold, err := s.Claim(t.Context(), c); err != nil || hold == nil {
				t.Fatalf("claim: hold %v, error %v", hold, err)
			}
			time.Sleep(2*time.Minute - time.Nanosecond)
			if n, _ := s.Size(); n != 1 {
				t.Fatalf("the store holds %d records, want 1", n)
			}
		}
		rec, hold, err := s.Claim(t.Context(), claimOf("k"))
		if err != nil || hold == nil || rec.Attempt != 2 {
			t.Errorf("takeover: %+v, hold %v, error %v, want attempt 2", rec, hold, err)
		}
	})
}

func TestOneRecordGoesBySecondsNotByTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, memstore.Config{})
		// A record that stays for days must not hide one that ends soon.
		submit(t, t.Context(), s, "long", 7*24*time.Hour)
		time.Sleep(time.Hour)
		for range 100 {
			submit(t, t.Context(), s, benchKeys(1)[0], time.Second)
		}
		time.Sleep(time.Second + settled)
		if n, _ := s.Size(); n != 1 {
			t.Errorf("the store holds %d records, want only the long one", n)
		}
		time.Sleep(7 * 24 * time.Hour)
		if n, _ := s.Size(); n != 0 {
			t.Errorf("the store holds %d records, want none", n)
		}
	})
}

func TestAReleaseLeavesNothing(t *testing.T) {
	s := newStore(t, memstore.Config{})
	for i := range 10_000 {
		_, hold, err := s.Claim(t.Context(), claimOf(fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		if err := hold.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n, bytes := s.Size(); n != 0 || bytes != 0 {
		t.Errorf("the store holds %d records and %d bytes, want none", n, bytes)
	}
}

func TestCloseAmongExpiryAndTraffic(t *testing.T) {
	for range 20 {
		s, err := memstore.New(memstore.Config{})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := 0; ; i++ {
					_, hold, err := s.Claim(t.Context(), claimOf(fmt.Sprint(g, i)))
					if err != nil {
						return // closed
					}
					_ = hold.Seal(t.Context(), []byte("x"), time.Nanosecond) // closed or not
				}
			})
		}
		wg.Go(func() {
			for n := 0; n < 100; n, _ = s.Size() {
			}
			_ = s.Close()
		})
		wg.Wait()
		if n, bytes := s.Size(); n != 0 || bytes != 0 {
			t.Fatalf("a closed store holds %d records and %d bytes", n, bytes)
		}
	}
}

func TestCloseWakesWatchers(t *testing.T) {
	s := newStore(t, memstore.Config{})
	changed, stop, err := s.Watch(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
	default:
		t.Error("a watcher of a closed store sleeps on")
	}
}

func TestANilHoldIsNil(t *testing.T) {
	s := newStore(t, memstore.Config{})
	submit(t, t.Context(), s, "k", time.Hour)
	var hold replay.Hold
	if _, hold, _ = s.Claim(t.Context(), claimOf("k")); hold != nil {
		t.Errorf("a lost claim has the hold %#v, want nil", hold)
	}
}
