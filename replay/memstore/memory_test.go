//go:build !race

package memstore_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/memstore"
)

// The race detector changes what is measured here.

func TestAllocationsOfACallAreCounted(t *testing.T) {
	s, ctx := newStore(t, memstore.Config{}), context.Background()
	keys, i := benchKeys(20_000), 0
	first := testing.AllocsPerRun(10_000, func() {
		_, hold, _ := s.Claim(ctx, replay.Claim{Key: keys[i], Owner: replay.Owner{1}, Lease: time.Minute})
		_ = hold.Seal(ctx, benchResponse, time.Hour)
		i++
	})
	if first > 2 { // the entry and the copy of the response
		t.Errorf("claim and seal: %v allocations, want 2", first)
	}
	replays := testing.AllocsPerRun(1000, func() {
		_, _, _ = s.Claim(ctx, replay.Claim{Key: keys[0], Owner: replay.Owner{2}, Lease: time.Minute})
	})
	if replays > 1 { // the copy of the response
		t.Errorf("claim of a done record: %v allocations, want 1", replays)
	}
}

func TestMemoryOfARecordIsWhatItCountsFor(t *testing.T) {
	const records = 400_000
	before := heap()
	s := newStore(t, memstore.Config{MaxBytes: 1 << 30})
	for range records {
		submit(t, context.Background(), s, benchKeys(1)[0], time.Hour)
	}
	taken := heap() - before
	_, counted := s.Size()
	t.Logf("%d bytes per record, counted as %d", taken/records, counted/records)
	if per := taken / records; per > 900 {
		t.Errorf("a record with a response of 430 bytes takes %d bytes, want at most 900", per)
	}
	if taken > counted*11/10 {
		t.Errorf("%d records take %d bytes and count for %d", records, taken, counted)
	}
	runtime.KeepAlive(s)
}

// A million tokens that are used once, with a life of a second, are what a
// store in memory has to forget without being touched again.
func TestMemoryComesBackWithoutTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const records = 1_000_000
		before := heap()
		s := newStore(t, memstore.Config{MaxBytes: 4 << 30})
		for range records {
			submit(t, context.Background(), s, benchKeys(1)[0], time.Second)
		}
		full := heap() - before
		time.Sleep(time.Second + settled)
		left := heap() - before
		if n, _ := s.Size(); n != 0 {
			t.Errorf("%d records are left", n)
		}
		t.Logf("%d MiB with %d records, %d KiB after their end", full>>20, records, left>>10)
		if left > full/100 {
			t.Errorf("%d of %d bytes are still in use", left, full)
		}
		runtime.KeepAlive(s)
	})
}
