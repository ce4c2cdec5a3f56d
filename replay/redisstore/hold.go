package redisstore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/submitonce/submitonce/replay"
)

// A hold is a won claim. All its state is in Redis.
type hold struct {
	s     *Store
	name  string
	owner replay.Owner
}

// Extend implements [replay.Hold].
func (h *hold) Extend(ctx context.Context, lease time.Duration) error {
	if err := h.s.check(ctx); err != nil {
		return fmt.Errorf("redisstore: extend: %w", err)
	}
	n, err := h.s.extend.Run(ctx, h.s.client, []string{h.name}, h.owner[:], (lease + grace).Milliseconds()).Int()
	return h.ended("extend", n, err)
}

// Seal implements [replay.Hold] in one round trip.
func (h *hold) Seal(ctx context.Context, response []byte, retention time.Duration) error {
	s := h.s
	if err := s.check(ctx); err != nil {
		return fmt.Errorf("redisstore: seal: %w", err)
	}
	script := s.seal
	if s.unflagged.Load() {
		script = s.oldSeal
	}
	args := []any{h.owner[:], response, max(retention.Milliseconds(), 1), s.publish}
	n, err := script.Run(ctx, s.client, []string{h.name}, args...).Int()
	if err != nil && strings.Contains(err.Error(), "compil") && script == s.seal {
		s.unflagged.Store(true) // before Redis 7, "#!" is no Lua
		n, err = s.oldSeal.Run(ctx, s.client, []string{h.name}, args...).Int()
	}
	if err == nil && n == 1 {
		err = s.replicated(ctx)
	}
	return h.ended("seal", n, err)
}

// Release implements [replay.Hold] in one round trip.
func (h *hold) Release(ctx context.Context) error {
	if err := h.s.check(ctx); err != nil {
		return fmt.Errorf("redisstore: release: %w", err)
	}
	err := h.s.release.Run(ctx, h.s.client, []string{h.name}, h.owner[:], h.s.publish).Err()
	return h.ended("release", 1, err)
}

func (h *hold) ended(call string, n int, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("redisstore: %s: %w", call, err)
	case n == 0:
		return fmt.Errorf("redisstore: %s: %w", call, replay.ErrLeaseLost)
	}
	return nil
}
