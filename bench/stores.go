package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/submitonce/submitonce/replay"
)

// record has the size of a sealed response of 300 bytes.
var record = []byte(strings.Repeat("r", 430))

const retention = 7 * 24 * time.Hour

// An opener opens a store that has no records yet. To add a store, write one in a
// file of its own, and name it in storeWorkloads.
type opener func(ctx context.Context) (store replay.Store, close func(), err error)

func claimOf(i int) replay.Claim {
	c := replay.Claim{Key: fmt.Sprintf("t0190%028x.%022d", i, i), Lease: 30 * time.Second}
	_, _ = rand.Read(c.Owner[:])
	return c
}

// firstSubmit claims and seals.
func firstSubmit(ctx context.Context, s replay.Store) op {
	return func(i int) error {
		_, h, err := s.Claim(ctx, claimOf(i))
		if err != nil {
			return err
		}
		if h == nil {
			return fmt.Errorf("claim %d: a record stands", i)
		}
		return h.Seal(ctx, record, retention)
	}
}

// duplicatesOf returns workers that claim what is sealed, each a key of its own.
func duplicatesOf(ctx context.Context, s replay.Store) func() (op, error) {
	next := sealedKeys()
	return func() (op, error) {
		sealed := next()
		return func(int) error {
			rec, _, err := s.Claim(ctx, claimOf(sealed))
			if err == nil && len(rec.Response) != len(record) {
				err = fmt.Errorf("claim: %v with %d bytes", rec.State, len(rec.Response))
			}
			return err
		}, firstSubmit(ctx, s)(sealed)
	}
}

// sealedKeys numbers keys that no first submit comes to.
func sealedKeys() func() int {
	n := 1 << 30
	return func() int { n++; return n }
}

// storeCalls makes the store's own calls: claim and seal, or again the claim of
// a sealed key.
func storeCalls(name, floor string, goal float64, again bool, open opener) Contender {
	return Contender{Name: name, Floor: floor, Goal: Goal{Ratio: goal}, Open: func(ctx context.Context, _ int) (opened, error) {
		s, closeIt, err := open(ctx)
		if err != nil {
			return opened{}, err
		}
		if again {
			return opened{duplicatesOf(ctx, s), closeIt}, nil
		}
		return opened{same(firstSubmit(ctx, s)), closeIt}, nil
	}}
}

// wholeGuard is a request through a guard over the store.
func wholeGuard(name, floor string, again bool, open opener) Contender {
	return Contender{Name: name + ", whole request", Floor: floor, Open: func(ctx context.Context, ops int) (opened, error) {
		s, closeIt, err := open(ctx)
		if err != nil {
			return opened{}, err
		}
		worker, err := guarded(frameworks[0], s, !again, ops)
		return opened{worker, closeIt}, err
	}}
}

const trip = "0.5 ms a round trip"

