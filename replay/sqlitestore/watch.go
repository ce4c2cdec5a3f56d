package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
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
	l := lookout{db: s.db, seen: make(map[any]stamp)}
	defer l.letGo()
	var err error
	for {
		s.mu.Lock()
		if len(s.watchers) == 0 || s.closed || err != nil {
			s.looking = false // whoever watches next starts it anew; the guard polls meanwhile
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		var changed bool
		if changed, err = l.ask(s.life); changed {
			s.wakeAll()
		}
		select {
		case <-tick.C:
		case <-s.life.Done():
		}
	}
}

// A lookout finds out whether the file has changed. Where the pool has a limit,
// it takes a connection for each question, because others may wait for it;
// otherwise it keeps one, because a pool lets go of what it has idle.
type lookout struct {
	db   *sql.DB
	conn *sql.Conn     // or nil
	seen map[any]stamp // by the driver's connection, which alone can compare them
}

// A stamp of a connection changes with each commit that the others make, and
// with each change of its own.
type stamp struct{ others, own int64 }

const stampSQL = "SELECT data_version, total_changes() FROM pragma_data_version"

// maxSeen bounds what is remembered of connections that are gone.
const maxSeen = 64

// ask reports whether the file may have changed since the same connection was
// last asked.
func (l *lookout) ask(ctx context.Context) (changed bool, err error) {
	if l.conn == nil {
		if l.conn, err = l.db.Conn(ctx); err != nil {
			return false, err
		}
	}
	var id any
	_ = l.conn.Raw(func(c any) error {
		if reflect.ValueOf(c).Comparable() { // one that a wrapping driver made may not be
			id = c
		}
		return nil
	})
	var now stamp
	err = l.conn.QueryRowContext(ctx, stampSQL).Scan(&now.others, &now.own)
	if err != nil || l.db.Stats().MaxOpenConnections > 0 {
		l.letGo()
	}
	if err != nil {
		return false, err
	}
	last, known := l.seen[id]
	if len(l.seen) >= maxSeen && !known {
		clear(l.seen)
	}
	l.seen[id] = now
	return !known || now != last, nil
}

// letGo gives the connection back to the pool.
func (l *lookout) letGo() {
	if l.conn != nil {
		_ = l.conn.Close()
		l.conn = nil
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
