package compat

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/pgstore"
)

// What follows is laid out as sqlc generates it, for sql_package "pgx/v5".

type DBTX interface {
	Exec(context.Context, string, ...interface{}) (pgconn.CommandTag, error)
	Query(context.Context, string, ...interface{}) (pgx.Rows, error)
	QueryRow(context.Context, string, ...interface{}) pgx.Row
	CopyFrom(ctx context.Context, tableName pgx.Identifier, columnNames []string, rowSrc pgx.CopyFromSource) (int64, error)
	SendBatch(context.Context, *pgx.Batch) pgx.BatchResults
}

func New(db DBTX) *Queries { return &Queries{db: db} }

type Queries struct{ db DBTX }

func (q *Queries) WithTx(tx pgx.Tx) *Queries { return &Queries{db: tx} }

const createOrder = `-- name: CreateOrder :one
INSERT INTO orders (item, submit_key) VALUES ($1, $2) RETURNING id, item, submit_key
`

type CreateOrderParams struct {
	Item      string
	SubmitKey string
}

type OrderRow struct {
	ID        int64
	Item      string
	SubmitKey string
}

func (q *Queries) CreateOrder(ctx context.Context, arg CreateOrderParams) (OrderRow, error) {
	row := q.db.QueryRow(ctx, createOrder, arg.Item, arg.SubmitKey)
	var i OrderRow
	err := row.Scan(&i.ID, &i.Item, &i.SubmitKey)
	return i, err
}

const listOrders = `-- name: ListOrders :many
SELECT id, item, submit_key FROM orders ORDER BY id
`

