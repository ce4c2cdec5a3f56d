package pgstore_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/pgstore"
)

func newTxStore(t testing.TB, pool *pgxpool.Pool, c pgstore.TxConfig) *pgstore.TxStore {
	t.Helper()
	s, err := pgstore.NewTx(pool, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// orders is where the handlers of these tests write.
type orders struct {
	name string
	pool *pgxpool.Pool
}

func newOrders(t testing.TB, pool *pgxpool.Pool, c pgstore.Config) orders {
	t.Helper()
	o := orders{name: pgx.Identifier{"o " + c.Table}.Sanitize(), pool: pool}
	if _, err := pool.Exec(t.Context(), "CREATE TABLE "+o.name+" (id bigserial PRIMARY KEY, item text NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := pool.Exec(context.Background(), "DROP TABLE "+o.name, pgx.QueryExecModeExec); err != nil {
			t.Errorf("drop orders: %v", err)
		}
	})
	return o
}

func (o orders) insert() string { return "INSERT INTO " + o.name + " (item) VALUES ($1::text)" }

func (o orders) place(t testing.TB, h replay.Hold, item string) {
	t.Helper()
	if _, err := pgstore.Tx(lend(t, h)).Exec(t.Context(), o.insert(), item); err != nil {
		t.Fatalf("place order: %v", err)
	}
}

func (o orders) count(t testing.TB) (n int) {
	t.Helper()
	if err := o.pool.QueryRow(t.Context(), "SELECT count(*) FROM "+o.name).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func lend(t testing.TB, h replay.Hold) context.Context {
	t.Helper()
	l, ok := h.(replay.Lender)
	if !ok {
		t.Fatalf("%T lends nothing", h)
	}
	return l.Lend(t.Context())
}

func txSetup(t testing.TB, change ...func(*pgxpool.Config)) (*pgstore.TxStore, orders, pgstore.Config) {
	t.Helper()
	pool := newPool(t, serverURL(t), change...)
	c := newTable(t, pool, pgstore.Config{})
	return newTxStore(t, pool, pgstore.TxConfig{Config: c}), newOrders(t, pool, c), c
}

func TestTxCommitsOrdersWithTheResponse(t *testing.T) {
	for name, setting := range settings {
		t.Run(name, func(t *testing.T) {
			s, o, _ := txSetup(t, setting...)
			h := mustClaim(t, s, claimOf("k"))
			o.place(t, h, "tea")
			if n := o.count(t); n != 0 {
				t.Errorf("%d orders to be seen before the seal", n)
			}
			if rec, err := s.Look(t.Context(), "k"); err != nil || rec.State != replay.Pending {
				t.Errorf("while the handler runs: %+v, %v; want pending", rec, err)
			}
			if rec, h, err := s.Claim(t.Context(), claimOf("k")); err != nil || h != nil || rec.State != replay.Pending || rec.Attempt != 0 {
				t.Errorf("duplicate: %+v, %v, %v", rec, h, err)
			}
			for range 2 {
				if err := h.Seal(t.Context(), []byte("\x00\xff"), time.Hour); err != nil {
					t.Fatalf("seal: %v", err)
				}
			}
			if n := o.count(t); n != 1 {
				t.Errorf("%d orders, want 1", n)
			}
			rec, h, err := s.Claim(t.Context(), claimOf("k"))
			if err != nil || h != nil || rec.State != replay.Done || string(rec.Response) != "\x00\xff" || rec.Attempt != 1 {
				t.Errorf("duplicate: %+v, %v, %v", rec, h, err)
			}
		})
	}
}

func TestTxReleaseLeavesNothing(t *testing.T) {
	s, o, _ := txSetup(t)
	h := mustClaim(t, s, claimOf("k"))
	o.place(t, h, "tea")
	if err := h.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := h.Seal(t.Context(), nil, time.Hour); !errors.Is(err, replay.ErrLeaseLost) {
		t.Errorf("seal after release: %v", err)
	}
	if n := o.count(t); n != 0 {
		t.Errorf("%d orders after the release", n)
	}
	if err := mustClaim(t, s, claimOf("k")).Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestHandlerCannotEndTheTransaction(t *testing.T) {
	s, o, _ := txSetup(t)
	h := mustClaim(t, s, claimOf("k"))
	tx := pgstore.Tx(lend(t, h))
	ctx := t.Context()
	said := map[string]error{"Commit": tx.Commit(ctx), "Rollback": tx.Rollback(ctx)}
	for _, text := range []string{
		"  commit", "-- name: Finish :exec\nCOMMIT", "/* a /* nested */ comment */ -- and\n;ROLLBACK", "--\n\t/**/END", "start transaction",
		"SELECT 1; COMMIT",
	} {
		_, said[text] = tx.Exec(ctx, text)
	}
	_, said["Prepare"] = tx.Prepare(ctx, "finish", "COMMIT")
	for what, err := range said {
		if !errors.Is(err, pgstore.ErrNotYours) {
			t.Errorf("%s: %v, want ErrNotYours", what, err)
		}
	}
	err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, o.insert(), "nested")
		return errors.Join(err, errors.New("changed my mind"))
	})
	if err == nil {
		t.Error("savepoint: no error")
	}
	err = pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
		_, _ = tx.Exec(ctx, "SELECT 1/0")
		return nil
	})
	if err == nil {
		t.Error("failed savepoint: released without an error")
	}
	if _, err := tx.Exec(ctx, "ROLLBACK TO SAVEPOINT submitonce_2"); err != nil {
		t.Errorf("rollback to savepoint: %v", err)
	}
	n, err := tx.CopyFrom(ctx, pgx.Identifier{o.name[1 : len(o.name)-1]}, []string{"item"},
		pgx.CopyFromRows([][]any{{"a"}, {"b"}}))
	if err != nil || n != 2 {
		t.Errorf("copy: %d, %v", n, err)
	}
	b := &pgx.Batch{}
	b.Queue(o.insert(), "c")
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		t.Errorf("batch: %v", err)
	}
	if err := h.Seal(ctx, nil, time.Hour); err != nil {
		t.Fatal(err)
	}
	if n := o.count(t); n != 3 {
		t.Errorf("%d orders, want 3", n)
	}
	if _, err := tx.Exec(ctx, o.insert(), "late"); !errors.Is(err, pgx.ErrTxClosed) {
		t.Errorf("after the seal: %v, want ErrTxClosed", err)
	}
	if _, err := pgstore.Tx(ctx).Exec(ctx, "SELECT 1"); !errors.Is(err, pgstore.ErrNoTx) {
		t.Errorf("without a transaction: %v, want ErrNoTx", err)
	}
}

