package redisstore

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/submitonce/submitonce/replay"
)

// deaf reports whether client does not end calls at the deadlines of their
// contexts, which is go-redis' default.
func deaf(client redis.UniversalClient) bool {
	switch client := client.(type) {
	case *redis.Client:
		return !client.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		return !client.Options().ContextTimeoutEnabled
	}
	return true
}

// call runs f, which talks to the server, and names errors by what it does.
func (s *Store) call(ctx context.Context, what string, f func() error) error {
	_, err := call(ctx, s, what, func() (struct{}, error) { return struct{}{}, f() })
	return err
}

// call returns what f returns, which talks to the server, and names errors by
// what it does. It returns when ctx ends; f may still be running then.
func call[T any](ctx context.Context, s *Store, what string, f func() (T, error)) (result T, err error) {
	if err := s.begin(ctx); err != nil {
		return result, fail(what, err)
	}
	defer s.calls.Done()
	if s.heeds(ctx) {
		result, err = f()
	} else {
		result, err = aside(ctx, s, f)
	}
	if err != nil {
		err = fail(what, err)
	}
	return result, err
}

// begin counts a call in, until Close.
func (s *Store) begin(ctx context.Context) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return replay.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.calls.Add(1)
	return nil
}

// heeds reports whether the client ends a call with ctx. It does so at deadlines
// only, which are what the guard gives.
func (s *Store) heeds(ctx context.Context) bool {
	if _, ok := ctx.Deadline(); ok && !s.deaf {
		return true
	}
	return ctx.Done() == nil
}

// aside runs f in a goroutine that it leaves behind when ctx ends.
func aside[T any](ctx context.Context, s *Store, f func() (T, error)) (result T, err error) {
	type outcome struct {
		result T
		err    error
	}
	done := make(chan outcome, 1)
	s.calls.Go(func() {
		r, err := f()
		done <- outcome{r, err}
	})
	select {
	case o := <-done:
		return o.result, o.err
	case <-ctx.Done():
		return result, ctx.Err()
	}
}

func fail(what string, err error) error {
	return fmt.Errorf("redisstore: %s: %w", what, full(err))
}

// full tells a server without room from one that is away.
func full(err error) error {
	if redis.IsOOMError(err) {
		return fmt.Errorf("%w: %w", replay.ErrStoreFull, err)
	}
	return err
}
