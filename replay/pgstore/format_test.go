package pgstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/pgstore"
)

// textFormats are settings of a server or a role that change how values look
// where they are read as text.
var textFormats = [][2]string{
	{"IntervalStyle", "postgres"}, {"IntervalStyle", "postgres_verbose"}, {"IntervalStyle", "sql_standard"}, {"IntervalStyle", "iso_8601"},
	{"bytea_output", "hex"}, {"bytea_output", "escape"}, {"DateStyle", "German"}, {"extra_float_digits", "-15"},
}

var execModes = []pgx.QueryExecMode{
	pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
	pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
}

func runtimeParam(name, value string) func(*pgxpool.Config) {
	return func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams[name] = value }
}

func TestRecordsAreReadInWhateverFormatTheServerWrites(t *testing.T) {
	plain := newPool(t, serverURL(t))
	table := newTable(t, plain, pgstore.Config{})
	var all [256]byte
	for i := range all {
		all[i] = byte(i)
	}
	responses := []string{`\x00`, `a\\b\001`, "", string(all[:])}
	for _, format := range textFormats {
		for _, mode := range execModes {
			change := []func(*pgxpool.Config){runtimeParam(format[0], format[1]), execMode(mode), conns(4)}
			for _, kind := range []string{"lease", "transactional"} {
				t.Run(fmt.Sprint(format[0], " ", format[1], ", ", mode, ", ", kind), func(t *testing.T) {
					t.Parallel()
					open := func() replay.Store {
						pool := newPool(t, serverURL(t), change...)
						if kind == "lease" {
							return newStore(t, pool, table)
						}
						return newTxStore(t, pool, pgstore.TxConfig{Config: table})
					}
					ours, theirs := open(), open()
					for i, response := range responses {
						key := fmt.Sprint(t.Name(), i)
						h := mustClaim(t, ours, claimOf(key))
						for _, s := range []replay.Store{ours, theirs} {
							rec, h, err := s.Claim(t.Context(), claimOf(key))
							if err != nil || h != nil || rec.State != replay.Pending ||
								kind == "lease" && (rec.LeaseLeft < 20*time.Second || rec.LeaseLeft > 30*time.Second) {
								t.Fatalf("while it is pending: %+v, %v, %v", rec, h, err)
							}
						}
						changed := watch(t, theirs.(replay.Watcher), key)
						if err := h.Extend(t.Context(), time.Minute); err != nil {
							t.Errorf("extend: %v", err)
						}
						for range 2 {
							if err := h.Seal(t.Context(), []byte(response), 40*24*time.Hour); err != nil {
								t.Fatalf("seal: %v", err)
							}
						}
						within(t, "sealed", changed, 2*time.Second)
						for _, s := range []replay.Store{theirs, ours, theirs} {
							rec, h, err := s.Claim(t.Context(), claimOf(key))
							if err != nil || h != nil || rec.State != replay.Done || string(rec.Response) != response {
								t.Errorf("claim: %+v, %v, %v", rec, h, err)
							}
							rec, err = s.Look(t.Context(), key)
							if err != nil || rec.State != replay.Done || string(rec.Response) != response {
								t.Errorf("look: %+v, %v", rec, err)
							}
						}
					}
				})
			}
		}
	}
}

// The poller reads by other statements than the claims.
func TestPollingReadsInWhateverFormatTheServerWrites(t *testing.T) {
	plain := newPool(t, serverURL(t))
	table := newTable(t, plain, pgstore.Config{NoListen: true})
	for _, mode := range execModes {
		change := []func(*pgxpool.Config){runtimeParam("bytea_output", "escape"), execMode(mode), conns(4)}
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			ours := newStore(t, newPool(t, serverURL(t), change...), table)
			theirs := newStore(t, newPool(t, serverURL(t), change...), table)
			h := mustClaim(t, ours, claimOf(mode.String()))
			changed := watch(t, theirs, mode.String())
			select {
			case <-changed:
				t.Error("woken while it is pending, as if nobody held the key")
			case <-time.After(300 * time.Millisecond):
			}
			if err := h.Seal(t.Context(), nil, time.Hour); err != nil {
				t.Fatal(err)
			}
			within(t, "sealed", changed, 2*time.Second)
		})
	}
}

func TestPartitionsAreKeptInWhateverFormatTheServerWrites(t *testing.T) {
	for _, format := range textFormats {
		t.Run(fmt.Sprint(format), func(t *testing.T) {
			for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
				pool := newPool(t, serverURL(t), runtimeParam(format[0], format[1]), execMode(mode))
				s := newStore(t, pool, newTable(t, pool, pgstore.Config{Partition: 24 * time.Hour}))
				if _, err := s.Sweep(t.Context(), 100); err != nil {
					t.Errorf("%v: %v", mode, err)
				}
			}
		})
	}
}
