package pgstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	maxMarks     = 128 // locks of the server that one process takes for its waiters
	maxIdle      = 16  // of them for keys that nobody waits for any more
	markPatience = 250 * time.Millisecond
	markRetry    = time.Millisecond
	pingInterval = 15 * time.Second
	pingTimeout  = 5 * time.Second
	probeTimeout = 2 * time.Second
)

// errDeaf means that notifications do not reach the listening connection.
var errDeaf = errors.New("pgstore: notifications are not delivered")

// A listener hears of seals and releases in other processes, on a connection of
// its own. Those who seal and release notify only if somebody waits. To say so,
// the listener's session holds an advisory lock in shared mode for each watched
// key, which costs no write, needs no row, and ends with the session.
type listener struct {
	w *watches

	mu       sync.Mutex
	requests []*markRequest     // guarded by mu
	interval context.CancelFunc // ends the present wait; guarded by mu
	deaf     bool               // for good; guarded by mu
	doubtful bool               // not known yet; guarded by mu

	// Of the goroutine that runs the session.
	conn  *pgx.Conn
	held  map[int64]string // locks of this session, by their numbers
	sure  bool             // that notifications arrive here
	probe *probe
}

// A markRequest asks for the mark of a key.
type markRequest struct {
	key   string
	id    int64
	tries int
	done  chan struct{} // closed when the mark is there, or will not be
}

// A probe is a notification to ourselves, sent through the pool.
type probe struct {
	name string
	due  time.Time // when it should have been heard, zero before it was sent; guarded by listener.mu
}

func newListener(w *watches) *listener { return &listener{w: w} }

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

// kick ends the session's present wait for notifications. l.mu is held.
func (l *listener) kick() {
	if l.interval != nil {
		l.interval()
	}
}

// run keeps a session up until the store is closed.
func (l *listener) run() {
	t := l.w.table
	for fails, deaf := 0, 0; ; {
		begun := time.Now()
		err := l.session(t.life)
		l.lost()
		if t.isClosed() {
			return
		}
		if time.Since(begun) > time.Minute {
			fails, deaf = 0, 0
		}
		fails++
		if errors.Is(err, errDeaf) {
			if deaf++; deaf == 2 {
				l.giveUp()
				t.log.LogAttrs(t.life, slog.LevelWarn, "submitonce: LISTEN hears nothing, as behind a transaction pooler;"+
					" waiters poll instead. Set pgstore.Config.NoListen to say that this is intended")
				return
			}
		}
		t.log.LogAttrs(t.life, slog.LevelDebug, "submitonce: listening connection lost", slog.Any("error", err))
		if !t.sleep(t.life, backoff(fails, 20*time.Millisecond, 2*time.Second)) {
			return
		}
	}
}

// lost forgets what the session held.
func (l *listener) lost() {
	l.conn, l.held, l.sure, l.probe = nil, nil, false, nil
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	for _, tp := range l.w.topics {
		tp.listened = false
	}
	select {
	case l.w.fresh <- struct{}{}: // the poller takes over
	default:
	}
}

// giveUp leaves it to the poller for good.
func (l *listener) giveUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deaf = true
	for _, r := range l.requests {
		close(r.done)
	}
	l.requests = nil
}

// session connects, listens, and serves requests and notifications until
// something breaks.
func (l *listener) session(ctx context.Context) (err error) {
	if err := l.connect(ctx); err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), pingTimeout)
		defer cancel()
		if errors.Is(err, errDeaf) {
			_, _ = l.conn.Exec(ctx, "UNLISTEN *") // it may be a server connection that others get
		}
		_ = l.conn.Close(ctx)
	}()
	l.again()
	l.w.tellAll() // for what was missed
	for {
		l.serve(ctx)
		n, err := l.wait(ctx)
		switch {
		case n != nil:
			l.hear(n)
		case err != nil:
			return err
		}
	}
}

// connect opens the session and finds out whether it is the pool's kind of
// session too.
func (l *listener) connect(ctx context.Context) error {
	t := l.w.table
	c := t.pool.Config()
	cc := c.ConnConfig
	if c.BeforeConnect != nil {
		if err := c.BeforeConnect(ctx, cc); err != nil {
			return err
		}
	}
	cc.DefaultQueryExecMode = pgx.QueryExecModeExec
	cc.OnNotification = nil
	// A wait for notifications is cut short by a deadline, never by a cancel request.
	cc.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.DeadlineContextWatcherHandler{Conn: c.Conn()}
	}
	conn, err := pgx.ConnectConfig(ctx, cc)
	if err != nil {
		return err
	}
	l.conn, l.held = conn, make(map[int64]string)
	var pid uint32
	_, err = conn.Exec(ctx, "LISTEN "+pgx.Identifier{t.channel}.Sanitize())
	if err == nil {
		err = conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid)
	}
	if err != nil {
		_ = conn.Close(ctx)
		return err
	}
	// A pooler makes up the process id that it tells its clients.
	l.sure = pid == conn.PgConn().PID()
	l.probe = &probe{name: "probe " + rand.Text()}
	p := l.probe
	l.mu.Lock()
	l.doubtful = !l.sure
	l.mu.Unlock()
	t.running.Go(func() { l.sendProbe(ctx, p) })
	return nil
}

// sendProbe notifies ourselves through the pool. If the pool is too busy to
// send it, nothing is known.
func (l *listener) sendProbe(ctx context.Context, p *probe) {
	t := l.w.table
	ctx, cancel := context.WithTimeout(ctx, pingInterval)
	defer cancel()
	err := t.do(ctx, "probe", func(conn *pgxpool.Conn) error {
		_, err := conn.Exec(ctx, "SELECT pg_notify($1::text, $2::text)", t.args(t.channel, p.name)...)
		return err
	})
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p.due = time.Now().Add(probeTimeout)
	l.kick()
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

// wait returns the next notification, or nil after a kick or when something is
// due.
func (l *listener) wait(ctx context.Context) (*pgconn.Notification, error) {
	l.mu.Lock()
	limit := pingInterval
	if len(l.requests) > 0 && l.sure {
		limit = markRetry // somebody seals this key right now
	}
	if p := l.probe; p != nil && !p.due.IsZero() {
		limit = min(limit, time.Until(p.due))
	}
	if limit <= 0 {
		l.mu.Unlock()
		return nil, errDeaf
	}
	wctx, cancel := context.WithTimeout(ctx, limit)
	l.interval = cancel
	l.mu.Unlock()
	defer cancel()

	n, err := l.conn.WaitForNotification(wctx)
	switch {
	case err == nil:
		return n, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case wctx.Err() == nil || l.conn.IsClosed():
		return nil, err
	case limit < pingInterval || errors.Is(wctx.Err(), context.Canceled):
		return nil, nil
	}
	pctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	return nil, l.conn.Ping(pctx)
}

// hear wakes those whom a notification is for.
func (l *listener) hear(n *pgconn.Notification) {
	if p := l.probe; p != nil && n.Payload == p.name {
		l.sure, l.probe = true, nil
		l.mu.Lock()
		l.doubtful = false
		l.mu.Unlock()
		return
	}
	w := l.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if tp := w.names[n.Payload]; tp != nil {
		tp.wake()
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
