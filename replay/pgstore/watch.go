package pgstore

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/submitonce/submitonce/replay"
)

const (
	pollListening = 250 * time.Millisecond // behind LISTEN: for the message that got lost
	pollFirst     = 10 * time.Millisecond  // without LISTEN: for the newest waiter
	pollSlowest   = 100 * time.Millisecond // without LISTEN: when nobody new has come
	pollTimeout   = 2 * time.Second
)

// watches is who waits for what in this process. A waiter is woken three ways: by
// a seal or release through the same store at once, by the listener when another
// process notifies, and by the poller, which reads the state of all watched keys
// in one call, and so makes good what the listener missed.
type watches struct {
	table *table
	read  func(ctx context.Context, topics []*topic) (map[string]standing, error)

	mu      sync.Mutex
	topics  map[string]*topic // by key; guarded by mu
	names   map[string]*topic // the same by payload; guarded by mu
	started bool              // guarded by mu
	fresh   chan struct{}     // a topic was added
	listen  *listener         // nil if it is switched off; written once before started
}

// A topic is one watched key.
type topic struct {
	key      string
	waiters  map[chan struct{}]struct{} // guarded by watches.mu
	seen     standing                   // by the poller alone
	polled   bool                       // seen is set
	listened bool                       // the listener hears of every change; guarded by watches.mu
}

// A standing is who holds a key, as far as a change of it shows that the key was
// sealed or released.
type standing struct {
	by   string // owner or session, "" if nobody
	done bool
}

// readRecords reads who holds keys by records alone.
func (s *Store) readRecords(ctx context.Context, topics []*topic) (map[string]standing, error) {
	now := make(map[string]standing, len(topics))
	err := s.do(ctx, "poll", func(conn *pgxpool.Conn) error {
		return readStandings(now)(conn.Query(ctx, s.watched, s.args(keysOf(topics))...))
	})
	return now, err
}

func keysOf(topics []*topic) [][]byte {
	keys := make([][]byte, len(topics))
	for i, tp := range topics {
		keys[i] = []byte(tp.key)
	}
	return keys
}

// readStandings puts the rows of watched.sql into now.
func readStandings(now map[string]standing) func(pgx.Rows, error) error {
	return func(rows pgx.Rows, err error) error {
		if err != nil {
			return err
		}
		var (
			key, owner bytea
			state      int16
		)
		_, err = pgx.ForEachRow(rows, []any{&key, &owner, &state}, func() error {
			now[string(key)] = standing{by: string(owner), done: state == done}
			return nil
		})
		return err
	}
}

// Watch implements [replay.Watcher]. The first call opens a connection of its own
// outside the pool, for LISTEN, unless that is switched off.
func (t *table) Watch(ctx context.Context, key string) (<-chan struct{}, func(), error) {
	return t.watches.add(ctx, key)
}

func (w *watches) add(ctx context.Context, key string) (<-chan struct{}, func(), error) {
	ch := make(chan struct{}, 1)
	w.mu.Lock()
	if err := w.start(); err != nil {
		w.mu.Unlock()
		return nil, nil, err
	}
	tp := w.topics[key]
	if tp == nil {
		tp = &topic{key: key, waiters: make(map[chan struct{}]struct{})}
		w.topics[key], w.names[payloadText(key)] = tp, tp
		select {
		case w.fresh <- struct{}{}:
		default:
		}
	}
	tp.waiters[ch] = struct{}{}
	listened := tp.listened
	w.mu.Unlock()

	stop := func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(tp.waiters, ch)
		if len(tp.waiters) == 0 && w.topics[key] == tp {
			delete(w.topics, key)
			delete(w.names, payloadText(key))
		}
	}
	if w.listen != nil && !listened {
		w.listen.mark(ctx, key)
	}
	return ch, stop, nil
}

// start starts the goroutines at the first watch. w.mu is held.
func (w *watches) start() error {
	t := w.table
	if t.isClosed() {
		return replay.ErrClosed
	}
	if w.started {
		return nil
	}
	w.started = true
	w.fresh = make(chan struct{}, 1)
	if !t.cfg.NoListen {
		w.listen = newListener(w)
		t.running.Go(w.listen.run)
	}
	t.running.Go(w.poll)
	return nil
}

// tell wakes those who wait for key.
func (w *watches) tell(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if tp := w.topics[key]; tp != nil {
		tp.wake()
	}
}

// tellAll wakes everybody.
func (w *watches) tellAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, tp := range w.topics {
		tp.wake()
	}
}

// wake wakes the waiters of tp. watches.mu is held.
func (tp *topic) wake() {
	for ch := range tp.waiters {
		select {
		case ch <- struct{}{}:
		default: // it has one that it has not seen yet
		}
	}
}

// poll looks at all watched keys now and then, and sleeps while there are none.
func (w *watches) poll() {
	t := w.table
	pause := pollFirst
	next := time.Now().Add(pause)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-t.life.Done():
			return
		case <-w.fresh:
			pause = pollFirst
			if soon := time.Now().Add(pause); next.IsZero() || soon.Before(next) {
				next = soon
				timer.Reset(pause)
			}
			continue
		case <-timer.C:
		}
		topics, heard := w.current()
		if len(topics) == 0 {
			next = time.Time{} // a fresh topic sets the timer
			continue
		}
		if err := w.pollOnce(t.life, topics); err != nil && !t.isClosed() {
			t.log.LogAttrs(t.life, slog.LevelDebug, "submitonce: cannot look at watched keys", slog.Any("error", err))
		}
		pause = min(pause*5/4, pollSlowest)
		if heard {
			pause = pollListening
		}
		next = time.Now().Add(pause)
		timer.Reset(pause)
	}
}

// current returns the topics, and whether the listener covers all of them.
func (w *watches) current() (topics []*topic, heard bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	heard = true
	for _, tp := range w.topics {
		topics = append(topics, tp)
		heard = heard && tp.listened
	}
	return topics, heard
}

func (w *watches) pollOnce(ctx context.Context, topics []*topic) error {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	now, err := w.read(ctx, topics)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, tp := range topics {
		is := now[tp.key]
		// Whoever waits for a key that nobody holds has missed something, if only a
		// claim that came and went between two looks.
		news := is.done || is.by == "" || tp.polled && is != tp.seen
		tp.seen, tp.polled = is, true
		if news {
			tp.wake()
		}
	}
	return nil
}
