package pgstore_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/pgstore"
)

// The benchmarks compare with what an application would do by hand, on the same
// server, pool and payload. Each iteration is one round: a slice of the floor, a
// slice of ours. They report the median ratio of the rounds. Run them with
//
//	go test -bench . -run '^$' -benchtime 75x ./replay/pgstore
const slice = 40 * time.Millisecond

var response = make([]byte, 300)

// compare reports how much dearer ours is than floor.
func compare(b *testing.B, clients int, floor, ours func(ctx context.Context, key string) error) {
	b.Helper()
	var ratios, ourTimes []float64
	for _, f := range []func(context.Context, string) error{floor, ours} {
		rate(b, clients, f) // warms connections and caches
	}
	for b.Loop() {
		one, two := rate(b, clients, floor), rate(b, clients, ours)
		ratios = append(ratios, one/two)
		ourTimes = append(ourTimes, 1e6*float64(clients)/two)
	}
	slices.Sort(ratios)
	slices.Sort(ourTimes)
	b.ReportMetric(ratios[len(ratios)/2], "x-floor")
	b.ReportMetric(ourTimes[len(ourTimes)/2], "µs")
	b.ReportMetric(0, "ns/op")
}

var keys atomic.Int64

// rate returns how often per second f runs, by so many clients for a slice.
func rate(b *testing.B, clients int, f func(ctx context.Context, key string) error) float64 {
	b.Helper()
	var n atomic.Int64
	var wg sync.WaitGroup
	begun := time.Now()
	for range clients {
		wg.Go(func() {
			for time.Since(begun) < slice {
				if err := f(context.Background(), newKey()); err != nil {
					b.Error(err)
					return
				}
				n.Add(1)
			}
		})
	}
	wg.Wait()
	return float64(n.Load()) / time.Since(begun).Seconds()
}

// newKey returns a key like that of a token that was issued now.
func newKey() string {
	return fmt.Sprintf("t%012x7%03x8%015x.abcdefghijklmnopqrstuv", time.Now().UnixMilli(), keys.Add(1)&0xfff, keys.Load())
}

type benchSetup struct {
	pool  *pgxpool.Pool
	table pgstore.Config
	floor string // a table of key and value
}

func setUpBench(b *testing.B, url string) benchSetup {
	b.Helper()
	pool := newPool(b, url, conns(20))
	s := benchSetup{pool: pool, table: newTable(b, pool, pgstore.Config{}), floor: "floor_" + rand.Text()}
	if _, err := pool.Exec(b.Context(), "CREATE TABLE "+s.floor+" (key bytea PRIMARY KEY, value bytea)"); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _, _ = pool.Exec(context.Background(), "DROP TABLE "+s.floor) })
	return s
}

func benchClients(b *testing.B, f func(b *testing.B, clients int)) {
	for _, n := range []int{1, 16} {
		b.Run(fmt.Sprintf("clients=%d", n), func(b *testing.B) { f(b, n) })
	}
}

// Floor: one-row INSERT, then UPDATE by key.
func BenchmarkLeaseFirstSubmit(b *testing.B) {
	benchClients(b, func(b *testing.B, clients int) {
		p := setUpBench(b, serverURL(b))
		s := newStore(b, p.pool, p.table)
		insert := "INSERT INTO " + p.floor + " (key) VALUES ($1)"
		update := "UPDATE " + p.floor + " SET value = $2 WHERE key = $1"
		compare(b, clients, func(ctx context.Context, key string) error {
			if _, err := p.pool.Exec(ctx, insert, []byte(key)); err != nil {
				return err
			}
			_, err := p.pool.Exec(ctx, update, []byte(key), response)
			return err
		}, func(ctx context.Context, key string) error {
			_, h, err := s.Claim(ctx, claimOf(key))
			if err != nil {
				return err
			}
			return h.Seal(ctx, response, time.Hour)
		})
	})
}

// Floor: SELECT by key.
func BenchmarkLeaseReplay(b *testing.B) {
	benchClients(b, func(b *testing.B, clients int) {
		p := setUpBench(b, serverURL(b))
		s := newStore(b, p.pool, p.table)
		key := newKey()
		sealAndInsert(b, p, mustClaim(b, s, claimOf(key)), key)
		compare(b, clients, p.selectKey(key), replayKey(s, key))
	})
}

