package sqlitestore

import (
	"context"
	"fmt"
	"time"

	"github.com/submitonce/submitonce/replay"
)

// A hold is a won claim. All its state is in the file.
type hold struct {
	s     *Store
	key   string
	owner replay.Owner
}

// change runs a statement on the hold's record and returns how many rows it met.
func (h *hold) change(ctx context.Context, query string, args ...any) (int64, error) {
	if err := h.s.check(ctx); err != nil {
		return 0, err
	}
	return h.s.exec(ctx, query, append([]any{[]byte(h.key), h.owner[:]}, args...)...)
}

// Extend implements [replay.Hold].
func (h *hold) Extend(ctx context.Context, lease time.Duration) error {
	n, err := h.change(ctx, extendSQL, lease.Milliseconds())
	if err == nil && n == 0 {
		err = replay.ErrLeaseLost
	}
	if err != nil {
		return fmt.Errorf("sqlitestore: extend: %w", err)
	}
	return nil
}

// Seal implements [replay.Hold].
func (h *hold) Seal(ctx context.Context, response []byte, retention time.Duration) error {
	if response == nil {
		response = []byte{}
	}
	n, err := h.change(ctx, sealSQL, retention.Milliseconds(), response)
	if err == nil && n == 0 {
		// Lost, unless this is the repetition of a seal that had its effect.
		var sealed int
		err = h.s.db.QueryRowContext(ctx, sealedSQL, []byte(h.key), h.owner[:]).Scan(&sealed)
		if err == nil && sealed == 0 {
			err = replay.ErrLeaseLost
		}
	}
	if err != nil {
		return fmt.Errorf("sqlitestore: seal: %w", err)
	}
	h.s.wake(h.key)
	return nil
}

// Release implements [replay.Hold].
func (h *hold) Release(ctx context.Context) error {
	if _, err := h.change(ctx, releaseSQL); err != nil {
		return fmt.Errorf("sqlitestore: release: %w", err)
	}
	h.s.wake(h.key)
	return nil
}
