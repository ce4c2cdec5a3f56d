package redisstore_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/submitonce/submitonce/internal/testserver"
	"github.com/submitonce/submitonce/replay"
)

// benchResponse is as long as a sealed 201 with three headers and a body of 300
// bytes.
var benchResponse = make([]byte, 430)

// tokenKey returns a key like those that the guard makes of tokens.
func tokenKey() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	return "t" + hex.EncodeToString(id[:]) + ".AAAAAAAAAAAAAAAAAAAAAA"
}

// rounds is how often ours and the floor take turns. It is odd, for the medians.
const rounds = 31

// against runs ours and the floor that it is measured by in turns, each from so
// many goroutines, and reports the median times of a call and their ratio: on a
// busy machine only what was measured side by side can be compared.
func against(b *testing.B, clients int, floor, ours func(key string)) {
	b.Helper()
	each := max(b.N/rounds/clients, 1)
	round := func(call func(string)) float64 {
		keys := make([]string, clients*each)
		for i := range keys {
			keys[i] = tokenKey()
		}
		var running sync.WaitGroup
		began := time.Now()
		for part := range slices.Chunk(keys, each) {
			running.Go(func() {
				for _, key := range part {
					call(key)
				}
			})
		}
		running.Wait()
		return float64(time.Since(began).Nanoseconds()) / float64(len(keys))
	}
	round(floor) // both connect
	round(ours)
	var floors, times, ratios []float64
	b.ResetTimer()
	for i := range rounds {
		var f, o float64
		if i%2 == 0 {
			f, o = round(floor), round(ours)
		} else {
			o, f = round(ours), round(floor)
		}
		floors, times, ratios = append(floors, f), append(times, o), append(ratios, o/f)
	}
	b.ReportMetric(median(floors), "ns-floor")
	b.ReportMetric(median(times), "ns-ours")
	b.ReportMetric(median(ratios), "x-floor")
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// BenchmarkFirstSubmit measures a claim and a seal by SET NX, and then SET.
func BenchmarkFirstSubmit(b *testing.B) {
	forClients(b, func(b *testing.B, clients int, c *redis.Client) {
		ctx, s := context.Background(), open(b, c, "")
		against(b, clients, func(key string) {
			if ok, err := c.SetNX(ctx, "f:"+key, "pending", lease).Result(); err != nil || !ok {
				b.Error("SET NX:", ok, err)
			}
			if err := c.Set(ctx, "f:"+key, benchResponse, retention).Err(); err != nil {
				b.Error("SET:", err)
			}
		}, func(key string) {
			_, h, err := s.Claim(ctx, replay.Claim{Key: key, Owner: owner(1), Lease: lease})
			if err != nil || h == nil {
				b.Error("claim:", err)
				return
			}
			if err := h.Seal(ctx, benchResponse, retention); err != nil {
				b.Error("seal:", err)
			}
		})
	})
}

// BenchmarkReplay measures the claim of a done record by GET, by the process that
// sealed it.
func BenchmarkReplay(b *testing.B) { replayed(b, false) }

// BenchmarkReplayElsewhere measures the same by a process that has never seen the
// record before.
func BenchmarkReplayElsewhere(b *testing.B) { replayed(b, true) }

func replayed(b *testing.B, elsewhere bool) {
	forClients(b, func(b *testing.B, clients int, c *redis.Client) {
		ctx, s := context.Background(), open(b, c, "")
		if err := c.Set(ctx, "f", benchResponse, retention).Err(); err != nil {
			b.Fatal(err)
		}
		_, h := claim(b, s, "k", 1)
		if err := h.Seal(ctx, benchResponse, retention); err != nil {
			b.Fatal(err)
		}
		against(b, clients, func(string) {
			if err := c.Get(ctx, "f").Err(); err != nil {
				b.Error("GET:", err)
			}
		}, func(string) {
			if elsewhere {
				s.ForgetFinished("k")
			}
			rec, _, err := s.Claim(ctx, replay.Claim{Key: "k", Owner: owner(2), Lease: lease})
			if err != nil || rec.State != replay.Done {
				b.Error("claim:", rec.State, err)
			}
		})
	})
}

func forClients(b *testing.B, run func(b *testing.B, clients int, c *redis.Client)) {
	for name, clients := range map[string]int{"1_client": 1, "16_clients": 16} {
		b.Run(name, func(b *testing.B) {
			server := testserver.StartRedis(b)
			c := client(b, &redis.Options{Addr: server.Addr, PoolSize: 32, ContextTimeoutEnabled: true})
			run(b, clients, c)
		})
	}
}
