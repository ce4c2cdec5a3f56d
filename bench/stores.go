package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/submitonce/submitonce/internal/testserver"
	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/pgstore"
	"github.com/submitonce/submitonce/replay/redisstore"
	"github.com/submitonce/submitonce/replay/sqlitestore"
	"github.com/submitonce/submitonce/replay/tieredstore"
)

// record has the size of a sealed response of 300 bytes.
var record = []byte(strings.Repeat("r", 430))

func claimOf(i int) replay.Claim {
	c := replay.Claim{Key: fmt.Sprintf("t0190%028x.%022d", i, i), Lease: 30 * time.Second}
	_, _ = rand.Read(c.Owner[:])
	return c
}

// firstSubmit claims and seals.
func firstSubmit(ctx context.Context, s replay.Store) func(int) error {
	return func(i int) error {
		_, h, err := s.Claim(ctx, claimOf(i))
		if err != nil {
			return err
		}
		return h.Seal(ctx, record, 7*24*time.Hour)
	}
}

// duplicate claims what is done.
func duplicate(ctx context.Context, s replay.Store) (func(int) error, error) {
	if err := firstSubmit(ctx, s)(1 << 30); err != nil {
		return nil, err
	}
	c := claimOf(1 << 30)
	return func(int) error {
		_, _, err := s.Claim(ctx, c)
		return err
	}, nil
}

// storeContender opens a store and submits to it, for the first time or again.
func storeContender(name string, again bool, open func(ctx context.Context) (replay.Store, func(), error)) Contender {
	return Contender{Name: name, Open: func(ctx context.Context, _ int) (func(int) error, func(), error) {
		s, closeIt, err := open(ctx)
		if err != nil {
			return nil, nil, err
		}
		if again {
			op, err := duplicate(ctx, s)
			return op, closeIt, err
		}
		return firstSubmit(ctx, s), closeIt, nil
	}}
}

// servers are what the stores are measured on: real ones of this run's own, with
// the durability that a production server has.
type servers struct {
	redis    *testserver.RedisServer
	postgres *testserver.PostgresServer
	dir      string
}

func startServers(ctx context.Context) (*servers, error) {
	r, err := testserver.NewRedis(ctx)
	if err != nil {
		return nil, err
	}
	p, err := testserver.NewPostgres(ctx, "shared_buffers=512MB", "max_wal_size=4GB")
	if err != nil {
		r.Close()
		return nil, err
	}
	dir, err := os.MkdirTemp("", "submitonce-bench-")
	return &servers{r, p, dir}, err
}

func (s *servers) close() {
	s.redis.Close()
	s.postgres.Close()
	_ = os.RemoveAll(s.dir)
}

func (s *servers) pool(ctx context.Context, addr string) (*pgxpool.Pool, error) {
	c, err := pgxpool.ParseConfig(strings.Replace(s.postgres.URL, s.postgres.Addr, addr, 1))
	if err != nil {
		return nil, err
	}
	c.MaxConns = 20
	return pgxpool.NewWithConfig(ctx, c)
}

func table(kind string) string { return "bench_" + kind + "_" + strings.ToLower(rand.Text()[:8]) }

func (s *servers) openRedis(context.Context) (replay.Store, func(), error) {
	client := redis.NewClient(&redis.Options{Addr: s.redis.Addr})
	store, err := redisstore.New(client, redisstore.Config{Prefix: table("r") + ":"})
	if err != nil {
		return nil, nil, err
	}
	return store, func() { _ = store.Close(); _ = client.Close() }, nil
}

func (s *servers) openPostgres(ctx context.Context) (replay.Store, func(), error) {
	pool, err := s.pool(ctx, s.postgres.Addr)
	if err != nil {
		return nil, nil, err
	}
	c := pgstore.Config{Table: table("p")}
	if err := pgstore.Migrate(ctx, pool, c); err != nil {
		return nil, nil, err
	}
	store, err := pgstore.New(pool, c)
	if err != nil {
		return nil, nil, err
	}
	return store, func() { _ = store.Close(); pool.Close() }, nil
}