// The same where this process has not seen the record before: each of 20,000
// keys in turn. Floor: SELECT by key.
func BenchmarkLeaseReplayOfAnotherProcess(b *testing.B) {
	benchClients(b, func(b *testing.B, clients int) {
		p := setUpBench(b, serverURL(b))
		compareElsewhere(b, clients, p, newStore(b, p.pool, p.table))
	})
}

// Floor: SELECT by key.
func BenchmarkTxReplayOfAnotherProcess(b *testing.B) {
	benchClients(b, func(b *testing.B, clients int) {
		p := setUpBench(b, serverURL(b))
		compareElsewhere(b, clients, p, newTxStore(b, p.pool, pgstore.TxConfig{Config: p.table}))
	})
}

func compareElsewhere(b *testing.B, clients int, p benchSetup, s replay.Store) {
	b.Helper()
	const keys = 20000
	for _, sql := range []string{
		"INSERT INTO " + name(p.table) + " SELECT convert_to('k' || n, 'UTF8'), '', 1, 1, now() + interval '1 h', $1::bytea FROM generate_series(0, $2::int - 1) n",
		"INSERT INTO " + p.floor + " SELECT convert_to('k' || n, 'UTF8'), $1::bytea FROM generate_series(0, $2::int - 1) n",
	} {
		if _, err := p.pool.Exec(b.Context(), sql, response, keys); err != nil {
			b.Fatal(err)
		}
	}
	var n atomic.Int64
	next := func() string { return fmt.Sprintf("k%d", n.Add(1)%keys) }
	compare(b, clients, func(ctx context.Context, _ string) error {
		return p.selectKey(next())(ctx, "")
	}, func(ctx context.Context, _ string) error {
		return replayKey(s, next())(ctx, "")
	})
}

// Floor: the same handler in a transaction of its own: BEGIN; INSERT; COMMIT.
func BenchmarkTxFirstSubmit(b *testing.B) {
	benchClients(b, func(b *testing.B, clients int) {
		p := setUpBench(b, serverURL(b))
		compareTx(b, clients, p)
	})
}

// Floor: SELECT by key.
func BenchmarkTxReplay(b *testing.B) {
	benchClients(b, func(b *testing.B, clients int) {
		p := setUpBench(b, serverURL(b))
		s := newTxStore(b, p.pool, pgstore.TxConfig{Config: p.table})
		key := newKey()
		sealAndInsert(b, p, mustClaim(b, s, claimOf(key)), key)
		compare(b, clients, p.selectKey(key), replayKey(s, key))
	})
}

func compareTx(b *testing.B, clients int, p benchSetup) {
	b.Helper()
	s := newTxStore(b, p.pool, pgstore.TxConfig{Config: p.table})
	insert := "INSERT INTO " + p.floor + " (key, value) VALUES ($1, $2)"
	handler := func(ctx context.Context, tx pgx.Tx, key string) error {
		_, err := tx.Exec(ctx, insert, []byte(key), response)
		return err
	}
	compare(b, clients, func(ctx context.Context, key string) error {
		return pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error { return handler(ctx, tx, key) })
	}, func(ctx context.Context, key string) error {
		_, h, err := s.Claim(ctx, claimOf(key))
		if err != nil {
			return err
		}
		if err := handler(ctx, pgstore.Tx(h.(replay.Lender).Lend(ctx)), key); err != nil {
			return err
		}
		return h.Seal(ctx, response, time.Hour)
	})
}

func sealAndInsert(b *testing.B, p benchSetup, h replay.Hold, key string) {
	b.Helper()
	if err := h.Seal(b.Context(), response, time.Hour); err != nil {
		b.Fatal(err)
	}
	if _, err := p.pool.Exec(b.Context(), "INSERT INTO "+p.floor+" VALUES ($1, $2)", []byte(key), response); err != nil {
		b.Fatal(err)
	}
}

func (p benchSetup) selectKey(key string) func(context.Context, string) error {
	return func(ctx context.Context, _ string) error {
		var value []byte
		return p.pool.QueryRow(ctx, "SELECT value FROM "+p.floor+" WHERE key = $1", []byte(key)).Scan(&value)
	}
}

func replayKey(s replay.Store, key string) func(context.Context, string) error {
	return func(ctx context.Context, _ string) error {
		rec, _, err := s.Claim(ctx, claimOf(key))
		if err == nil && rec.State != replay.Done {
			err = fmt.Errorf("record %+v, want a done one", rec)
		}
		return err
	}
}
