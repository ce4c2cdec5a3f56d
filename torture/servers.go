package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/submitonce/submitonce/internal/testserver"
	"github.com/submitonce/submitonce/replay/pgstore"
)

// Servers are a run's own: they are killed, paused and emptied.
type Servers struct {
	postgres *testserver.PostgresServer
	redis    *testserver.RedisServer
	pool     *pgxpool.Pool // of the run itself, to look at what has happened
}

func startServers(ctx context.Context) (*Servers, error) {
	pg, err := testserver.NewPostgres(ctx)
	if err != nil {
		return nil, err
	}
	s := &Servers{postgres: pg}
	if s.redis, err = testserver.NewRedis(ctx); err != nil {
		s.close()
		return nil, err
	}
	if s.pool, err = openPool(ctx, pg.URL); err != nil {
		s.close()
		return nil, err
	}
	if err := pgstore.Migrate(ctx, s.pool, pgstore.Config{}); err != nil {
		s.close()
		return nil, err
	}
	if _, err := s.pool.Exec(ctx, effectsSchema); err != nil {
		s.close()
		return nil, fmt.Errorf("effects: %w", err)
	}
	return s, nil
}

// empty forgets all records and effects.
func (s *Servers) empty(ctx context.Context) error {
	if _, err := s.pool.Exec(ctx, "TRUNCATE effects, runs, submitonce"); err != nil {
		return err
	}
	c := s.redis.Client()
	defer func() { _ = c.Close() }()
	return c.FlushAll(ctx).Err()
}

func (s *Servers) close() {
	if s.pool != nil {
		s.pool.Close()
	}
	if s.redis != nil {
		s.redis.Close()
	}
	s.postgres.Close()
}

func (s *Servers) app(mode Mode) AppConfig {
	return AppConfig{Mode: mode, Postgres: s.postgres.URL, Redis: s.redis.URL}
}
