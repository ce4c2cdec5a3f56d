package replay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

func (e *engine) waited(ctx context.Context, key string, t task, began time.Time) {
	if e.observe != nil {
		e.tell(ctx, t, Event{Kind: Waited, Key: key, Waited: time.Since(began)})
	}
}

func (e *engine) failed(ctx context.Context, key string, t task, op string, err error) {
	e.logFailed(ctx, key, op, err)
	e.tell(ctx, t, Event{Kind: StoreError, Key: key, Err: fmt.Errorf("%s: %w", op, err)})
}

// storeFailed is failed for calls that no single task made.
func (e *engine) storeFailed(ctx context.Context, key, op string, err error) {
	e.logFailed(ctx, key, op, err)
	if e.observe != nil {
		e.observe(ctx, Event{Kind: StoreError, Key: key, Err: fmt.Errorf("%s: %w", op, err)})
	}
}

func (e *engine) logFailed(ctx context.Context, key, op string, err error) {
	e.log.LogAttrs(ctx, slog.LevelWarn, "submitonce: store call failed",
		slog.String("call", op), slog.String("key", key), slog.Any("error", err))
}

func (e *engine) tell(ctx context.Context, t task, ev Event) {
	if e.observe != nil {
		e.pass(ctx, t, ev)
	}
}

// pass is apart, so that tell costs nothing where nobody listens.
func (e *engine) pass(ctx context.Context, t task, ev Event) {
	t.event(&ev)
	e.observe(ctx, ev)
}

func isStoreError(err error) bool { return errors.Is(err, ErrStoreAway) }
