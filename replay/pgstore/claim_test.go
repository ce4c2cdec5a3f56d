package pgstore_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/pgstore"
)

// settings are the ways a pool may be set up that must make no difference.
var settings = map[string][]func(*pgxpool.Config){
	"read committed":  {isolation("read committed")},
	"repeatable read": {isolation("repeatable read")},
	"serializable":    {isolation("serializable")},
	"simple protocol": {execMode(pgx.QueryExecModeSimpleProtocol)},
	"exec":            {execMode(pgx.QueryExecModeExec)},
	"describe":        {execMode(pgx.QueryExecModeDescribeExec)},
}

func TestRacingClaimsHaveOneWinnerAndNoError(t *testing.T) {
	for name, setting := range settings {
		t.Run(name, func(t *testing.T) {
			pool := newPool(t, serverURL(t), append(setting, conns(16))...)
			s := newStore(t, pool, newTable(t, pool, pgstore.Config{}))
			const keys, racers = 40, 16
			var wins [keys]atomic.Int32
			var wg sync.WaitGroup
			for range racers {
				wg.Go(func() {
					for k := range keys {
						key := fmt.Sprintf("k%d", k)
						for {
							rec, h, err := s.Claim(t.Context(), claimOf(key))
							if err != nil {
								t.Errorf("claim: %v", err)
								return
							}
							if h != nil {
								wins[k].Add(1)
								if err := h.Seal(t.Context(), []byte(key), time.Hour); err != nil {
									t.Errorf("seal: %v", err)
								}
								break
							}
							if rec.State == replay.Done {
								if string(rec.Response) != key {
									t.Errorf("response %q, want %q", rec.Response, key)
								}
								break
							}
						}
					}
				})
			}
			wg.Wait()
			for k := range keys {
				if n := wins[k].Load(); n != 1 {
					t.Errorf("key %d was won %d times", k, n)
				}
			}
		})
	}
}