func TestAbortedTransactionIsNeverASuccess(t *testing.T) {
	tests := map[string]func(context.Context, pgx.Tx, orders) error{
		"sql error swallowed": func(ctx context.Context, tx pgx.Tx, _ orders) error {
			_, err := tx.Exec(ctx, "SELECT 1/0")
			return err
		},
		"deferred constraint": func(ctx context.Context, tx pgx.Tx, _ orders) error {
			_, err := tx.Exec(ctx, "CREATE TEMP TABLE d (a int UNIQUE DEFERRABLE INITIALLY DEFERRED) ON COMMIT DROP; INSERT INTO d VALUES (1), (1)", pgx.QueryExecModeSimpleProtocol)
			return err
		},
		"rows left open": func(ctx context.Context, tx pgx.Tx, _ orders) error {
			_, err := tx.Query(ctx, "SELECT generate_series(1, 100000)")
			return err
		},
		"backend killed": func(ctx context.Context, tx pgx.Tx, _ orders) error {
			_, err := tx.Exec(ctx, "SELECT pg_terminate_backend(pg_backend_pid())")
			return err
		},
		"context cancelled": func(ctx context.Context, tx pgx.Tx, _ orders) error {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
			defer cancel()
			_, err := tx.Exec(ctx, "SELECT pg_sleep(60)")
			return err
		},
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			s, o, _ := txSetup(t)
			h := mustClaim(t, s, claimOf("k"))
			o.place(t, h, "tea")
			_ = spoil(t.Context(), pgstore.Tx(lend(t, h)), o) // swallowed
			for range 2 {
				if err := h.Seal(t.Context(), nil, time.Hour); !errors.Is(err, replay.ErrUndone) {
					t.Errorf("seal: %v, want ErrUndone", err)
				}
			}
			if n := o.count(t); n != 0 {
				t.Errorf("%d orders", n)
			}
			h = claimSoon(t, s, "k")
			if err := h.Seal(t.Context(), nil, time.Hour); err != nil {
				t.Errorf("again: %v", err)
			}
		})
	}
}

