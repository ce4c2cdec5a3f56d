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
		var ends []time.Duration
		for i := range 5000 {
			_, hold, err := s.Claim(t.Context(), claimOf(fmt.Sprint(i)))
			if err != nil {
				t.Fatal(err)
			}
			end := time.Minute + time.Minute // a claim that is abandoned
			if i%5 != 0 {
				end = rand.N(2 * time.Hour)
				if err := hold.Seal(t.Context(), []byte("x"), end); err != nil {
					t.Fatal(err)
				}
			}
			ends = append(ends, end)
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