func (s *servers) storeWorkloads() []Workload {
	const slice, most = 120 * time.Millisecond, 12_000
	var ws []Workload
	add := func(name, note string, workers int, cs ...Contender) {
		ws = append(ws, Workload{Name: name, Note: note, Slice: slice, MaxOps: most, Workers: workers, Contenders: cs})
	}
	at := func(n int) string { return fmt.Sprintf(", %d at once", n) }

	for _, n := range []int{1, 16} {
		add("Redis: first submit"+at(n), "Over SET NX, then SET, with the same client.", n,
			s.redisWrites(s.redis), storeCalls("redisstore", redisWritesName, 1.10, false, s.openRedis(s.redis)),
			s.redisByHand(s.redis),
			wholeGuard("redisstore", redisWritesName, false, s.openRedis(s.redis)))
		add("Redis: replay"+at(n), "Over GET, with the same client.", n,
			s.redisReads(s.redis), storeCalls("redisstore", redisReadsName, 1.10, true, s.openRedis(s.redis)),
			wholeGuard("redisstore", redisReadsName, true, s.openRedis(s.redis)))
		add("Valkey: first submit"+at(n), "As with Redis, on a server that has SET … IFEQ, so that no script is needed.", n,
			s.redisWrites(s.valkey), storeCalls("redisstore", redisWritesName, 1.10, false, s.openRedis(s.valkey)))
	}
	add("Redis: first submit, "+trip, "As above, through a proxy in a process of its own that delays.", 1,
		s.redisWrites(s.redisFar), storeCalls("redisstore", redisWritesName, 0, false, s.openRedis(s.redisFar)))
	add("Redis: replay, "+trip, "As above, through a proxy in a process of its own that delays.", 1,
		s.redisReads(s.redisFar), storeCalls("redisstore", redisReadsName, 0, true, s.openRedis(s.redisFar)))

	const without = " The server runs without fsync, which is the stricter comparison: waiting for the disk would be the same on both sides."
	for _, n := range []int{1, 16} {
		replayGoal, txGoal := 1.25, 1.12
		if n > 1 {
			replayGoal, txGoal = 0, 1.25
		}
		add("PostgreSQL: first submit"+at(n), "Over a one-row INSERT, then an UPDATE by key, with the same pool."+without, n,
			s.postgresWrites(s.postgres), storeCalls("pgstore", postgresWritesName, 1.15, false, s.openPostgres(s.postgres)),
			wholeGuard("pgstore", postgresWritesName, false, s.openPostgres(s.postgres)),
			storeCalls("tieredstore, Redis before it", postgresWritesName, 0, false, s.openTiered(s.redis, s.postgres)))
		add("PostgreSQL: replay"+at(n), "Over a SELECT by key, with the same pool.", n,
			s.postgresReads(s.postgres), storeCalls("pgstore", postgresReadsName, replayGoal, true, s.openPostgres(s.postgres)),
			wholeGuard("pgstore", postgresReadsName, true, s.openPostgres(s.postgres)),
			storeCalls("tieredstore, Redis before it", postgresReadsName, 0, true, s.openTiered(s.redis, s.postgres)))
		add("PostgreSQL: transaction"+at(n), "Over the handler's own transaction of three round trips."+without, n,
			s.ownTransaction(s.postgres), s.txStore(s.postgres, txGoal), s.txByHand(s.postgres), s.txGuard(s.postgres))
	}
	const sync = "As above, on a server with fsync."
	for _, n := range []int{1, 16} {
		add("PostgreSQL with fsync: first submit"+at(n), sync, n,
			s.postgresWrites(s.durable), storeCalls("pgstore", postgresWritesName, 0, false, s.openPostgres(s.durable)))
		add("PostgreSQL with fsync: transaction"+at(n), sync, n, s.ownTransaction(s.durable), s.txStore(s.durable, 0), s.txByHand(s.durable))
	}
	const delayed = "As above, through a proxy in a process of its own that delays; without fsync."
	for _, n := range []int{1, 16} {
		add("PostgreSQL: first submit, "+trip+at(n), delayed, n,
			s.postgresWrites(s.postgresFar), storeCalls("pgstore", postgresWritesName, 0, false, s.openPostgres(s.postgresFar)))
		add("PostgreSQL: transaction, "+trip+at(n), delayed, n, s.ownTransaction(s.postgresFar), s.txStore(s.postgresFar, 1.03))
	}
	add("PostgreSQL: replay, "+trip, delayed, 1,
		s.postgresReads(s.postgresFar), storeCalls("pgstore", postgresReadsName, 0, true, s.openPostgres(s.postgresFar)))

	return append(ws,
		Workload{Name: "SQLite: first submit", Slice: slice, MaxOps: most, Note: "Over INSERT, then UPDATE by key, through the same driver; synchronous=FULL: a sync each.",
			Contenders: []Contender{s.sqliteWrites(), storeCalls("sqlitestore", sqliteWritesName, 0, false, s.openSQLite)}},
		Workload{Name: "SQLite: replay", Slice: slice, MaxOps: most, Note: "Over a SELECT by key, through the same driver.",
			Contenders: []Contender{s.sqliteReads(), storeCalls("sqlitestore", sqliteReadsName, 0, true, s.openSQLite)}},
	)
}