// claimSoon claims a key that a dying session of the server may still hold.
func claimSoon(t testing.TB, s replay.Store, key string) replay.Hold {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); ; {
		_, h, err := s.Claim(t.Context(), claimOf(key))
		if err != nil {
			t.Fatalf("claim: %v", err)
		}
		if h != nil {
			return h
		}
		if time.Now().After(end) {
			t.Fatal("the key was not free after 5 s")
		}
	}
}

func TestHandlerThatEndsItsTransactionBehindOurBackHasItsAnswerKept(t *testing.T) {
	for end, orders := range map[string]int{"COMMIT": 1, "ROLLBACK": 0} {
		t.Run(end, func(t *testing.T) {
			var log bytes.Buffer
			pool := newPool(t, serverURL(t))
			c := newTable(t, pool, pgstore.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			o := newOrders(t, pool, c)
			s := newTxStore(t, pool, pgstore.TxConfig{Config: c})
			h := mustClaim(t, s, claimOf("k"))
			o.place(t, h, "tea")
			if _, err := pgstore.Tx(lend(t, h)).Conn().Exec(t.Context(), end); err != nil {
				t.Fatal(err)
			}
			if err := h.Seal(t.Context(), []byte("its answer"), time.Hour); err != nil {
				t.Errorf("seal: %v", err)
			}
			rec, again, err := s.Claim(t.Context(), claimOf("k"))
			if err != nil || again != nil || string(rec.Response) != "its answer" {
				t.Errorf("duplicate: %+v, %v, %v; want the answer", rec, again, err)
			}
			if n := o.count(t); n != orders {
				t.Errorf("%d orders, want %d", n, orders)
			}
			if !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "ended its transaction by itself") {
				t.Errorf("the log says %q", log.String())
			}
		})
	}
}

