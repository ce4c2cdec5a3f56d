package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/submitonce/submitonce/replay/redisstore"
)

// openRedis keeps the records in Redis. The orders stay in this process: shops
// that share a Redis share the answers, and each has its own book.
func (b *backend) openRedis(ctx context.Context, o options, log *slog.Logger) error {
	client, err := b.openRedisClient(ctx, o.redisURL)
	if err != nil {
		return err
	}
	store, err := redisstore.New(client, redisstore.Config{Logger: log})
	if err != nil {
		return err
	}
	b.onClose(store.Close)
	b.store, b.book = store, newMemoryBook()
	return nil
}

func (b *backend) openRedisClient(ctx context.Context, url string) (*redis.Client, error) {
	c, err := redis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("-redis-url: %w", err)
	}
	c.ContextTimeoutEnabled = true // a call ends with its context, and needs no goroutine for that
	client := redis.NewClient(c)
	b.onClose(client.Close)
	limit, cancel := context.WithTimeout(ctx, reachIn)
	defer cancel()
	if err := client.Ping(limit).Err(); err != nil {
		return nil, unreachable("Redis", c.Addr, "-redis-url", err)
	}
	return client, nil
}
