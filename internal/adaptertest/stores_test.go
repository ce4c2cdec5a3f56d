package adaptertest_test

import (
	"context"
	"crypto/rand"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/submitonce/submitonce/internal/adaptertest"
	"github.com/submitonce/submitonce/internal/testserver"
	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/pgstore"
	"github.com/submitonce/submitonce/replay/redisstore"
	"github.com/submitonce/submitonce/replay/sqlitestore"
	"github.com/submitonce/submitonce/replay/tieredstore"
)

func TestMain(m *testing.M) { testserver.Main(m) }

func name() string { return "t" + strings.ToLower(rand.Text()[:16]) }

func openRedis(t *testing.T) replay.Store {
	t.Helper()
	opts, err := redis.ParseURL(testserver.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(opts)
	t.Cleanup(func() { _ = client.Close() })
	s, err := redisstore.New(client, redisstore.Config{Prefix: name() + ":"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// openPool opens the pool of one case, which has a table of its own.
func openPool(t *testing.T) (*pgxpool.Pool, pgstore.Config) {
	t.Helper()
	config, err := pgxpool.ParseConfig(testserver.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 4
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	c := pgstore.Config{Table: name()}
	if err := pgstore.Migrate(context.WithoutCancel(t.Context()), pool, c); err != nil {
		t.Fatal(err)
	}
	return pool, c
}

func openPostgres(t *testing.T) replay.Store {
	t.Helper()
	s, err := pgstore.New(openPool(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func openPostgresTx(t *testing.T) replay.Store {
	t.Helper()
	pool, c := openPool(t)
	s, err := pgstore.NewTx(pool, pgstore.TxConfig{Config: c})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func openSQLite(t *testing.T) replay.Store {
	t.Helper()
	db, err := sqlitestore.Open(filepath.Join(t.TempDir(), "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	s, err := sqlitestore.New(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// tiered puts Redis before a store.
func tiered(back func(*testing.T) replay.Store) func(*testing.T) replay.Store {
	return func(t *testing.T) replay.Store {
		t.Helper()
		s, err := tieredstore.New(openRedis(t), back(t), tieredstore.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
}

// TestEveryFrameworkOverEveryStore runs the table of behaviours over real servers.
// Over memory it runs with the adapters.
func TestEveryFrameworkOverEveryStore(t *testing.T) {
	for _, store := range []struct {
		name   string
		stores adaptertest.Stores
	}{
		{"redis", adaptertest.Stores{New: openRedis}},
		{"postgres", adaptertest.Stores{New: openPostgres}},
		{"postgres-tx", adaptertest.Stores{New: openPostgresTx, Lends: true}},
		{"sqlite", adaptertest.Stores{New: openSQLite}},
		{"tiered", adaptertest.Stores{New: tiered(openPostgres)}},
		{"tiered-tx", adaptertest.Stores{New: tiered(openPostgresTx), Lends: true}},
	} {
		for _, framework := range []adaptertest.Framework{adaptertest.NetHTTP(), adaptertest.Gin(), adaptertest.Echo(), adaptertest.Echo5()} {
			t.Run(store.name+", "+framework.Name, func(t *testing.T) {
				adaptertest.Run(t, framework, store.stores)
			})
		}
	}
}
