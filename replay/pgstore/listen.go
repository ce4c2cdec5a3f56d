package pgstore

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
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

// A probe is a notification to ourselves, sent through the pool.
type probe struct {
	name string
	due  time.Time // when it should have been heard, zero before it was sent; guarded by listener.mu
}

func newListener(w *watches) *listener { return &listener{w: w} }

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
