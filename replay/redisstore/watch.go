package redisstore

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/submitonce/submitonce/replay"
)

// confirmWithin is how long a server may take to confirm a subscription. Whoever
// watches would rather poll than wait longer.
const confirmWithin = time.Second

// Watch implements [replay.Watcher]. All watchers of a process share one
// connection, or in a cluster one for each node that has their keys, opened by
// the first and closed when nobody has watched for half a minute. Watch returns
// when the server has confirmed the subscription, and fails if it has not within
// a second. When a connection is lost, all its watchers are woken, since a
// message may have been lost with it, and subscribed anew.
func (s *Store) Watch(ctx context.Context, key string) (<-chan struct{}, func(), error) {
	name := s.name(key)
	w, err := call(ctx, s, "watch", func() (*watcher, error) {
		w, err := s.ears.watch(ctx, name)
		for range 2 { // more, if the connection was lost, perhaps long ago
			if errors.Is(err, errLineLost) {
				w, err = s.ears.watch(ctx, name)
			}
		}
		return w, err
	})
	if err != nil {
		return nil, nil, err
	}
	return w.changed, func() { s.ears.leave(w) }, nil
}

// ears hear what the server says of the names that are watched.
type ears struct {
	client  redis.UniversalClient
	ctx     context.Context // ends with the store
	running *sync.WaitGroup

	mu     sync.Mutex
	closed bool                            // guarded by mu
	lines  map[redis.UniversalClient]*line // guarded by mu; by node
	topics map[string]*topic               // guarded by mu
}

func newEars(ctx context.Context, client redis.UniversalClient, running *sync.WaitGroup) *ears {
	return &ears{
		client: client, ctx: ctx, running: running,
		lines: make(map[redis.UniversalClient]*line), topics: make(map[string]*topic),
	}
}

// A topic is a name that somebody watches, or did a moment ago. All of it is
// guarded by the ears' mu.
type topic struct {
	name      string
	line      *line
	state     subscription
	confirmed chan struct{} // closed when it goes live, or err is set
	err       error
	again     bool // it was live by a connection that is lost
	watchers  map[*watcher]bool
}

// A subscription says how far a topic has come. The server is never told
// anything while its answer to the last is out, so that answers cannot be taken
// for others.
type subscription int

const (
	fresh      subscription = iota // the server knows nothing of it
	subscribed                     // the server has been told
	live                           // and has confirmed
	leaving                        // the server has been told that it is over
)

type watcher struct {
	topic   *topic
	changed chan struct{}
}

func (e *ears) watch(ctx context.Context, name string) (*watcher, error) {
	node, err := e.node(ctx, name)
	if err != nil {
		return nil, err
	}
	w := &watcher{changed: make(chan struct{}, 1)}
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil, replay.ErrClosed
	}
	tp := e.topics[name]
	if tp == nil {
		tp = &topic{name: name, confirmed: make(chan struct{}), watchers: make(map[*watcher]bool)}
		e.topics[name] = tp
		e.join(tp, node)
	}
	w.topic = tp
	tp.watchers[w] = true
	l, confirmed, err := tp.line, tp.confirmed, tp.line.resting
	e.mu.Unlock()
	if err != nil {
		e.leave(w)
		return nil, err
	}

	timer := time.NewTimer(confirmWithin)
	defer timer.Stop()
	select {
	case <-confirmed:
		e.mu.Lock()
		err = tp.err
		e.mu.Unlock()
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		l.hangUp() // the line is dead, for all that anybody knows
		err = errNotConfirmed
	}
	if err != nil {
		e.leave(w)
		return nil, err
	}
	return w, nil
}

var (
	errNotConfirmed = errors.New("the server has not confirmed the subscription in time")
	errLineLost     = errors.New("the connection was lost")
)

// leave ends a watcher's interest, and the subscription with the last.
func (e *ears) leave(w *watcher) {
	e.mu.Lock()
	defer e.mu.Unlock()
	tp := w.topic
	if !tp.watchers[w] {
		return
	}
	delete(tp.watchers, w)
	if len(tp.watchers) == 0 && tp.line != nil {
		tp.line.tend(tp)
	}
}

// node returns the client of the server that hears of name.
func (e *ears) node(ctx context.Context, name string) (redis.UniversalClient, error) {
	if cluster, ok := e.client.(*redis.ClusterClient); ok {
		return cluster.MasterForKey(ctx, name)
	}
	return e.client, nil
}

// join gives a topic to the line of its node. The caller holds mu.
func (e *ears) join(tp *topic, node redis.UniversalClient) {
	l := e.lines[node]
	if l == nil {
		_, sharded := e.client.(*redis.ClusterClient)
		l = &line{e: e, node: node, sharded: sharded, kick: make(chan struct{}, 1)}
		e.lines[node] = l
		e.running.Go(l.run)
	}
	tp.line = l
	l.tend(tp)
}

// drop forgets a topic. The caller holds mu.
func (e *ears) drop(tp *topic) {
	tp.line = nil
	if e.topics[tp.name] == tp {
		delete(e.topics, tp.name)
	}
}

func (e *ears) close() {
	e.mu.Lock()
	e.closed = true
	for _, tp := range e.topics {
		tp.fail(replay.ErrClosed)
	}
	lines := slices.Collect(maps.Values(e.lines))
	e.mu.Unlock()
	for _, l := range lines {
		l.hangUp()
	}
}

// heard takes a message from a line. It reports whether the message belongs to
// what the line has asked for.
func (e *ears) heard(l *line, msg any) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch m := msg.(type) {
	case *redis.Message:
		if tp := e.topics[m.Channel]; tp != nil {
			tp.wake()
		}
	case *redis.Subscription:
		tp := e.topics[m.Channel]
		if tp == nil || tp.line != l {
			return false
		}
		switch began := m.Kind == "subscribe" || m.Kind == "ssubscribe"; {
		case began && tp.state == subscribed:
			tp.state = live
			close(tp.confirmed)
			if tp.again {
				tp.again = false
				tp.wake() // a message may have been lost meanwhile
			}
		case !began && tp.state == leaving:
			tp.state = fresh
		default:
			return false // a slot has moved to another node
		}
		l.tend(tp)
	}
	return true
}

// fail sends those away who wait for the subscription. The caller holds mu.
func (tp *topic) fail(err error) {
	if tp.state != live && tp.err == nil {
		tp.err = err
		close(tp.confirmed)
	}
}

// wake tells the topic's watchers. The caller holds mu.
func (tp *topic) wake() {
	for w := range tp.watchers {
		select {
		case w.changed <- struct{}{}:
		default: // it has been told already
		}
	}
}
