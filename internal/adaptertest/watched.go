package adaptertest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/submitonce/submitonce/replay"
)

// A watched store counts its calls, and has the faults that a case gives it.
type watched struct {
	replay.Store
	calls atomic.Int64 // of Claim and Look
	seals atomic.Int64 // that succeeded

	// Set before the first request; each may be nil.
	claim  func(ctx context.Context) error
	extend func() error
	seal   func() error

	// How many claims are transactions that cannot commit.
	undone atomic.Int64
}

// watch keeps the store a Watcher if it is one.
func watch(s replay.Store) *watched { return &watched{Store: s} }

func (w *watched) Claim(ctx context.Context, c replay.Claim) (replay.Record, replay.Hold, error) {
	w.calls.Add(1)
	if w.claim != nil {
		if err := w.claim(ctx); err != nil {
			return replay.Record{}, nil, err
		}
	}
	rec, hold, err := w.Store.Claim(ctx, c)
	if hold != nil && w.undone.Add(-1) >= 0 {
		return rec, undoneLender{hold}, err
	}
	switch h := hold.(type) {
	case nil:
		return rec, nil, err
	case replay.Lender:
		return rec, watchedLender{watchedHold{h, w}, h}, err
	}
	return rec, watchedHold{hold, w}, err
}

func (w *watched) Look(ctx context.Context, key string) (replay.Record, error) {
	w.calls.Add(1)
	return w.Store.Look(ctx, key)
}

// Watch hears of nothing where the store is no Watcher; the guard polls then.
func (w *watched) Watch(ctx context.Context, key string) (<-chan struct{}, func(), error) {
	if store, ok := w.Store.(replay.Watcher); ok {
		return store.Watch(ctx, key)
	}
	return nil, func() {}, nil
}

type watchedHold struct {
	replay.Hold
	w *watched
}

func (h watchedHold) Extend(ctx context.Context, lease time.Duration) error {
	if h.w.extend != nil {
		if err := h.w.extend(); err != nil {
			return err
		}
	}
	return h.Hold.Extend(ctx, lease)
}

func (h watchedHold) Seal(ctx context.Context, response []byte, retention time.Duration) error {
	if h.w.seal != nil {
		if err := h.w.seal(); err != nil {
			return err
		}
	}
	err := h.Hold.Seal(ctx, response, retention)
	if err == nil {
		h.w.seals.Add(1)
	}
	return err
}

type watchedLender struct {
	watchedHold
	lender replay.Lender
}

func (h watchedLender) Lend(ctx context.Context) context.Context { return h.lender.Lend(ctx) }

// An undoneLender is a transaction that loses against another one.
type undoneLender struct{ replay.Hold }

func (h undoneLender) Lend(ctx context.Context) context.Context { return ctx }

func (h undoneLender) Seal(ctx context.Context, _ []byte, _ time.Duration) error {
	if err := h.Release(ctx); err != nil {
		return err
	}
	return replay.ErrUndone
}
