package pgstore_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/submitonce/submitonce/internal/testserver"
	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/pgstore"
)

// From repeatable read on, a claim is two transactions. Who finds the key free in
// the first must not win it in the second if it was sealed between the two.
func TestAKeyThatIsSealedInMidClaimIsNotWon(t *testing.T) {
	const keys, claimers = 1500, 4
	for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable} {
		t.Run(string(level), func(t *testing.T) {
			pool := newPool(t, serverURL(t), conns(claimers))
			c := newTable(t, pool, pgstore.Config{})
			var wins [keys]atomic.Int32
			var crowd sync.WaitGroup
			for range claimers {
				// Each by a store of its own, because a store remembers what it has sealed.
				s := newTxStore(t, pool, pgstore.TxConfig{Config: c, IsoLevel: level})
				crowd.Go(func() {
					for k := range keys {
						for {
							rec, h, err := s.Claim(t.Context(), claimOf(fmt.Sprint(k)))
							if err != nil {
								t.Errorf("claim: %v", err)
								return
							}
							if rec.State == replay.Done {
								break
							}
							if h == nil {
								continue
							}
							wins[k].Add(1)
							if err := h.Seal(t.Context(), nil, time.Hour); err != nil {
								t.Errorf("seal: %v", err)
							}
						}
					}
				})
			}
			crowd.Wait()
			for k := range wins {
				if n := wins[k].Load(); n != 1 {
					t.Errorf("key %d was won %d times, want 1", k, n)
				}
			}
		})
	}
}

// The session keeps the lock between the two transactions. It must not keep it
// when the second is never reached, not even a session that a pooler shares.
func TestAClaimThatFailsMidwayLeavesNoLock(t *testing.T) {
	server := testserver.StartPostgres(t)
	bouncer := testserver.StartPgBouncer(t, server)
	for path, way := range map[string]struct {
		url  string
		mode pgx.QueryExecMode
	}{
		"direct":                     {server.URL, pgx.QueryExecModeCacheStatement},
		"PgBouncer, exec":            {bouncer.URL, pgx.QueryExecModeExec},
		"PgBouncer, simple protocol": {bouncer.URL, pgx.QueryExecModeSimpleProtocol},
	} {
		t.Run(path, func(t *testing.T) {
			pool := newPool(t, server.URL)
			c := newTable(t, pool, pgstore.Config{})
			table := name(c)
			open := func() *pgstore.TxStore {
				return newTxStore(t, newPool(t, way.url, execMode(way.mode)), pgstore.TxConfig{Config: c, IsoLevel: pgx.Serializable})
			}
			rename := func(from, to string) {
				t.Helper()
				if _, err := pool.Exec(t.Context(), "ALTER TABLE "+from+" RENAME TO "+to); err != nil {
					t.Fatal(err)
				}
			}
			rename(table, `"away"`)
			s := open()
			if rec, h, err := s.Claim(t.Context(), claimOf("k")); err == nil {
				t.Fatalf("claim without a table: %+v, %v", rec, h)
			}
			rename(`"away"`, table)
			if err := mustClaim(t, open(), claimOf("k")).Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := value[int](t, pool, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock'"); n != 0 {
				t.Errorf("%d locks are left", n)
			}
		})
	}
}
