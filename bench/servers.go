package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/submitonce/submitonce/internal/testserver"
)

// An address leads to a server, which it starts if it has to. Several addresses
// may lead to one server.
type address func(ctx context.Context) (string, error)

// servers are what the stores are measured on: real ones of this run's own, each
// started when it is first needed.
type servers struct {
	redis, redisFar       address
	valkey                address // which SUBMITONCE_TEST_VALKEY names
	postgres, postgresFar address
	durable               address // PostgreSQL with fsync

	dir     string
	closers []func()
}

// eachWay is half of the round trip of a far server.
const eachWay = 250 * time.Microsecond

func newServers() (*servers, error) {
	dir, err := os.MkdirTemp("", "submitonce-bench-")
	if err != nil {
		return nil, err
	}
	s := &servers{dir: dir}
	s.redis = once(func(ctx context.Context) (string, error) {
		r, err := testserver.NewRedis(ctx)
		if err != nil {
			return "", err
		}
		s.closers = append(s.closers, r.Close)
		return r.Addr, nil
	})
	s.valkey = once(func(ctx context.Context) (string, error) {
		binary := os.Getenv("SUBMITONCE_TEST_VALKEY")
		if binary == "" {
			return "", errors.New("no Valkey: run make bench, or set SUBMITONCE_TEST_VALKEY to what scripts/valkey.sh prints")
		}
		v, err := testserver.NewRedisOf(ctx, binary)
		if err != nil {
			return "", err
		}
		s.closers = append(s.closers, v.Close)
		return v.Addr, nil
	})
	startPostgres := func(settings ...string) address {
		return once(func(ctx context.Context) (string, error) {
			p, err := testserver.NewPostgres(ctx, append(settings, "shared_buffers=256MB", "max_wal_size=4GB")...)
			if err != nil {
				return "", err
			}
			s.closers = append(s.closers, p.Close)
			return p.Addr, nil
		})
	}
	s.postgres = startPostgres()
	s.durable = startPostgres("fsync=on")
	s.redisFar, s.postgresFar = s.farFrom(s.redis), s.farFrom(s.postgres)
	return s, nil
}

// farFrom leads through a process that delays what passes.
func (s *servers) farFrom(at address) address {
	return once(func(ctx context.Context) (string, error) {
		target, err := at(ctx)
		if err != nil {
			return "", err
		}
		addr, stop, err := startRole(ctx, roleFar+target, nil)
		if err != nil {
			return "", err
		}
		s.closers = append(s.closers, stop)
		return addr, nil
	})
}

// behind leads through a proxy that counts.
func (s *servers) behind(ctx context.Context, at address) (*testserver.Proxy, address, error) {
	target, err := at(ctx)
	if err != nil {
		return nil, nil, err
	}
	p, err := testserver.NewProxy(target)
	if err != nil {
		return nil, nil, err
	}
	s.closers = append(s.closers, p.Close)
	return p, func(context.Context) (string, error) { return p.Addr, nil }, nil
}

// once calls f at the first call only.
func once[T any](f func(context.Context) (T, error)) func(context.Context) (T, error) {
	var do sync.Once
	var v T
	var err error
	return func(ctx context.Context) (T, error) {
		do.Do(func() { v, err = f(ctx) })
		return v, err
	}
}

func (s *servers) close() {
	for i := len(s.closers) - 1; i >= 0; i-- {
		s.closers[i]()
	}
	_ = os.RemoveAll(s.dir)
}

func (s *servers) pool(ctx context.Context, at address) (*pgxpool.Pool, error) {
	addr, err := at(ctx)
	if err != nil {
		return nil, err
	}
	c, err := pgxpool.ParseConfig(fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable", addr))
	if err != nil {
		return nil, err
	}
	c.MaxConns = 20
	return pgxpool.NewWithConfig(ctx, c)
}

func (s *servers) client(ctx context.Context, at address) (*redis.Client, error) {
	addr, err := at(ctx)
	if err != nil {
		return nil, err
	}
	return redis.NewClient(&redis.Options{Addr: addr, PoolSize: 20, ContextTimeoutEnabled: true}), nil
}

// named returns a name that nothing of this run has had.
func named(kind string) string { return "bench_" + kind + "_" + strings.ToLower(rand.Text()[:8]) }
