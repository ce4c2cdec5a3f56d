package tieredstore_test

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/submitonce/submitonce/internal/testserver"
	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/memstore"
	"github.com/submitonce/submitonce/replay/pgstore"
	"github.com/submitonce/submitonce/replay/redisstore"
	"github.com/submitonce/submitonce/replay/storetest"
	"github.com/submitonce/submitonce/replay/tieredstore"
)

func TestMain(m *testing.M) { testserver.Main(m) }

func tier(t testing.TB, front, back replay.Store, c tieredstore.Config) *tieredstore.Store {
	t.Helper()
	s, err := tieredstore.New(front, back, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func newMemstore(t testing.TB) *memstore.Store {
	t.Helper()
	s, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestConformanceInMemory(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		New: func(t *testing.T) replay.Store {
			return tier(t, newMemstore(t), newMemstore(t), tieredstore.Config{})
		},
		InProcess: true,
	})
}

// A site has one Redis and one table, which several processes use.
type site struct {
	redis *testserver.RedisServer
	pool  *pgxpool.Pool
	table string
}

func newSite(t testing.TB) *site {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), testserver.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s := &site{redis: testserver.StartRedis(t), pool: pool, table: "tier_" + strings.ToLower(rand.Text()[:12])}
	if err := pgstore.Migrate(t.Context(), pool, pgstore.Config{Table: s.table}); err != nil {
		t.Fatal(err)
	}
	return s
}

// A whole closes its tiers with itself, as a program does at its end.
type whole struct {
	*tieredstore.Store
	front, back io.Closer
}

func (w *whole) Close() error {
	return errors.Join(w.Store.Close(), w.front.Close(), w.back.Close())
}

// process returns a store as one more process has it.
func (s *site) process(t testing.TB, transactional bool) *whole {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: s.redis.Addr, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	front, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = front.Close() })
	if transactional {
		back, err := pgstore.NewTx(s.pool, pgstore.TxConfig{Config: pgstore.Config{Table: s.table}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = back.Close() })
		return &whole{tier(t, front, back, tieredstore.Config{}), front, back}
	}
	back, err := pgstore.New(s.pool, pgstore.Config{Table: s.table})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = back.Close() })
	return &whole{tier(t, front, back, tieredstore.Config{}), front, back}
}

// advance moves the ends of all records d closer, in both tiers.
func (s *site) advance(t testing.TB, d time.Duration) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	sql := "UPDATE " + pgx.Identifier{s.table}.Sanitize() + " SET expires_at = expires_at - $1::interval"
	if _, err := s.pool.Exec(ctx, sql, d); err != nil {
		t.Fatal(err)
	}
	client := s.redis.Client()
	defer func() { _ = client.Close() }()
	keys, err := client.Keys(ctx, "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		left, err := client.PTTL(ctx, key).Result()
		if err != nil {
			t.Fatal(err)
		}
		if err := client.PExpire(ctx, key, max(left-d, 0)).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestConformanceOfRedisBeforePostgres(t *testing.T) {
	for name, transactional := range map[string]bool{"lease": false, "transactional": true} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			storetest.Run(t, storetest.Harness{
				New:           func(t *testing.T) replay.Store { return s.process(t, transactional) },
				Peer:          func(t *testing.T, _ replay.Store) replay.Store { return s.process(t, transactional) },
				Advance:       func(t *testing.T, _ replay.Store, d time.Duration) { s.advance(t, d) },
				Transactional: transactional,
			})
		})
	}
}
