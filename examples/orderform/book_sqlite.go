package main

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
)

//go:embed book_sqlite.sql
var sqliteSchema string

// A sqliteBook is a book in a SQLite file.
type sqliteBook struct{ db *sql.DB }

// newSQLiteBook returns a book in db, whose table it makes.
func newSQLiteBook(ctx context.Context, db *sql.DB) (*sqliteBook, error) {
	if _, err := db.ExecContext(ctx, sqliteSchema); err != nil {
		return nil, fmt.Errorf("the orders' table: %w", err)
	}
	return &sqliteBook{db: db}, nil
}

func (b *sqliteBook) place(ctx context.Context, key string, o order) (order, bool, error) {
	o.No = newNumber()
	result, err := b.db.ExecContext(ctx, `INSERT INTO shop_orders (order_no, submit_key, item, quantity)
		VALUES (?, ?, ?, ?) ON CONFLICT (submit_key) DO NOTHING`, o.No, key, o.Item, o.Quantity)
	if err != nil {
		return order{}, false, fmt.Errorf("place an order: %w", err)
	}
	if n, err := result.RowsAffected(); err == nil && n == 1 {
		return o, true, nil
	}
	err = b.db.QueryRowContext(ctx, `SELECT order_no, item, quantity FROM shop_orders WHERE submit_key = ?`, key).
		Scan(&o.No, &o.Item, &o.Quantity)
	if err != nil {
		return order{}, false, fmt.Errorf("find the order of an earlier attempt: %w", err)
	}
	return o, false, nil
}

func (b *sqliteBook) find(ctx context.Context, no string) (order, bool, error) {
	o := order{No: no}
	err := b.db.QueryRowContext(ctx, `SELECT item, quantity FROM shop_orders WHERE order_no = ?`, no).
		Scan(&o.Item, &o.Quantity)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return order{}, false, nil
	case err != nil:
		return order{}, false, fmt.Errorf("find an order: %w", err)
	}
	return o, true, nil
}

func (b *sqliteBook) list(ctx context.Context) (orders []order, err error) {
	rows, err := b.db.QueryContext(ctx, `SELECT order_no, item, quantity FROM shop_orders ORDER BY id`)
	if err != nil {
		return nil, fmt.Errorf("list the orders: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var o order
		if err := rows.Scan(&o.No, &o.Item, &o.Quantity); err != nil {
			return nil, fmt.Errorf("list the orders: %w", err)
		}
		orders = append(orders, o)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list the orders: %w", err)
	}
	return orders, nil
}
