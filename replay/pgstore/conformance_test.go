package pgstore_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/submitonce/submitonce/internal/testserver"
	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/pgstore"
	"github.com/submitonce/submitonce/replay/storetest"
)

// A site is a table, and how the stores of a test get at it.
type site struct {
	url     string
	setting []func(*pgxpool.Config)
	config  pgstore.Config
	tx      bool
}

// harness makes the stores of a site, each case on a table of its own.
func (s site) harness() storetest.Harness {
	type home struct {
		pool  *pgxpool.Pool
		table pgstore.Config
	}
	homes := make(map[replay.Store]home)
	open := func(t *testing.T, pool *pgxpool.Pool, c pgstore.Config) replay.Store {
		if s.tx {
			return newTxStore(t, pool, pgstore.TxConfig{Config: c})
		}
		return newStore(t, pool, c)
	}
	return storetest.Harness{
		New: func(t *testing.T) replay.Store {
			pool := newPool(t, s.url, append(s.setting, conns(12))...)
			c := newTable(t, pool, s.config)
			store := open(t, pool, c)
			homes[store] = home{pool, c}
			return store
		},
		Peer: func(t *testing.T, store replay.Store) replay.Store {
			return open(t, newPool(t, s.url, append(s.setting, conns(12))...), homes[store].table)
		},
		Advance: func(t *testing.T, store replay.Store, d time.Duration) {
			h := homes[store]
			_, err := h.pool.Exec(t.Context(), "UPDATE "+name(h.table)+" SET expires_at = expires_at - $1::interval",
				pgx.QueryExecModeExec, d.String())
			if err != nil {
				t.Fatalf("advance: %v", err)
			}
		},
		Transactional: s.tx,
	}
}

func TestStoreKeepsItsPromises(t *testing.T) {
	for name, setting := range settings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, site{url: serverURL(t), setting: setting}.harness())
		})
	}
	t.Run("partitioned", func(t *testing.T) {
		t.Parallel()
		storetest.Run(t, site{url: serverURL(t), config: pgstore.Config{Partition: 24 * time.Hour}}.harness())
	})
}

func TestTxStoreKeepsItsPromises(t *testing.T) {
	for name, setting := range settings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, site{url: serverURL(t), setting: setting, tx: true}.harness())
		})
	}
}

func TestStoresKeepTheirPromisesBehindPgBouncer(t *testing.T) {
	bouncer := testserver.StartPgBouncer(t, testserver.StartPostgres(t))
	for name, setting := range map[string]func(*pgxpool.Config){
		"simple protocol": execMode(pgx.QueryExecModeSimpleProtocol),
		"exec":            execMode(pgx.QueryExecModeExec),
		// The pool's default, which does not fit a pooler: the stores notice.
		"cached statements": execMode(pgx.QueryExecModeCacheStatement),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, site{url: bouncer.URL, setting: []func(*pgxpool.Config){setting}}.harness())
		})
		t.Run(name+", transactional", func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, site{url: bouncer.URL, setting: []func(*pgxpool.Config){setting}, tx: true}.harness())
		})
	}
}