func (s *servers) openSQLite(ctx context.Context) (replay.Store, func(), error) {
	db, err := sqlitestore.Open(filepath.Join(s.dir, table("s")+".db"))
	if err != nil {
		return nil, nil, err
	}
	store, err := sqlitestore.New(ctx, db)
	if err != nil {
		return nil, nil, err
	}
	return store, func() { _ = store.Close(); _ = db.Close() }, nil
}

func (s *servers) openTiered(ctx context.Context) (replay.Store, func(), error) {
	front, closeFront, err := s.openRedis(ctx)
	if err != nil {
		return nil, nil, err
	}
	back, closeBack, err := s.openPostgres(ctx)
	if err != nil {
		return nil, nil, err
	}
	store, err := tieredstore.New(front, back, tieredstore.Config{})
	if err != nil {
		return nil, nil, err
	}
	return store, func() { _ = store.Close(); closeBack(); closeFront() }, nil
}

// redisFloor does what the store cannot do without: SET NX, then SET; or GET.
func (s *servers) redisFloor(again bool) Contender {
	name := "SET NX, then SET"
	if again {
		name = "GET"
	}
	return Contender{Name: name, Open: func(ctx context.Context, _ int) (func(int) error, func(), error) {
		client := redis.NewClient(&redis.Options{Addr: s.redis.Addr})
		prefix := table("f") + ":"
		if again {
			err := client.Set(ctx, prefix, record, time.Hour).Err()
			return func(int) error { return client.Get(ctx, prefix).Err() }, func() { _ = client.Close() }, err
		}
		return func(i int) error {
			c := claimOf(i)
			if err := client.SetNX(ctx, prefix+c.Key, c.Owner[:], 90*time.Second).Err(); err != nil {
				return err
			}
			return client.Set(ctx, prefix+c.Key, record, 7*24*time.Hour).Err()
		}, func() { _ = client.Close() }, nil
	}}
}

// postgresFloor is a one-row INSERT, then an UPDATE by key; or a SELECT by key.
func (s *servers) postgresFloor(again bool) Contender {
	name := "one-row INSERT, then UPDATE by key"
	if again {
		name = "SELECT by key"
	}
	return Contender{Name: name, Open: func(ctx context.Context, _ int) (func(int) error, func(), error) {
		pool, err := s.pool(ctx, s.postgres.Addr)
		if err != nil {
			return nil, nil, err
		}
		t := table("f")
		_, err = pool.Exec(ctx, "CREATE TABLE "+t+" (key bytea PRIMARY KEY, owner bytea NOT NULL, state smallint NOT NULL,"+
			" attempt int NOT NULL, expires_at timestamptz NOT NULL, response bytea) WITH (fillfactor = 70)")
		if err != nil {
			return nil, nil, err
		}
		insert := "INSERT INTO " + t + " VALUES ($1, $2, 0, 1, now() + interval '30 seconds', NULL)"
		update := "UPDATE " + t + " SET state = 1, response = $2, expires_at = now() + interval '7 days' WHERE key = $1"
		first := func(i int) error {
			c := claimOf(i)
			if _, err := pool.Exec(ctx, insert, []byte(c.Key), c.Owner[:]); err != nil {
				return err
			}
			_, err := pool.Exec(ctx, update, []byte(c.Key), record)
			return err
		}
		if !again {
			return first, pool.Close, nil
		}
		if err := first(0); err != nil {
			return nil, nil, err
		}
		key := []byte(claimOf(0).Key)
		query := "SELECT state, attempt, response FROM " + t + " WHERE key = $1"
		return func(int) error {
			var state, attempt int
			var response []byte
			return pool.QueryRow(ctx, query, key).Scan(&state, &attempt, &response)
		}, pool.Close, nil
	}}
}

