package tieredstore

import (
	"context"
	"fmt"
	"sync"

	"github.com/submitonce/submitonce/replay"
)

// Watch implements [replay.Watcher]. It watches both tiers, as far as they can be
// watched: an owner that could not reach the front tells by the back.
func (s *Store) Watch(ctx context.Context, key string) (<-chan struct{}, func(), error) {
	if err := s.check(ctx); err != nil {
		return nil, nil, fmt.Errorf("tieredstore: watch: %w", err)
	}
	var (
		inner [2]<-chan struct{} // nil ones are never ready
		stops []func()
	)
	if w, ok := s.front.(replay.Watcher); ok {
		s.ask(ctx, "watch", func(ctx context.Context) error {
			c, stop, err := w.Watch(ctx, key)
			if err == nil {
				inner[0], stops = c, append(stops, stop)
			}
			return err
		})
	}
	if w, ok := s.back.(replay.Watcher); ok {
		c, stop, err := w.Watch(ctx, key)
		if err != nil {
			for _, stop := range stops {
				stop()
			}
			return nil, nil, fmt.Errorf("tieredstore: watch: %w", err)
		}
		inner[1], stops = c, append(stops, stop)
	}
	changed := make(chan struct{}, 1)
	enough := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		for _, stop := range stops {
			stop()
		}
		return nil, nil, fmt.Errorf("tieredstore: watch: %w", replay.ErrClosed)
	}
	s.running.Go(func() {
		defer func() {
			for _, stop := range stops {
				stop()
			}
		}()
		for {
			select {
			case <-inner[0]:
			case <-inner[1]:
			case <-enough:
				return
			case <-s.life.Done():
				return
			}
			select {
			case changed <- struct{}{}:
			default: // it has been told already
			}
		}
	})
	return changed, sync.OnceFunc(func() { close(enough) }), nil
}
