package tieredstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/submitonce/submitonce/replay"
)

// A hold is a claim won in the back, and in the front where that was possible.
type hold struct {
	s     *Store
	claim replay.Claim
	front replay.Hold // nil if the front was away or somebody else's
	back  replay.Hold
}

// A lendingHold is a hold whose back lends.
type lendingHold struct {
	*hold
	lender replay.Lender
}

// Lend implements [replay.Lender].
func (h *lendingHold) Lend(ctx context.Context) context.Context { return h.lender.Lend(ctx) }

// Extend implements [replay.Hold].
func (h *hold) Extend(ctx context.Context, lease time.Duration) error {
	if err := h.s.check(ctx); err != nil {
		return fmt.Errorf("tieredstore: extend: %w", err)
	}
	if err := h.back.Extend(ctx, lease); err != nil {
		return fmt.Errorf("tieredstore: extend: %w", err)
	}
	if h.front != nil {
		h.s.ask(ctx, "extend", func(ctx context.Context) error { return h.front.Extend(ctx, lease) })
	}
	return nil
}

// Seal implements [replay.Hold]. What the back has sealed stands, whatever
// becomes of the front.
func (h *hold) Seal(ctx context.Context, response []byte, retention time.Duration) error {
	if err := h.s.check(ctx); err != nil {
		return fmt.Errorf("tieredstore: seal: %w", err)
	}
	if err := h.back.Seal(ctx, response, retention); err != nil {
		if errors.Is(err, replay.ErrLeaseLost) || errors.Is(err, replay.ErrUndone) {
			h.leaveFront(ctx)
		}
		return fmt.Errorf("tieredstore: seal: %w", err)
	}
	kept := min(retention, h.s.c.FrontRetention)
	h.s.ask(ctx, "seal", func(ctx context.Context) error {
		if h.front == nil { // it was away; perhaps it is back
			_, front, err := h.s.front.Claim(ctx, h.claim)
			if err != nil || front == nil {
				return err
			}
			return front.Seal(ctx, response, kept)
		}
		return h.front.Seal(ctx, response, kept)
	})
	return nil
}

// Release implements [replay.Hold]. The back comes first: who is woken by the
// front finds it free.
func (h *hold) Release(ctx context.Context) error {
	if err := h.s.check(ctx); err != nil {
		return fmt.Errorf("tieredstore: release: %w", err)
	}
	err := h.back.Release(ctx)
	h.leaveFront(ctx)
	if err != nil {
		return fmt.Errorf("tieredstore: release: %w", err)
	}
	return nil
}

func (h *hold) leaveFront(ctx context.Context) {
	if h.front != nil {
		h.s.ask(ctx, "release", h.front.Release)
	}
}
