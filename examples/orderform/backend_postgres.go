package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/submitonce/submitonce/replay/pgstore"
)

// openPostgres keeps records and orders in one database, the records by lease.
func (b *backend) openPostgres(ctx context.Context, o options, log *slog.Logger) error {
	pool, _, err := b.openPool(ctx, o.databaseURL)
	if err != nil {
		return err
	}
	store, err := pgstore.New(pool, pgstore.Config{Logger: log})
	if err != nil {
		return err
	}
	b.onClose(store.Close)
	b.sweep(store, log)
	b.store = store
	return nil
}

// openPostgresTx has the claim, the order and the answer in one transaction: the
// book writes through the one that the guard has begun.
func (b *backend) openPostgresTx(ctx context.Context, o options, log *slog.Logger) error {
	pool, book, err := b.openPool(ctx, o.databaseURL)
	if err != nil {
		return err
	}
	store, err := pgstore.NewTx(pool, pgstore.TxConfig{Config: pgstore.Config{Logger: log}})
	if err != nil {
		return err
	}
	b.onClose(store.Close)
	b.sweep(store, log)
	b.store = store
	book.inTx = true
	return nil
}

// openPool connects to the database, makes the tables, and opens the book.
func (b *backend) openPool(ctx context.Context, url string) (*pgxpool.Pool, *postgresBook, error) {
	c, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, nil, fmt.Errorf("-database-url: %w", err)
	}
	c.MaxConns = max(c.MaxConns, 16) // a running order of postgres-tx holds one
	pool, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return nil, nil, fmt.Errorf("-database-url: %w", err)
	}
	b.onClose(func() error {
		pool.Close()
		return nil
	})
	limit, cancel := context.WithTimeout(ctx, reachIn)
	defer cancel()
	if err := pool.Ping(limit); err != nil {
		at := net.JoinHostPort(c.ConnConfig.Host, strconv.Itoa(int(c.ConnConfig.Port)))
		return nil, nil, unreachable("PostgreSQL", at, "-database-url", err)
	}
	if err := pgstore.Migrate(ctx, pool, pgstore.Config{}); err != nil {
		return nil, nil, fmt.Errorf("make the records' table: %w", err)
	}
	book, err := newPostgresBook(ctx, pool)
	if err != nil {
		return nil, nil, err
	}
	b.book = book
	return pool, book, nil
}