func (q *Queries) ListOrders(ctx context.Context) ([]OrderRow, error) {
	rows, err := q.db.Query(ctx, listOrders)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var items []OrderRow
	for rows.Next() {
		var i OrderRow
		if err := rows.Scan(&i.ID, &i.Item, &i.SubmitKey); err != nil {
			return nil, err
		}
		items = append(items, i)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return items, nil
}

const renameOrder = `-- name: RenameOrder :execrows
UPDATE orders SET item = $2 WHERE id = $1
`

func (q *Queries) RenameOrder(ctx context.Context, id int64, item string) (int64, error) {
	result, err := q.db.Exec(ctx, renameOrder, id, item)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected(), nil
}

type CreateLinesParams struct {
	OrderID int64
	Text    string
}

func (q *Queries) CreateLines(ctx context.Context, arg []CreateLinesParams) (int64, error) {
	return q.db.CopyFrom(ctx, pgx.Identifier{"lines"}, []string{"order_id", "text"},
		pgx.CopyFromSlice(len(arg), func(i int) ([]any, error) { return []any{arg[i].OrderID, arg[i].Text}, nil }))
}

const renameLine = `-- name: RenameLine :batchexec
UPDATE lines SET text = $2 WHERE text = $1
`

func (q *Queries) RenameLines(ctx context.Context, names map[string]string) error {
	batch := &pgx.Batch{}
	for from, to := range names {
		batch.Queue(renameLine, from, to)
	}
	return q.db.SendBatch(ctx, batch).Close()
}

// And for sql_package "database/sql".

type StdDBTX interface {
	ExecContext(context.Context, string, ...interface{}) (sql.Result, error)
	PrepareContext(context.Context, string) (*sql.Stmt, error)
	QueryContext(context.Context, string, ...interface{}) (*sql.Rows, error)
	QueryRowContext(context.Context, string, ...interface{}) *sql.Row
}

type StdQueries struct{ db StdDBTX }

func (q *StdQueries) CreateOrder(ctx context.Context, arg CreateOrderParams) (OrderRow, error) {
	row := q.db.QueryRowContext(ctx, createOrder, arg.Item, arg.SubmitKey)
	var i OrderRow
	err := row.Scan(&i.ID, &i.Item, &i.SubmitKey)
	return i, err
}

func (q *StdQueries) RenameOrder(ctx context.Context, id int64, item string) (int64, error) {
	result, err := q.db.ExecContext(ctx, renameOrder, id, item)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func TestSqlcForPgxCommitsWithTheResponse(t *testing.T) {
	ways := map[string]func(d *database, ctx context.Context) *Queries{
		"New": func(_ *database, ctx context.Context) *Queries { return New(pgstore.Tx(ctx)) },
		"WithTx": func(d *database, ctx context.Context) *Queries {
			return New(d.pool).WithTx(pgstore.Tx(ctx))
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			d := newDatabase(t)
			s := d.shop(func(s *shop, w http.ResponseWriter, r *http.Request) {
				n := s.run()
				ctx := r.Context()
				q := way(d, ctx)
				order, err := q.CreateOrder(ctx, CreateOrderParams{Item: fmt.Sprint("tea ", n), SubmitKey: replay.Key(ctx)})
				d.count("orders", int(n)-1) // nobody else sees it yet
				if got, e := q.RenameOrder(ctx, order.ID, fmt.Sprint("green tea ", n)); got != 1 {
					t.Errorf("renamed %d orders, %v; want 1", got, e)
				}
				lines, e := q.CreateLines(ctx, []CreateLinesParams{{order.ID, "a"}, {order.ID, "b"}})
				if lines != 2 {
					t.Errorf("copied %d lines, want 2", lines)
				}
				err = errors.Join(err, e, q.RenameLines(ctx, map[string]string{"a": "c", "b": "d"}))
				all, e := q.ListOrders(ctx)
				if len(all) != int(n) || all[n-1].Item != fmt.Sprint("green tea ", n) {
					t.Errorf("orders in the transaction: %+v", all)
				}
				answerOrder(w, n, errors.Join(err, e))
			})
			s.runsOnce(request{path: "/orders"}, 201, "order of run %d")
			d.together(2)
			d.count("orders WHERE item LIKE 'green tea %'", 2)
			d.count("lines WHERE text IN ('c', 'd')", 4)
		})
	}
}

func TestSqlcForPgxFailedHandlerLeavesNothing(t *testing.T) {
	d := newDatabase(t)
	s := d.shop(func(s *shop, w http.ResponseWriter, r *http.Request) {
		n := s.run()
		tx := pgstore.Tx(r.Context())
		arg := CreateOrderParams{Item: "tea", SubmitKey: replay.Key(r.Context())}
		_, err := New(tx).CreateOrder(r.Context(), arg)
		// A part that may fail by itself, as sqlc's manual has it: Begin, WithTx.
		e := pgx.BeginFunc(r.Context(), tx, func(nested pgx.Tx) error {
			_, err := New(tx).WithTx(nested).CreateOrder(r.Context(), arg)
			return err
		})
		if !refusesUnique(e) {
			t.Errorf("a unique item twice: %v", e)
		}
		if e := tx.Commit(r.Context()); !errors.Is(e, pgstore.ErrNotYours) {
			t.Errorf("commit: %v, want ErrNotYours", e)
		}
		if n == 1 {
			err = errors.Join(err, errors.New("changed my mind"))
		}
		answerOrder(w, n, err)
	})
	r := request{path: "/orders", token: s.token()}
	s.answers(r, 500, "changed my mind\n")
	d.count("orders", 0)
	d.count("submitonce", 0)
	s.answers(r, 201, "order of run 2")
	if a := s.answers(r, 201, "order of run 2"); !a.replayed() {
		t.Error("the duplicate is not marked as a replay")
	}
	d.count("orders", 1)
}

// Two submits of two forms that want the same last cup: one of them is told so,
// and neither is told twice.
func TestSqlcForPgxConflictOfTwoForms(t *testing.T) {
	d := newDatabase(t)
	s := d.shop(func(s *shop, w http.ResponseWriter, r *http.Request) {
		s.run()
		err := pgx.BeginFunc(r.Context(), pgstore.Tx(r.Context()), func(tx pgx.Tx) error {
			_, err := New(tx).CreateOrder(r.Context(), CreateOrderParams{Item: "the last cup", SubmitKey: replay.Key(r.Context())})
			return err
		})
		if refusesUnique(err) {
			replay.Seal(r.Context())
			http.Error(w, "sold out", http.StatusConflict)
			return
		}
		answerOrder(w, 1, err)
	})
	first, second := request{path: "/orders", token: s.token()}, request{path: "/orders", token: s.token()}
	s.awaited.Store(2)
	answers := make(chan answer, 2)
	for _, r := range []request{first, second} {
		go func() { answers <- s.send(r) }()
	}
	a, b := <-answers, <-answers
	s.awaited.Store(0)
	if a.status+b.status != 201+409 {
		t.Errorf("answers are %d and %d, want 201 and 409", a.status, b.status)
	}
	a, b = s.send(first), s.send(second)
	if a.status+b.status != 201+409 || !a.replayed() || !b.replayed() {
		t.Errorf("again: %d %v and %d %v, want replays of 201 and 409", a.status, a.replayed(), b.status, b.replayed())
	}
	s.ran(2)
	d.count("orders", 1)
}

func TestSqlcForDatabaseSQLCommitsWithTheResponse(t *testing.T) {
	d := newDatabase(t)
	s := d.shop(func(s *shop, w http.ResponseWriter, r *http.Request) {
		n := s.run()
		ctx := r.Context()
		q := &StdQueries{db: pgstore.SQL(ctx)}
		order, err := q.CreateOrder(ctx, CreateOrderParams{Item: fmt.Sprint("tea ", n), SubmitKey: replay.Key(ctx)})
		d.count("orders", int(n)-1)
		_, e := q.RenameOrder(ctx, order.ID, fmt.Sprint("green tea ", n))
		stmt, e2 := pgstore.SQL(ctx).PrepareContext(ctx, "INSERT INTO lines (order_id, text) VALUES ($1, $2)")
		if e2 == nil {
			_, e2 = stmt.ExecContext(ctx, order.ID, "a")
			e2 = errors.Join(e2, stmt.Close())
		}
		answerOrder(w, n, errors.Join(err, e, e2))
	})
	s.runsOnce(request{path: "/orders"}, 201, "order of run %d")
	d.together(2)
	d.count("orders WHERE item LIKE 'green tea %'", 2)
	d.count("lines", 2)
}
