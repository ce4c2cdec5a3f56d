package sqlitestore

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// watchEvery is how often a watcher looks whether another process has written
// to the file. SQLite tells nobody, but its data_version, which changes with each
// commit of another connection, costs a few microseconds to ask for.
const watchEvery = 5 * time.Millisecond

// Watch implements [replay.Watcher]. Changes by this process are told at once;
// those by others are looked for every 5 ms, while anybody watches.
func (s *Store) Watch(ctx context.Context, key string) (<-chan struct{}, func(), error) {
	if err := s.check(ctx); err != nil {
		return nil, nil, fmt.Errorf("sqlitestore: watch: %w", err)
	}
	c := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers[key] = append(s.watchers[key], c)
	if !s.looking && !s.closed {
		s.looking = true
		s.running.Go(s.lookOut)
	}
	return c, func() { s.unwatch(key, c) }, nil
}

func (s *Store) unwatch(key string, c chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := slices.DeleteFunc(s.watchers[key], func(w chan struct{}) bool { return w == c })
	if len(left) == 0 {
		delete(s.watchers, key)
	} else {
		s.watchers[key] = left
	}
}

func (s *Store) wake(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wake(s.watchers[key])
}

// lookOut wakes the watchers when the file has changed, and ends when there are
// none or the store is closed.
func (s *Store) lookOut() {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	conn, err := s.db.Conn(s.life)
	if err == nil {
		defer func() { _ = conn.Close() }() // it goes back to the pool
	}
	var last int64
	for {
		s.mu.Lock()
		if len(s.watchers) == 0 || s.closed || err != nil {
			s.looking = false // whoever watches next starts it anew; the guard polls meanwhile
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		var version int64
		err = conn.QueryRowContext(s.life, "PRAGMA data_version").Scan(&version)
		if err == nil && version != last {
			last = version
			s.wakeAll()
		}
		select {
		case <-tick.C:
		case <-s.life.Done():
		}
	}
}

func (s *Store) wakeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, watchers := range s.watchers {
		wake(watchers)
	}
}

func wake(watchers []chan struct{}) {
	for _, c := range watchers {
		select {
		case c <- struct{}{}:
		default: // it has been told already
		}
	}
}
