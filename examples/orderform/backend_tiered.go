package main

import (
	"context"
	"log/slog"

	"github.com/submitonce/submitonce/replay/pgstore"
	"github.com/submitonce/submitonce/replay/redisstore"
	"github.com/submitonce/submitonce/replay/tieredstore"
)

// openTiered puts Redis before PostgreSQL, which has the last word and the
// orders. Both have to be there at the start; after that the shop goes on without
// Redis.
func (b *backend) openTiered(ctx context.Context, o options, log *slog.Logger) error {
	client, err := b.openRedisClient(ctx, o.redisURL)
	if err != nil {
		return err
	}
	pool, _, err := b.openPool(ctx, o.databaseURL)
	if err != nil {
		return err
	}
	front, err := redisstore.New(client, redisstore.Config{Logger: log})
	if err != nil {
		return err
	}
	b.onClose(front.Close)
	back, err := pgstore.New(pool, pgstore.Config{Logger: log})
	if err != nil {
		return err
	}
	b.onClose(back.Close)
	b.sweep(back, log)
	store, err := tieredstore.New(front, back, tieredstore.Config{Logger: log})
	if err != nil {
		return err
	}
	b.onClose(store.Close)
	b.store = store
	return nil
}
