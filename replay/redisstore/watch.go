package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/submitonce/submitonce/replay"
)

// Watch implements [replay.Watcher]. All watchers of a process share one
// connection, or in a cluster one for each node that has their keys, opened by
// the first. Watch returns when the server has confirmed the subscription. When
// a connection was lost, all its watchers are woken, since a message may have
// been lost with it.
func (s *Store) Watch(ctx context.Context, key string) (<-chan struct{}, func(), error) {
	if err := s.check(ctx); err != nil {
		return nil, nil, fmt.Errorf("redisstore: watch: %w", err)
	}
	name := s.name(key)
	h, err := s.hubs.of(ctx, name)
	if err != nil {
		return nil, nil, fmt.Errorf("redisstore: watch: %w", err)
	}
	changed, stop, err := h.watch(ctx, name)
	if err != nil {
		return nil, nil, fmt.Errorf("redisstore: watch: %w", err)
	}
	return changed, stop, nil
}

// hubs are the connections that messages come in by.
type hubs struct {
	client  redis.UniversalClient
	log     *slog.Logger
	ctx     context.Context // ends with the store
	running *sync.WaitGroup

	mu     sync.Mutex
	closed bool                           // guarded by mu
	hubs   map[redis.UniversalClient]*hub // guarded by mu; by node
}

// of returns the hub that hears of name.
func (hs *hubs) of(ctx context.Context, name string) (*hub, error) {
	node, sharded := hs.client, false
	if cluster, ok := hs.client.(*redis.ClusterClient); ok {
		master, err := cluster.MasterForKey(ctx, name)
		if err != nil {
			return nil, err
		}
		node, sharded = master, true
	}
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if hs.closed {
		return nil, replay.ErrClosed
	}
	h := hs.hubs[node]
	if h == nil {
		h = &hub{log: hs.log, sharded: sharded, topics: make(map[string]*topic)}
		if sharded {
			h.conn = node.SSubscribe(hs.ctx)
		} else {
			h.conn = node.Subscribe(hs.ctx)
		}
		hs.hubs[node] = h
		hs.running.Go(func() { h.listen(hs.ctx) })
	}
	return h, nil
}

func (hs *hubs) close() {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.closed = true
	for _, h := range hs.hubs {
		_ = h.conn.Close() // it was only read
	}
}

// A hub is one connection and who listens to it.
type hub struct {
	conn    *redis.PubSub
	sharded bool
	log     *slog.Logger

	mu     sync.Mutex
	topics map[string]*topic // guarded by mu
}

// A topic is a name that is being watched.
type topic struct {
	confirmed chan struct{} // closed when the server has confirmed the subscription
	known     bool          // confirmed is closed; guarded by the hub's mu
	watchers  map[chan struct{}]bool
}

func (h *hub) watch(ctx context.Context, name string) (<-chan struct{}, func(), error) {
	c := make(chan struct{}, 1)
	h.mu.Lock()
	tp, old := h.topics[name]
	if !old {
		tp = &topic{confirmed: make(chan struct{}), watchers: make(map[chan struct{}]bool)}
		h.topics[name] = tp
	}
	tp.watchers[c] = true
	h.mu.Unlock()
	stop := func() { h.leave(name, tp, c) }
	if !old {
		if err := h.subscribe(ctx, name); err != nil {
			stop()
			return nil, nil, err
		}
	}
	select {
	case <-tp.confirmed:
		return c, stop, nil
	case <-ctx.Done():
		stop()
		return nil, nil, ctx.Err()
	}
}

func (h *hub) subscribe(ctx context.Context, name string) error {
	if h.sharded {
		return h.conn.SSubscribe(ctx, name)
	}
	return h.conn.Subscribe(ctx, name)
}

// leave ends one watcher's interest, and the subscription with the last.
func (h *hub) leave(name string, tp *topic, c chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !tp.watchers[c] {
		return
	}
	delete(tp.watchers, c)
	if len(tp.watchers) > 0 || h.topics[name] != tp {
		return
	}
	delete(h.topics, name)
	// Under mu, so that the commands of the next watcher follow this one.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if h.sharded {
		_ = h.conn.SUnsubscribe(ctx, name) // a message too many does no harm
	} else {
		_ = h.conn.Unsubscribe(ctx, name)
	}
}

// listen hands out messages until the store is closed.
func (h *hub) listen(ctx context.Context) {
	failures := 0
	for {
		msg, err := h.conn.Receive(ctx)
		switch m := msg.(type) {
		case *redis.Subscription:
			failures = 0
			if m.Kind == "subscribe" || m.Kind == "ssubscribe" {
				h.confirm(m.Channel)
			} else if m.Kind == "sunsubscribe" && m.Count >= 0 {
				h.wake(m.Channel) // the slot may have moved: the poll goes on
			}
		case *redis.Message:
			h.wake(m.Channel)
		}
		if err == nil {
			continue
		}
		if ctx.Err() != nil || errors.Is(err, redis.ErrClosed) {
			return
		}
		// go-redis connects anew with the next Receive and subscribes again.
		h.wakeAll()
		if failures++; failures > 1 {
			pause(ctx, min(time.Duration(failures)*50*time.Millisecond, time.Second))
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (h *hub) confirm(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	tp := h.topics[name]
	if tp == nil {
		return
	}
	if !tp.known {
		tp.known = true
		close(tp.confirmed)
		return
	}
	tp.wake() // subscribed anew, after a connection was lost
}

func (h *hub) wake(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if tp := h.topics[name]; tp != nil {
		tp.wake()
	}
}

func (h *hub) wakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, tp := range h.topics {
		tp.wake()
	}
}

// wake tells the topic's watchers. The caller holds the hub's mu.
func (tp *topic) wake() {
	for c := range tp.watchers {
		select {
		case c <- struct{}{}:
		default: // it has been told already
		}
	}
}