// transaction is a handler's own BEGIN, INSERT and COMMIT, by itself or under
// the transactional store.
func (s *servers) transaction(ours bool, addr func() string) Contender {
	name := "the handler's own BEGIN, INSERT, COMMIT"
	if ours {
		name = "the same under pgstore.TxStore"
	}
	return Contender{Name: name, Open: func(ctx context.Context, _ int) (func(int) error, func(), error) {
		pool, err := s.pool(ctx, addr())
		if err != nil {
			return nil, nil, err
		}
		orders := table("o")
		if _, err := pool.Exec(ctx, "CREATE TABLE "+orders+" (id bigserial PRIMARY KEY, item text, quantity int)"); err != nil {
			return nil, nil, err
		}
		insert := "INSERT INTO " + orders + " (item, quantity) VALUES ($1, $2)"
		if !ours {
			return func(int) error {
				return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
					_, err := tx.Exec(ctx, insert, "mug", 1)
					return err
				})
			}, pool.Close, nil
		}
		c := pgstore.Config{Table: table("t")}
		if err := pgstore.Migrate(ctx, pool, c); err != nil {
			return nil, nil, err
		}
		store, err := pgstore.NewTx(pool, pgstore.TxConfig{Config: c})
		if err != nil {
			return nil, nil, err
		}
		return func(i int) error {
			_, h, err := store.Claim(ctx, claimOf(i))
			if err != nil {
				return err
			}
			lent := h.(replay.Lender).Lend(ctx)
			if _, err := pgstore.Tx(lent).Exec(lent, insert, "mug", 1); err != nil {
				return err
			}
			return h.Seal(ctx, record, 7*24*time.Hour)
		}, func() { _ = store.Close(); pool.Close() }, nil
	}}
}

func (s *servers) workloads() ([]Workload, func(), error) {
	local := func() string { return s.postgres.Addr }
	proxy, err := testserver.NewProxy(s.postgres.Addr)
	if err != nil {
		return nil, nil, err
	}
	proxy.Delay(250 * time.Microsecond) // each way
	far := func() string { return proxy.Addr }
	slice := 250 * time.Millisecond
	var ws []Workload
	for _, workers := range []int{1, 16} {
		at := fmt.Sprintf(", %d at once", workers)
		ws = append(ws,
			Workload{Name: "Redis: first submit" + at, Slice: slice, Workers: workers, Note: "Over SET NX, then SET.", Contenders: []Contender{
				s.redisFloor(false), storeContender("redisstore", false, s.openRedis)}},
			Workload{Name: "Redis: replay" + at, Slice: slice, Workers: workers, Note: "Over GET.", Contenders: []Contender{
				s.redisFloor(true), storeContender("redisstore", true, s.openRedis)}},
			Workload{Name: "PostgreSQL: first submit" + at, Slice: slice, Workers: workers, Note: "Over a one-row INSERT, then an UPDATE by key; without fsync.",
				Contenders: []Contender{
					s.postgresFloor(false), storeContender("pgstore", false, s.openPostgres),
					storeContender("tieredstore, Redis before it", false, s.openTiered)}},
			Workload{Name: "PostgreSQL: replay" + at, Slice: slice, Workers: workers, Note: "Over a SELECT by key.", Contenders: []Contender{
				s.postgresFloor(true), storeContender("pgstore", true, s.openPostgres),
				storeContender("tieredstore, Redis before it", true, s.openTiered)}},
			Workload{Name: "PostgreSQL: transaction" + at, Slice: slice, Workers: workers,
				Note: "The handler's own transaction of three round trips, and the same with claim and seal in it; without fsync.", Contenders: []Contender{
					s.transaction(false, local), s.transaction(true, local)}},
		)
	}
	ws = append(ws,
		Workload{Name: "PostgreSQL: transaction, 0.5 ms a round trip", Slice: 2 * slice, Note: "As above, through a proxy that delays.",
			Contenders: []Contender{s.transaction(false, far), s.transaction(true, far)}},
		Workload{Name: "SQLite", Slice: slice, Note: "With a sync of the disk for each claim and each seal.", Contenders: []Contender{
			storeContender("first submit", false, s.openSQLite), storeContender("replay", true, s.openSQLite)}},
	)
	return ws, proxy.Close, nil
}
