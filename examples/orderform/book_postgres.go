package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/pgstore"
)

//go:embed book_postgres.sql
var postgresSchema string

// A querier is a pool or a transaction.
type querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// A postgresBook is a book in PostgreSQL.
type postgresBook struct {
	pool *pgxpool.Pool

	// inTx says that handlers run in a transaction, in which the guard has claimed
	// the submit.
	inTx bool
}

// newPostgresBook returns a book in the pool's database, whose table it makes.
func newPostgresBook(ctx context.Context, pool *pgxpool.Pool) (*postgresBook, error) {
	// In one transaction, whose lock lets several shops start at once.
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, postgresSchema)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("the orders' table: %w", err)
	}
	return &postgresBook{pool: pool}, nil
}

// db returns the handler's transaction, where there is one. It is used for
// reading too: a handler that took a second connection from the pool could make
// it run dry.
func (b *postgresBook) db(ctx context.Context) querier {
	if b.inTx && replay.Key(ctx) != "" {
		return pgstore.Tx(ctx)
	}
	return b.pool
}

func (b *postgresBook) place(ctx context.Context, key string, o order) (order, bool, error) {
	db := b.db(ctx)
	o.No = newNumber()
	tag, err := db.Exec(ctx, `INSERT INTO shop_orders (order_no, submit_key, item, quantity)
		VALUES ($1, $2, $3, $4) ON CONFLICT (submit_key) DO NOTHING`, o.No, key, o.Item, o.Quantity)
	if err != nil {
		return order{}, false, fmt.Errorf("place an order: %w", err)
	}
	if tag.RowsAffected() == 1 {
		return o, true, nil
	}
	err = db.QueryRow(ctx, `SELECT order_no, item, quantity FROM shop_orders WHERE submit_key = $1`, key).
		Scan(&o.No, &o.Item, &o.Quantity)
	if err != nil {
		return order{}, false, fmt.Errorf("find the order of an earlier attempt: %w", err)
	}
	return o, false, nil
}

func (b *postgresBook) find(ctx context.Context, no string) (order, bool, error) {
	o := order{No: no}
	err := b.db(ctx).QueryRow(ctx, `SELECT item, quantity FROM shop_orders WHERE order_no = $1`, no).
		Scan(&o.Item, &o.Quantity)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return order{}, false, nil
	case err != nil:
		return order{}, false, fmt.Errorf("find an order: %w", err)
	}
	return o, true, nil
}

func (b *postgresBook) list(ctx context.Context) ([]order, error) {
	rows, err := b.db(ctx).Query(ctx, `SELECT order_no, item, quantity FROM shop_orders ORDER BY id`)
	if err != nil {
		return nil, fmt.Errorf("list the orders: %w", err)
	}
	orders, err := pgx.CollectRows(rows, pgx.RowToStructByPos[order])
	if err != nil {
		return nil, fmt.Errorf("list the orders: %w", err)
	}
	return orders, nil
}
