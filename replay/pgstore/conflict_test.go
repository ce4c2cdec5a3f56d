package pgstore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/pgstore"
)

// A handler that has lost a conflict has mostly heard of it from a statement, and
// gives up. Then Release says so, whatever the handler made of the error.
func TestReleaseTellsOfAConflictThatAStatementHasLost(t *testing.T) {
	pool := newPool(t, serverURL(t))
	c := newTable(t, pool, pgstore.Config{})
	o := newOrders(t, pool, c)
	db := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { _ = db.Close() })
	s := newTxStore(t, pool, pgstore.TxConfig{Config: c, IsoLevel: pgx.RepeatableRead, DB: db})
	if _, err := pool.Exec(t.Context(), "INSERT INTO "+o.name+" (id, item) VALUES (1, 'tea')"); err != nil {
		t.Fatal(err)
	}
	change := "UPDATE " + o.name + " SET item = item || '+' WHERE id = 1 RETURNING item"
	broken := "INSERT INTO " + o.name + " (id, item) VALUES (1, 'twice')" // 23505
	for name, tt := range map[string]struct {
		run  func(ctx context.Context, tx pgx.Tx, sql pgstore.SQLTx) error
		code string // of the conflict that Release tells of
	}{
		"Exec": {func(ctx context.Context, tx pgx.Tx, _ pgstore.SQLTx) error {
			_, err := tx.Exec(ctx, change)
			return err
		}, "40001"},
		"Query": {func(ctx context.Context, tx pgx.Tx, _ pgstore.SQLTx) error {
			rows, _ := tx.Query(ctx, change)
			_, err := pgx.CollectRows(rows, pgx.RowTo[string])
			return err
		}, "40001"},
		"Query, only closed": {func(ctx context.Context, tx pgx.Tx, _ pgstore.SQLTx) error {
			rows, _ := tx.Query(ctx, change)
			rows.Close()
			return rows.Err()
		}, "40001"},
		"QueryRow": {func(ctx context.Context, tx pgx.Tx, _ pgstore.SQLTx) error {
			var item string
			return tx.QueryRow(ctx, change).Scan(&item)
		}, "40001"},
		"SendBatch": {func(ctx context.Context, tx pgx.Tx, _ pgstore.SQLTx) error {
			b := &pgx.Batch{}
			b.Queue("SELECT 1")
			b.Queue(change)
			return tx.SendBatch(ctx, b).Close()
		}, "40001"},
		"SendBatch, result by result": {func(ctx context.Context, tx pgx.Tx, _ pgstore.SQLTx) error {
			b := &pgx.Batch{}
			b.Queue(change)
			br := tx.SendBatch(ctx, b)
			var item string
			return errors.Join(br.QueryRow().Scan(&item), br.Close())
		}, "40001"},
		"ExecContext": {func(ctx context.Context, _ pgx.Tx, tx pgstore.SQLTx) error {
			_, err := tx.ExecContext(ctx, change)
			return err
		}, "40001"},
		"QueryContext": {func(ctx context.Context, _ pgx.Tx, tx pgstore.SQLTx) error {
			rows, err := tx.QueryContext(ctx, change)
			if err == nil {
				err = errors.Join(rows.Close(), rows.Err())
			}
			return err
		}, "40001"},
		"QueryRowContext": {func(ctx context.Context, _ pgx.Tx, tx pgstore.SQLTx) error {
			var item string
			return tx.QueryRowContext(ctx, change).Scan(&item)
		}, "40001"},
		"statements after it": {func(ctx context.Context, tx pgx.Tx, _ pgstore.SQLTx) error {
			_, err := tx.Exec(ctx, change)
			_, after := tx.Exec(ctx, "SELECT 1") // 25P02
			return errors.Join(err, after)
		}, "40001"},
		"in a savepoint, given up": {func(ctx context.Context, tx pgx.Tx, _ pgstore.SQLTx) error {
			return pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, change)
				return err
			})
		}, ""},
		"in a savepoint, then a mistake": {func(ctx context.Context, tx pgx.Tx, _ pgstore.SQLTx) error {
			lost := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, change)
				return err
			})
			_, err := tx.Exec(ctx, broken)
			return errors.Join(lost, err)
		}, ""},
		"a mistake": {func(ctx context.Context, tx pgx.Tx, _ pgstore.SQLTx) error {
			_, err := tx.Exec(ctx, broken)
			return err
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := mustClaim(t, s, claimOf("k"))
			ctx := lend(t, h)
			if _, err := pool.Exec(ctx, change); err != nil { // after the handler's snapshot
				t.Fatal(err)
			}
			if err := tt.run(ctx, pgstore.Tx(ctx), pgstore.SQL(ctx)); err == nil {
				t.Fatal("the statement succeeds")
			}
			err := h.Release(t.Context())
			var pg *pgconn.PgError
			switch {
			case tt.code == "" && err != nil:
				t.Errorf("release: %v, want nil", err)
			case tt.code != "" && (!errors.Is(err, replay.ErrUndone) || !errors.As(err, &pg) || pg.Code != tt.code):
				t.Errorf("release: %v, want ErrUndone for %s", err, tt.code)
			}
		})
	}
}
