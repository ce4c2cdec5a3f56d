package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
)

// What follows does what a store does in the same commands, without the store: a
// claim that tells what stands, and a seal that checks its owner. Where ours costs
// no more than that, the rest is what the promise costs, and not the library.

const (
	redisByHandName = "by hand: SET NX GET, then a script that compares and sets"
	txByHandName    = "by hand: a lock and a read with BEGIN, the record with COMMIT"
)

var compareAndSet = `
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
  return 1
end
return 0`

func (s *servers) redisByHand(at address) Contender {
	return Contender{Name: redisByHandName, Floor: redisWritesName, Open: func(ctx context.Context, _ int) (opened, error) {
		client, err := s.client(ctx, at)
		if err != nil {
			return opened{}, err
		}
		prefix, script := named("h")+":", redis.NewScript(compareAndSet)
		return opened{same(func(i int) error {
			c := claimOf(i)
			err := client.Do(ctx, "set", prefix+c.Key, c.Owner[:], "nx", "get", "px", 90_000).Err()
			if !errors.Is(err, redis.Nil) {
				return fmt.Errorf("claim %d: %w", i, err)
			}
			n, err := script.Run(ctx, client, []string{prefix + c.Key}, c.Owner[:], record, retention.Milliseconds()).Int()
			if err == nil && n != 1 {
				err = fmt.Errorf("seal %d: it is another's", i)
			}
			return err
		}), func() { _ = client.Close() }}, nil
	}}
}

func (s *servers) txByHand(at address) Contender {
	return Contender{Name: txByHandName, Floor: transactionName, Open: func(ctx context.Context, _ int) (opened, error) {
		pool, insert, err := s.orders(ctx, at)
		if err != nil {
			return opened{}, err
		}
		records, table, _, err := s.postgresFloor(ctx, at)
		if err != nil {
			return opened{}, err
		}
		records.Close() // its table is what is needed
		read := "SELECT owner, state, attempt, expires_at - now(), response FROM " + table + " WHERE key = $1"
		seal := "INSERT INTO " + table + " VALUES ($1, $2, 1, 1, now() + interval '7 days', $3)"
		return opened{same(func(i int) error {
			c := claimOf(i)
			conn, err := pool.Acquire(ctx)
			if err != nil {
				return err
			}
			defer conn.Release()
			var locked bool
			claim := &pgx.Batch{}
			claim.Queue("BEGIN")
			claim.Queue("SELECT pg_try_advisory_xact_lock($1)", int64(i)).QueryRow(func(r pgx.Row) error { return r.Scan(&locked) })
			claim.Queue(read, []byte(c.Key))
			if err := conn.SendBatch(ctx, claim).Close(); err != nil || !locked {
				return fmt.Errorf("claim %d: locked %v, %w", i, locked, err)
			}
			if _, err := conn.Exec(ctx, insert, "mug", 1); err != nil {
				return err
			}
			done := &pgx.Batch{}
			done.Queue(seal, []byte(c.Key), c.Owner[:], record)
			done.Queue("COMMIT")
			return conn.SendBatch(ctx, done).Close()
		}), pool.Close}, nil
	}}
}
