package memstore

import (
	"context"
	"fmt"
	"time"

	"github.com/submitonce/submitonce/replay"
)

// Extend implements [replay.Hold].
func (e *entry) Extend(ctx context.Context, lease time.Duration) error {
	sh := e.shard
	if err := sh.lock(ctx); err != nil {
		return fmt.Errorf("memstore: extend: %w", err)
	}
	defer sh.mu.Unlock()
	if e.place == out || e.done {
		return fmt.Errorf("memstore: extend: %w", replay.ErrLeaseLost)
	}
	e.end = max(e.end, sh.store.now()+lease)
	sh.claims.fix(e)
	return nil
}

// Seal implements [replay.Hold].
func (e *entry) Seal(ctx context.Context, response []byte, retention time.Duration) error {
	sh := e.shard
	kept := append(make([]byte, 0, len(response)), response...) // outside of the lock
	if err := sh.lock(ctx); err != nil {
		return fmt.Errorf("memstore: seal: %w", err)
	}
	defer sh.mu.Unlock()
	switch {
	case e.done: // a repetition
		return nil
	case e.place == out:
		return fmt.Errorf("memstore: seal: %w", replay.ErrLeaseLost)
	}
	now := sh.store.now()
	sh.claims.remove(e)
	e.done, e.response, e.end = true, kept, now+retention
	sh.seals.push(e)
	sh.grow(0, int64(len(kept)))
	sh.wake(e.key)
	sh.wakeUp(now)
	return nil
}

// Release implements [replay.Hold].
func (e *entry) Release(ctx context.Context) error {
	sh := e.shard
	if err := sh.lock(ctx); err != nil {
		return fmt.Errorf("memstore: release: %w", err)
	}
	defer sh.mu.Unlock()
	if e.place != out && !e.done {
		sh.remove(e)
		sh.wake(e.key)
	}
	return nil
}
