package main

import (
	"context"
	"fmt"

	"github.com/submitonce/submitonce/internal/testserver"
)

// walPerSubmit asks PostgreSQL how much it has written.
func (s *servers) walPerSubmit(ctx context.Context, sc scale) ([]Fact, error) {
	pool, err := s.pool(ctx, s.postgres)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	contenders := []Contender{
		s.postgresWrites(s.postgres), storeCalls("pgstore, claim and seal", "", 0, false, s.openPostgres(s.postgres)),
		s.ownTransaction(s.postgres), s.txStore(s.postgres, 0),
	}
	written := make([][]float64, len(contenders))
	var fs []func() error
	for i, c := range contenders {
		fs = append(fs, func() error {
			const warm, n = 500, 5000
			o, err := c.Open(ctx, warm+n)
			if err != nil {
				return err
			}
			defer o.close()
			do, err := workersOf(o, 1)
			if err != nil {
				return err
			}
			if err := spread(do, 0, warm); err != nil { // the pages' full images come first
				return err
			}
			var lsn string
			if err := pool.QueryRow(ctx, "SELECT pg_current_wal_lsn()::text").Scan(&lsn); err != nil {
				return err
			}
			if err := spread(do, warm, n); err != nil {
				return err
			}
			var bytes float64
			if err := pool.QueryRow(ctx, "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), $1::text::pg_lsn)::float8", lsn).Scan(&bytes); err != nil {
				return err
			}
			written[i] = append(written[i], bytes/n)
			return nil
		})
	}
	if err := turns(ctx, sc.of(3, 1), fs...); err != nil {
		return nil, err
	}
	var facts []Fact
	for i, c := range contenders {
		facts = append(facts, Fact{What: c.Name, Value: span(spreadOf(written[i]), func(v float64) string { return fmt.Sprintf("%.0f bytes", v) })})
	}
	return facts, nil
}

// roundTrips counts what passes between client and server.
func (s *servers) roundTrips(ctx context.Context, _ scale) ([]Fact, error) {
	redisProxy, toRedis, err := s.behind(ctx, s.redis)
	if err != nil {
		return nil, err
	}
	postgresProxy, toPostgres, err := s.behind(ctx, s.postgres)
	if err != nil {
		return nil, err
	}
	tiered := s.openTiered(toRedis, toPostgres)
	redis, both := []*testserver.Proxy{redisProxy}, []*testserver.Proxy{redisProxy, postgresProxy}
	postgres := both[1:]
	var facts []Fact
	for _, row := range []struct {
		name    string
		proxies []*testserver.Proxy
		goal    float64
		c       Contender
	}{
		{"redisstore, first submit", redis, 2, storeCalls("", "", 0, false, s.openRedis(toRedis))},
		{"redisstore, replay", redis, 1, storeCalls("", "", 0, true, s.openRedis(toRedis))},
		{"pgstore, first submit", postgres, 2, storeCalls("", "", 0, false, s.openPostgres(toPostgres))},
		{"pgstore, replay", postgres, 1, storeCalls("", "", 0, true, s.openPostgres(toPostgres))},
		{transactionName, postgres, 0, s.ownTransaction(toPostgres)},
		{"the same under pgstore.TxStore", postgres, 3, s.txStore(toPostgres, 0)},
		{"tieredstore, first submit, Redis and PostgreSQL", both, 0, storeCalls("", "", 0, false, tiered)},
		{"tieredstore, replay, Redis and PostgreSQL", both, 1, storeCalls("", "", 0, true, tiered)},
	} {
		const warm, n = 20, 200
		o, err := row.c.Open(ctx, warm+n)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", row.name, err)
		}
		trips := func() (sum int64) {
			for _, p := range row.proxies {
				sum += p.Trips()
			}
			return sum
		}
		do, err := workersOf(o, 1)
		if err == nil {
			err = spread(do, 0, warm)
		}
		before := trips()
		if err == nil {
			err = spread(do, warm, n)
		}
		per := float64(trips()-before) / n
		o.close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", row.name, err)
		}
		f := Fact{What: row.name, Value: fmt.Sprintf("%.2f", per)}
		if row.goal > 0 {
			// A tenth covers what is not of a submit, such as a pool's check of a
			// connection that has been idle.
			f.Goal, f.Missed = fmt.Sprintf("%.0f", row.goal), per > row.goal+0.1
		}
		facts = append(facts, f)
	}
	return facts, nil
}
