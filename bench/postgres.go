package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/submitonce/submitonce/middleware/nethttp"
	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/pgstore"
)

func (s *servers) openPostgres(at address) opener {
	return func(ctx context.Context) (replay.Store, func(), error) {
		pool, err := s.pool(ctx, at)
		if err != nil {
			return nil, nil, err
		}
		c := pgstore.Config{Table: named("p")}
		if err := pgstore.Migrate(ctx, pool, c); err != nil {
			return nil, nil, err
		}
		store, err := pgstore.New(pool, c)
		if err != nil {
			return nil, nil, err
		}
		return store, func() { _ = store.Close(); pool.Close() }, nil
	}
}

// What a store in PostgreSQL cannot do without, and what a handler does by itself.
const (
	postgresWritesName = "one-row INSERT, then UPDATE by key"
	postgresReadsName  = "SELECT by key"
	transactionName    = "the handler's own BEGIN, INSERT, COMMIT"
)

// postgresFloor makes a table with the columns that any such store has.
func (s *servers) postgresFloor(ctx context.Context, at address) (pool *pgxpool.Pool, table string, write op, err error) {
	if pool, err = s.pool(ctx, at); err != nil {
		return nil, "", nil, err
	}
	table = named("f")
	_, err = pool.Exec(ctx, "CREATE TABLE "+table+" (key bytea PRIMARY KEY, owner bytea NOT NULL, state smallint NOT NULL,"+
		" attempt int NOT NULL, expires_at timestamptz NOT NULL, response bytea) WITH (fillfactor = 70)")
	insert := "INSERT INTO " + table + " VALUES ($1, $2, 0, 1, now() + interval '30 seconds', NULL)"
	update := "UPDATE " + table + " SET state = 1, response = $2, expires_at = now() + interval '7 days' WHERE key = $1"
	return pool, table, func(i int) error {
		c := claimOf(i)
		if _, err := pool.Exec(ctx, insert, []byte(c.Key), c.Owner[:]); err != nil {
			return err
		}
		_, err := pool.Exec(ctx, update, []byte(c.Key), record)
		return err
	}, err
}

func (s *servers) postgresWrites(at address) Contender {
	return Contender{Name: postgresWritesName, Open: func(ctx context.Context, _ int) (opened, error) {
		pool, _, write, err := s.postgresFloor(ctx, at)
		if err != nil {
			return opened{}, err
		}
		return opened{same(write), pool.Close}, nil
	}}
}

func (s *servers) postgresReads(at address) Contender {
	return Contender{Name: postgresReadsName, Open: func(ctx context.Context, _ int) (opened, error) {
		pool, table, write, err := s.postgresFloor(ctx, at)
		if err != nil {
			return opened{}, err
		}
		query, next := "SELECT state, attempt, response FROM "+table+" WHERE key = $1", sealedKeys()
		return opened{func() (op, error) {
			sealed := next()
			return func(int) error {
				var state, attempt int
				var response []byte
				return pool.QueryRow(ctx, query, []byte(claimOf(sealed).Key)).Scan(&state, &attempt, &response)
			}, write(sealed)
		}, pool.Close}, nil
	}}
}

// orders makes the handler's own table, and returns its INSERT.
func (s *servers) orders(ctx context.Context, at address) (*pgxpool.Pool, string, error) {
	pool, err := s.pool(ctx, at)
	if err != nil {
		return nil, "", err
	}
	table := named("o")
	_, err = pool.Exec(ctx, "CREATE TABLE "+table+" (id bigserial PRIMARY KEY, item text, quantity int)")
	return pool, "INSERT INTO " + table + " (item, quantity) VALUES ($1, $2)", err
}

func (s *servers) ownTransaction(at address) Contender {
	return Contender{Name: transactionName, Open: func(ctx context.Context, _ int) (opened, error) {
		pool, insert, err := s.orders(ctx, at)
		if err != nil {
			return opened{}, err
		}
		return opened{same(func(int) error {
			return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, insert, "mug", 1)
				return err
			})
		}), pool.Close}, nil
	}}
}

func (s *servers) openTx(ctx context.Context, at address) (store *pgstore.TxStore, insert string, closeIt func(), err error) {
	pool, insert, err := s.orders(ctx, at)
	if err != nil {
		return nil, "", nil, err
	}
	c := pgstore.Config{Table: named("t")}
	if err := pgstore.Migrate(ctx, pool, c); err != nil {
		return nil, "", nil, err
	}
	store, err = pgstore.NewTx(pool, pgstore.TxConfig{Config: c})
	if err != nil {
		return nil, "", nil, err
	}
	return store, insert, func() { _ = store.Close(); pool.Close() }, nil
}

// txStore is the handler's own transaction with the claim and the seal in it.
func (s *servers) txStore(at address, goal float64) Contender {
	return Contender{Name: "the same under pgstore.TxStore", Floor: transactionName, Goal: Goal{Ratio: goal},
		Open: func(ctx context.Context, _ int) (opened, error) {
			store, insert, closeIt, err := s.openTx(ctx, at)
			if err != nil {
				return opened{}, err
			}
			return opened{same(func(i int) error {
				_, h, err := store.Claim(ctx, claimOf(i))
				if err != nil {
					return err
				}
				lender, ok := h.(replay.Lender)
				if !ok {
					return fmt.Errorf("claim %d: %T lends nothing", i, h)
				}
				lent := lender.Lend(ctx)
				if _, err := pgstore.Tx(lent).Exec(lent, insert, "mug", 1); err != nil {
					return err
				}
				return h.Seal(ctx, record, retention)
			}), closeIt}, nil
		}}
}

// txGuard is the same as a whole request.
func (s *servers) txGuard(at address) Contender {
	return Contender{Name: "the same, whole request", Floor: transactionName, Open: func(ctx context.Context, ops int) (opened, error) {
		store, insert, closeIt, err := s.openTx(ctx, at)
		if err != nil {
			return opened{}, err
		}
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := pgstore.Tx(r.Context()).Exec(r.Context(), insert, "mug", 1); err != nil {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			order(w, r)
		})
		f := framework{"net/http", func(g *replay.Guard) http.Handler { return nethttp.Middleware(g)(handler) }}
		worker, err := guarded(f, store, true, ops)
		return opened{worker, closeIt}, err
	}}
}
