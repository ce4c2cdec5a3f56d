package memstore

import (
	"context"
	"fmt"
	"slices"
)

// Watch implements [replay.Watcher]. No message is ever lost.
func (s *Store) Watch(ctx context.Context, key string) (<-chan struct{}, func(), error) {
	sh := s.shard(s.hash(key))
	if err := sh.lock(ctx); err != nil {
		return nil, nil, fmt.Errorf("memstore: watch: %w", err)
	}
	defer sh.mu.Unlock()
	if sh.watchers == nil {
		sh.watchers = make(map[string][]chan struct{})
	}
	changed := make(chan struct{}, 1)
	sh.watchers[key] = append(sh.watchers[key], changed)
	return changed, func() { sh.unwatch(key, changed) }, nil
}

func (sh *shard) unwatch(key string, changed chan struct{}) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	all := sh.watchers[key]
	i := slices.Index(all, changed)
	switch {
	case i < 0: // stopped before, or closed
	case len(all) == 1:
		delete(sh.watchers, key)
	default:
		last := len(all) - 1
		all[i], all[last] = all[last], nil
		sh.watchers[key] = all[:last]
	}
}

// wake tells those who watch key. mu is held.
func (sh *shard) wake(key string) {
	for _, changed := range sh.watchers[key] {
		select {
		case changed <- struct{}{}:
		default: // it has a message that it has not read yet
		}
	}
}
