package pgstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/submitonce/submitonce/internal/testserver"
	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/pgstore"
)

// A pooler lends the session of another client, which has prepared there what the
// seal would prepare, or has not what it has prepared elsewhere. Whatever fails in
// the handler's transaction undoes the handler's work, so the seal must not depend
// on that, nor must it have to fail once to be wiser.
func TestSealBehindAPoolerUndoesNothingForThePreparedStatementsOfOthers(t *testing.T) {
	server := testserver.StartPostgres(t)
	bouncer := testserver.StartPgBouncer(t, server)
	cached := execMode(pgx.QueryExecModeCacheStatement)
	direct := newPool(t, server.URL, cached, conns(1))
	c := newTable(t, direct, pgstore.Config{})
	seal := func(s replay.Store, key string) {
		t.Helper()
		if err := mustClaim(t, s, claimOf(key)).Seal(t.Context(), []byte("r"), time.Hour); err != nil {
			t.Errorf("seal of %s: %v", key, err)
		}
	}
	seal(newTxStore(t, direct, pgstore.TxConfig{Config: c}), "direct")
	rows, err := direct.Query(t.Context(), "SELECT name, statement FROM pg_prepared_statements WHERE name LIKE 'submitonce%'")
	if err != nil {
		t.Fatal(err)
	}
	type prepared struct{ Name, Statement string }
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[prepared])
	if err != nil {
		t.Fatal(err)
	}
	shared := newPool(t, bouncer.URL, execMode(pgx.QueryExecModeSimpleProtocol)) // one after the other, clients share a session
	n := 0
	for _, p := range all {
		if strings.Contains(p.Statement, "INSERT") {
			n++
			if _, err := shared.Exec(t.Context(), `PREPARE "`+p.Name+`" AS `+p.Statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n != 1 {
		t.Fatalf("%d of the prepared statements insert, want 1: %+v", n, all)
	}
	s := newTxStore(t, newPool(t, bouncer.URL, cached), pgstore.TxConfig{Config: c})
	seal(s, "pooled")
	if _, err := shared.Exec(t.Context(), "DEALLOCATE ALL"); err != nil { // as in another session
		t.Fatal(err)
	}
	seal(s, "pooled again")
	for _, key := range []string{"pooled", "pooled again"} {
		if rec, err := s.Look(t.Context(), key); err != nil || string(rec.Response) != "r" {
			t.Errorf("%s: %+v, %v; want done with r", key, rec, err)
		}
	}
}
