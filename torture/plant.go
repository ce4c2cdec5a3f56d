package main

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/submitonce/submitonce/replay"
)

// Bugs that can be planted, to show that a run finds them.
const (
	// NoFencing lets an owner whose claim was taken over seal all the same.
	NoFencing = "no-fencing"

	// SealAfterAnswer answers the client first and seals a little later.
	SealAfterAnswer = "seal-after-answer"
)

// planted returns a store with the bug of c, or s itself.
func planted(s replay.Store, c AppConfig, pool *pgxpool.Pool) replay.Store {
	if c.Plant == "" {
		return s
	}
	return &plantedStore{Store: s, bug: c.Plant, pool: pool}
}

type plantedStore struct {
	replay.Store
	bug  string
	pool *pgxpool.Pool
}

func (s *plantedStore) Claim(ctx context.Context, c replay.Claim) (replay.Record, replay.Hold, error) {
	rec, hold, err := s.Store.Claim(ctx, c)
	if hold == nil {
		return rec, hold, err
	}
	return rec, wrapHold(hold, func(h replay.Hold) replay.Hold { return &plantedHold{h, s, c.Key} }), err
}

func (s *plantedStore) Watch(ctx context.Context, key string) (<-chan struct{}, func(), error) {
	return watch(ctx, s.Store, key)
}

type plantedHold struct {
	replay.Hold
	s   *plantedStore
	key string
}

func (h *plantedHold) Seal(ctx context.Context, response []byte, retention time.Duration) error {
	if h.s.bug == SealAfterAnswer {
		ctx = context.WithoutCancel(ctx)
		go func() {
			time.Sleep(100 * time.Millisecond)
			_ = h.Hold.Seal(ctx, response, retention)
		}()
		return nil
	}
	err := h.Hold.Seal(ctx, response, retention)
	if errors.Is(err, replay.ErrLeaseLost) {
		const overwrite = "UPDATE submitonce SET state = 1, response = $2 WHERE key = $1"
		_, err = h.s.pool.Exec(ctx, overwrite, []byte(h.key), response)
	}
	return err
}
