package pgstore_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/submitonce/submitonce/internal/testserver"
	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/pgstore"
)

func TestMain(m *testing.M) { testserver.Main(m) }

func serverURL(t testing.TB) string { return testserver.Postgres(t) }

// newPool returns a pool on a server, changed by each of change.
func newPool(t testing.TB, url string, change ...func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	c, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(c)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func isolation(level string) func(*pgxpool.Config) {
	return func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["default_transaction_isolation"] = level
	}
}

func execMode(m pgx.QueryExecMode) func(*pgxpool.Config) {
	return func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = m }
}

func conns(n int32) func(*pgxpool.Config) {
	return func(c *pgxpool.Config) { c.MaxConns = n }
}

// newTable makes a table of its own for the test and returns how it is called.
func newTable(t testing.TB, pool *pgxpool.Pool, c pgstore.Config) pgstore.Config {
	t.Helper()
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Table = "t " + strings.ToLower(rand.Text()[:12]) // a name that has to be quoted
	if err := pgstore.Migrate(t.Context(), pool, c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if _, err := pool.Exec(ctx, "DROP TABLE "+name(c), pgx.QueryExecModeExec); err != nil {
			t.Errorf("drop table: %v", err)
		}
	})
	return c
}

func name(c pgstore.Config) string { return pgx.Identifier{c.Table}.Sanitize() }

func newStore(t testing.TB, pool *pgxpool.Pool, c pgstore.Config) *pgstore.Store {
	t.Helper()
	s, err := pgstore.New(pool, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func owner() (o replay.Owner) {
	_, _ = rand.Read(o[:])
	return o
}

func claimOf(key string) replay.Claim {
	return replay.Claim{Key: key, Owner: owner(), Lease: 30 * time.Second}
}

func mustClaim(t testing.TB, s replay.Store, c replay.Claim) replay.Hold {
	t.Helper()
	rec, h, err := s.Claim(t.Context(), c)
	if err != nil || h == nil {
		t.Fatalf("claim: record %+v, hold %v, error %v; want a hold", rec, h, err)
	}
	return h
}