func TestTxFindsARecordThatAppearedMeanwhile(t *testing.T) {
	s, o, c := txSetup(t)
	h := mustClaim(t, s, claimOf("k"))
	o.place(t, h, "tea")
	other := newStore(t, newPool(t, serverURL(t)), c) // shares the table by mistake
	first := mustClaim(t, other, claimOf("k"))
	if err := first.Seal(t.Context(), []byte("first"), time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := h.Seal(t.Context(), []byte("second"), time.Hour); !errors.Is(err, replay.ErrLeaseLost) {
		t.Errorf("seal: %v, want ErrLeaseLost", err)
	}
	if n := o.count(t); n != 0 {
		t.Errorf("%d orders, want none", n)
	}
	if rec, _, err := s.Claim(t.Context(), claimOf("k")); err != nil || string(rec.Response) != "first" {
		t.Errorf("%+v, %v", rec, err)
	}
}

func TestTxTakesOverWhatALeaseAbandoned(t *testing.T) {
	s, _, c := txSetup(t)
	leases := newStore(t, newPool(t, serverURL(t)), c)
	mustClaim(t, leases, claimOf("k"))
	if rec, h, err := s.Claim(t.Context(), claimOf("k")); err != nil || h != nil || rec.Attempt != 1 || rec.LeaseLeft <= 0 {
		t.Errorf("running lease: %+v, %v, %v", rec, h, err)
	}
	if _, err := newPool(t, serverURL(t)).Exec(t.Context(), "UPDATE "+name(c)+" SET expires_at = now()"); err != nil {
		t.Fatal(err)
	}
	rec, h, err := s.Claim(t.Context(), claimOf("k"))
	if err != nil || h == nil || rec.Attempt != 2 {
		t.Fatalf("expired lease: %+v, %v, %v; want attempt 2", rec, h, err)
	}
	if err := h.Seal(t.Context(), []byte("x"), time.Hour); err != nil {
		t.Fatal(err)
	}
	if rec, err := s.Look(t.Context(), "k"); err != nil || rec.State != replay.Done || rec.Attempt != 2 {
		t.Errorf("%+v, %v", rec, err)
	}
}

func TestTxWaiterOfAnotherProcessIsWokenByNotification(t *testing.T) {
	ours, _, c := txSetup(t)
	theirs := newTxStore(t, newPool(t, serverURL(t)), pgstore.TxConfig{Config: c})
	for i, end := range []func(replay.Hold) error{
		func(h replay.Hold) error { return h.Seal(t.Context(), []byte("answer"), time.Hour) },
		func(h replay.Hold) error { return h.Release(t.Context()) },
	} {
		key := string(rune('a' + i))
		h := mustClaim(t, ours, claimOf(key))
		ch := watch(t, theirs, key)
		if err := end(h); err != nil {
			t.Fatal(err)
		}
		within(t, "sealed or released elsewhere", ch, 125*time.Millisecond)
	}
}

func TestWaitersHoldNoConnection(t *testing.T) {
	s, o, _ := txSetup(t, conns(4))
	const duplicates, keys = 500, 3
	var runs, answers atomic.Int32
	var wg sync.WaitGroup
	for i := range duplicates {
		wg.Go(func() {
			key := fmt.Sprintf("k%d", i%keys)
			changed, stop, err := s.Watch(t.Context(), key)
			if err != nil {
				t.Error(err)
				return
			}
			defer stop()
			for {
				rec, h, err := s.Claim(t.Context(), claimOf(key))
				switch {
				case err != nil:
					t.Error(err)
					return
				case h != nil:
					runs.Add(1)
					o.place(t, h, key)
					if _, err := pgstore.Tx(lend(t, h)).Exec(t.Context(), "SELECT pg_sleep(0.3)"); err != nil {
						t.Error(err)
					}
					if err := h.Seal(t.Context(), []byte(key), time.Hour); err != nil {
						t.Error(err)
					}
					answers.Add(1)
					return
				case rec.State == replay.Done:
					answers.Add(1)
					return
				}
				<-changed
			}
		})
	}
	wg.Wait()
	if runs.Load() != keys || answers.Load() != duplicates || o.count(t) != keys {
		t.Errorf("%d runs, %d answers, %d orders; want %d, %d, %d", runs.Load(), answers.Load(), o.count(t), keys, duplicates, keys)
	}
}

func TestSerializationFailureIsUndone(t *testing.T) {
	pool := newPool(t, serverURL(t))
	c := newTable(t, pool, pgstore.Config{})
	o := newOrders(t, pool, c)
	s := newTxStore(t, pool, pgstore.TxConfig{Config: c, IsoLevel: pgx.Serializable})
	var holds []replay.Hold
	for _, key := range []string{"a", "b"} { // each reads what the other writes
		h := mustClaim(t, s, claimOf(key))
		var n int
		if err := pgstore.Tx(lend(t, h)).QueryRow(t.Context(), "SELECT count(*) FROM "+o.name).Scan(&n); err != nil {
			t.Fatal(err)
		}
		holds = append(holds, h)
	}
	for _, h := range holds {
		o.place(t, h, "tea")
	}
	if err := holds[0].Seal(t.Context(), nil, time.Hour); err != nil {
		t.Fatal(err)
	}
	err := holds[1].Seal(t.Context(), nil, time.Hour)
	var pg *pgconn.PgError
	if !errors.Is(err, replay.ErrUndone) || !errors.As(err, &pg) || pg.Code != "40001" {
		t.Errorf("seal: %v, want ErrUndone for 40001", err)
	}
	if n := o.count(t); n != 1 {
		t.Errorf("%d orders, want 1", n)
	}
}

func TestDatabaseSQLTakesPart(t *testing.T) {
	pool := newPool(t, serverURL(t))
	c := newTable(t, pool, pgstore.Config{})
	o := newOrders(t, pool, c)
	db := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { _ = db.Close() })
	s := newTxStore(t, pool, pgstore.TxConfig{Config: c, DB: db})
	for _, seal := range []bool{false, true} {
		h := mustClaim(t, s, claimOf("k"))
		tx := pgstore.SQL(lend(t, h))
		if _, err := tx.ExecContext(t.Context(), o.insert(), "by database/sql"); err != nil {
			t.Fatal(err)
		}
		o.place(t, h, "by pgx")
		var n int
		if err := tx.QueryRowContext(t.Context(), "SELECT count(*) FROM "+o.name).Scan(&n); err != nil || n != 2 {
			t.Errorf("both see %d orders, %v; want 2", n, err)
		}
		if _, err := tx.ExecContext(t.Context(), "COMMIT"); !errors.Is(err, pgstore.ErrNotYours) {
			t.Errorf("commit: %v", err)
		}
		end := h.Release
		if seal {
			end = func(ctx context.Context) error { return h.Seal(ctx, nil, time.Hour) }
		}
		if err := end(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := tx.QueryRowContext(t.Context(), "SELECT 1").Scan(&n); !errors.Is(err, pgx.ErrTxClosed) {
			t.Errorf("afterwards: %v", err)
		}
		if n, want := o.count(t), map[bool]int{true: 2}[seal]; n != want {
			t.Errorf("%d orders, want %d", n, want)
		}
	}
	if _, err := pgstore.SQL(t.Context()).QueryContext(t.Context(), "SELECT 1"); !errors.Is(err, pgstore.ErrNoTx) {
		t.Errorf("without a transaction: %v", err)
	}
	if n := pool.Stat().AcquiredConns(); n != 0 {
		t.Errorf("%d connections not given back", n)
	}
}

// A handler that forgets to close what it has asked for must not hold up its own
// answer, as it would not with a *sql.Tx.
func TestWhatIsLeftOpenInDatabaseSQLHoldsNothingUp(t *testing.T) {
	ctx := context.Background() // nothing else ends what is left open
	var forgotten []*sql.Rows   // keep their connections, as they do without a guard
	for name, leave := range map[string]func(pgstore.SQLTx) error{
		"rows": func(tx pgstore.SQLTx) error {
			rows, err := tx.QueryContext(ctx, "SELECT generate_series(1, 3)")
			if err == nil && !rows.Next() {
				err = rows.Err()
			}
			return err
		},
		"a row": func(tx pgstore.SQLTx) error {
			return tx.QueryRowContext(ctx, "SELECT generate_series(1, 3)").Err()
		},
		"rows of a prepared statement": func(tx pgstore.SQLTx) error {
			stmt, err := tx.PrepareContext(ctx, "SELECT generate_series(1, 3)")
			if err != nil {
				return err
			}
			rows, err := stmt.QueryContext(ctx)
			if err == nil && !rows.Next() {
				err = rows.Err()
			}
			forgotten = append(forgotten, rows)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			pool := newPool(t, serverURL(t), conns(4))
			defer func() {
				for _, rows := range forgotten {
					_ = rows.Close()
				}
			}()
			c := newTable(t, pool, pgstore.Config{})
			o := newOrders(t, pool, c)
			s := newTxStore(t, pool, pgstore.TxConfig{Config: c, DB: stdlib.OpenDBFromPool(pool)})
			for _, end := range []func(replay.Hold) error{
				func(h replay.Hold) error { return h.Release(ctx) },
				func(h replay.Hold) error { return h.Seal(ctx, []byte("done"), time.Hour) },
			} {
				h := mustClaim(t, s, claimOf("k"))
				o.place(t, h, "tea")
				if err := leave(pgstore.SQL(lend(t, h))); err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, 1)
				go func() { ended <- end(h) }()
				select {
				case err := <-ended:
					if prepared := name == "rows of a prepared statement"; (err != nil) != prepared {
						t.Errorf("end: %v, want an error: %v", err, prepared)
					}
				case <-time.After(20 * time.Second):
					t.Fatal("the end waits for what is open")
				}
			}
			rec, err := s.Look(ctx, "k")
			want := replay.Done
			if name == "rows of a prepared statement" {
				want = replay.Free
			}
			if n := o.count(t); err != nil || rec.State != want || n != map[replay.State]int{replay.Done: 1}[want] {
				t.Errorf("%v, %v, %d orders; want %v", rec.State, err, n, want)
			}
		})
	}
}
