package memstore

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/submitonce/submitonce/replay"
)

type hold struct {
	s     *Store
	sh    *shard
	key   string
	owner replay.Owner
}

// mine returns the entry if it is still this hold's. The caller holds mu.
func (h *hold) mine() *entry {
	if e := h.sh.m[h.key]; e != nil && e.owner == h.owner {
		return e
	}
	return nil
}

// Extend implements [replay.Hold].
func (h *hold) Extend(ctx context.Context, lease time.Duration) error {
	if err := h.s.check(ctx); err != nil {
		return fmt.Errorf("memstore: extend: %w", err)
	}
	now := h.s.now()
	h.sh.mu.Lock()
	defer h.sh.mu.Unlock()
	e := h.mine()
	if e == nil || e.done {
		return fmt.Errorf("memstore: extend: %w", replay.ErrLeaseLost)
	}
	e.end = max(e.end, now+lease)
	return nil
}

// Seal implements [replay.Hold].
func (h *hold) Seal(ctx context.Context, response []byte, retention time.Duration) error {
	if err := h.s.check(ctx); err != nil {
		return fmt.Errorf("memstore: seal: %w", err)
	}
	kept := bytes.Clone(response)
	now := h.s.now()
	h.sh.mu.Lock()
	defer h.sh.mu.Unlock()
	e := h.mine()
	if e == nil {
		return fmt.Errorf("memstore: seal: %w", replay.ErrLeaseLost)
	}
	if e.done {
		return nil
	}
	e.done, e.response, e.end = true, kept, now+retention
	h.sh.bytes.Add(int64(len(kept)))
	h.sh.wake(h.key)
	return nil
}

// Release implements [replay.Hold].
func (h *hold) Release(ctx context.Context) error {
	if err := h.s.check(ctx); err != nil {
		return fmt.Errorf("memstore: release: %w", err)
	}
	h.sh.mu.Lock()
	defer h.sh.mu.Unlock()
	if e := h.mine(); e != nil && !e.done {
		h.sh.remove(h.key, e)
		h.sh.wake(h.key)
	}
	return nil
}
