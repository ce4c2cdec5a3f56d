package memstore_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/memstore"
)

// benchResponse is as long as a sealed 201 with three headers and a body of 300
// bytes.
var benchResponse = make([]byte, 430)

// benchKeys returns n keys like those that the guard makes of tokens.
func benchKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		var id [16]byte
		for j := range id {
			id[j] = byte(rand.Uint32())
		}
		keys[i] = "t" + hex.EncodeToString(id[:]) + ".AAAAAAAAAAAAAAAAAAAAAA"
	}
	return keys
}

func newOwner() (o replay.Owner) {
	for i := range o {
		o[i] = byte(rand.Uint32())
	}
	return o
}

func newStore(t testing.TB, c memstore.Config) *memstore.Store {
	t.Helper()
	s, err := memstore.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// submit claims and seals key.
func submit(t testing.TB, ctx context.Context, s *memstore.Store, key string, retention time.Duration) {
	_, hold, err := s.Claim(ctx, replay.Claim{Key: key, Owner: newOwner(), Lease: 30 * time.Second})
	if err != nil || hold == nil {
		t.Fatalf("claim: hold %v, error %v", hold, err)
	}
	if err := hold.Seal(ctx, benchResponse, retention); err != nil {
		t.Fatalf("seal: %v", err)
	}
}

// BenchmarkFirst is a claim and its seal. Ten thousand records stand.
func BenchmarkFirst(b *testing.B) {
	var (
		s    = newStore(b, memstore.Config{})
		ctx  = context.Background()
		keys = benchKeys(10_000)
		i    = 0
	)
	b.ReportAllocs()
	for b.Loop() {
		if i == len(keys) {
			b.StopTimer()
			_ = s.Close()
			s = newStore(b, memstore.Config{})
			i = 0
			b.StartTimer()
		}
		_, hold, err := s.Claim(ctx, replay.Claim{Key: keys[i], Owner: replay.Owner{1}, Lease: 30 * time.Second})
		if err != nil {
			b.Fatal(err)
		}
		if err := hold.Seal(ctx, benchResponse, time.Hour); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

// BenchmarkReplay is a claim that brings the response.
func BenchmarkReplay(b *testing.B) {
	s, ctx := newStore(b, memstore.Config{}), context.Background()
	key := benchKeys(1)[0]
	submit(b, ctx, s, key, time.Hour)
	b.ReportAllocs()
	for b.Loop() {
		rec, _, err := s.Claim(ctx, replay.Claim{Key: key, Owner: replay.Owner{1}, Lease: 30 * time.Second})
		if err != nil || rec.State != replay.Done {
			b.Fatal(rec.State, err)
		}
	}
}

// BenchmarkParallel is claim and release, whose garbage is small, on many keys
// from as many goroutines as -cpu says.
func BenchmarkParallel(b *testing.B) {
	s, ctx := newStore(b, memstore.Config{}), context.Background()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		keys := benchKeys(1000)
		for i := 0; pb.Next(); i++ {
			_, hold, err := s.Claim(ctx, replay.Claim{Key: keys[i%len(keys)], Owner: replay.Owner{1}, Lease: 30 * time.Second})
			if err != nil {
				b.Error(err)
				return
			}
			if err := hold.Release(ctx); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// heap returns how many bytes are in use after a collection.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what the first has only made ready to be freed
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkMemory says how many bytes a record takes with its key and a response
// of 430 bytes, at a million of them.
func BenchmarkMemory(b *testing.B) {
	const records = 1_000_000
	for b.Loop() {
		before := heap()
		s := newStore(b, memstore.Config{MaxEntries: 2 * records, MaxBytes: 4 << 30})
		for range records {
			submit(b, context.Background(), s, benchKeys(1)[0], time.Hour)
		}
		b.ReportMetric(float64(heap()-before)/records, "bytes/record")
		runtime.KeepAlive(s)
		if err := s.Close(); err != nil {
			b.Fatal(fmt.Errorf("close: %w", err))
		}
	}
}
