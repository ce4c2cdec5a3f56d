package pgstore

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	maxMarks     = 128 // locks of the server that one process takes for its waiters
	maxIdle      = 16  // of them for keys that nobody waits for any more
	markPatience = 250 * time.Millisecond
	markRetry    = time.Millisecond
)

// A markRequest asks for the mark of a key.
type markRequest struct {
	key   string
	id    int64
	tries int
	done  chan struct{} // closed when the mark is there, or will not be
}

// mark makes sure that changes of key are heard, and returns when they are; or
// when that takes too long, and then the poller has to do.
func (l *listener) mark(ctx context.Context, key string) {
	r := &markRequest{key: key, id: lock(l.w.table.marked, key), done: make(chan struct{})}
	l.mu.Lock()
	if l.deaf {
		l.mu.Unlock()
		return
	}
	l.requests = append(l.requests, r)
	l.kick()
	doubtful := l.doubtful
	l.mu.Unlock()
	if doubtful {
		return
	}
	timer := time.NewTimer(markPatience)
	defer timer.Stop()
	select {
	case <-r.done:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// again asks for the marks of all topics of the last session.
func (l *listener) again() {
	w := l.w
	w.mu.Lock()
	defer w.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, tp := range w.topics {
		if !tp.listened {
			l.requests = append(l.requests, &markRequest{key: key, id: lock(w.table.marked, key), done: make(chan struct{})})
		}
	}
}

// serve gets the marks that were asked for.
func (l *listener) serve(ctx context.Context) {
	if !l.sure {
		return // a session lock behind a pooler would stay with whoever comes next
	}
	l.mu.Lock()
	requests := l.requests
	l.requests = nil
	l.mu.Unlock()
	if len(requests) == 0 {
		return
	}
	l.unmark(ctx)
	var ids []int64
	for _, r := range requests {
		if _, ok := l.held[r.id]; !ok && len(l.held)+len(ids) < maxMarks {
			ids = append(ids, r.id)
		}
	}
	got := l.lockShared(ctx, ids)
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	for _, r := range requests {
		if got[r.id] {
			l.held[r.id] = r.key
		}
		_, ok := l.held[r.id]
		if tp := l.w.topics[r.key]; tp != nil {
			tp.listened = ok
		}
		r.tries++
		if ok || len(l.held) >= maxMarks || r.tries > 100 {
			close(r.done)
			continue
		}
		l.mu.Lock()
		l.requests = append(l.requests, r)
		l.mu.Unlock()
	}
}

// lockShared tries to take locks and returns which it got. The next wait finds
// out if it failed because the session is gone.
func (l *listener) lockShared(ctx context.Context, ids []int64) map[int64]bool {
	if len(ids) == 0 {
		return nil
	}
	rows, err := l.conn.Query(ctx,
		"SELECT id, pg_try_advisory_lock_shared(id) FROM unnest($1::bigint[]) AS id", ids)
	got := make(map[int64]bool, len(ids))
	var (
		id int64
		ok bool
	)
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&id, &ok}, func() error {
			got[id] = ok
			return nil
		})
	}
	if err != nil {
		l.w.table.log.LogAttrs(ctx, slog.LevelDebug, "submitonce: cannot mark watched keys",
			slog.Any("error", fmt.Errorf("pgstore: mark: %w", err)))
	}
	return got
}

// unmark gives back the marks of keys that nobody watches any more, a few at a
// time.
func (l *listener) unmark(ctx context.Context) {
	var ids []int64
	l.w.mu.Lock()
	for id, key := range l.held {
		if l.w.topics[key] == nil {
			ids = append(ids, id)
		}
	}
	l.w.mu.Unlock()
	if len(ids) > maxIdle {
		for _, id := range ids {
			delete(l.held, id)
		}
		_, err := l.conn.Exec(ctx, "SELECT pg_advisory_unlock_shared(id) FROM unnest($1::bigint[]) AS id", ids)
		if err != nil {
			_ = l.conn.Close(ctx) // the end of the session is the end of its locks
		}
	}
}
