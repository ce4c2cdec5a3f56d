package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/submitonce/submitonce/replay"
)

// quiet is how long nothing has to be heard on a line before it is closed, or
// while somebody watches, before it is tried.
const quiet = 30 * time.Second

// A line is a connection that messages come in by. Two goroutines serve it: one
// hears, the other speaks, so that nobody who watches waits for the network with
// a lock held.
//
// go-redis would repair a lost connection behind our back, and might not have
// subscribed to all names then. So each connection is thrown away at its first
// error, and what is watched is subscribed on a new one.
type line struct {
	e       *ears
	node    redis.UniversalClient
	sharded bool
	kick    chan struct{} // there is something to tell the server

	// These are guarded by the ears' mu.
	conn    *redis.PubSub
	todo    []*topic // whose subscriptions have to be looked at
	resting error    // why it is not even tried to connect, for a moment
}

// tend has a topic's subscription looked at. The caller holds the ears' mu.
func (l *line) tend(tp *topic) {
	l.todo = append(l.todo, tp)
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// hangUp closes the line's connection, so that run makes another.
func (l *line) hangUp() {
	l.e.mu.Lock()
	conn := l.conn
	l.e.mu.Unlock()
	if conn != nil {
		_ = conn.Close() // it may be closed already
	}
}

// run keeps the line open while somebody watches, until the store is closed.
func (l *line) run() {
	ctx := l.e.ctx
	for failures := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-l.kick: // somebody watches
		}
		began := time.Now()
		err := l.open(ctx)
		if err == nil || ctx.Err() != nil {
			continue
		}
		if failures++; time.Since(began) > 5*time.Second {
			failures = 1
		}
		if l.lost(ctx, fmt.Errorf("%w: %w", errLineLost, err), failures > 3) {
			return
		}
		if failures > 1 {
			sleep(ctx, min(time.Duration(failures)*20*time.Millisecond, time.Second))
			l.rested()
		}
	}
}

func (l *line) rested() {
	l.e.mu.Lock()
	defer l.e.mu.Unlock()
	l.resting = nil
}

// open connects and hears until an error, which is nil if nobody watches any
// more.
func (l *line) open(ctx context.Context) error {
	conn := l.node.Subscribe(ctx) // it connects later
	if l.sharded {
		conn = l.node.SSubscribe(ctx)
	}
	l.e.mu.Lock()
	closed := l.e.closed // and then conn would not be found by close
	l.conn = conn
	l.e.mu.Unlock()
	if closed {
		return replay.ErrClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	var speaking sync.WaitGroup
	defer speaking.Wait()
	defer func() { _ = conn.Close() }() // it may be closed already
	defer cancel()
	l.again() // what the kick that woke run was for
	speaking.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-l.kick:
			}
			if err := l.speak(ctx, conn); err != nil {
				_ = conn.Close() // so that hearing fails
				return
			}
		}
	})
	tried := false
	for {
		msg, err := conn.ReceiveTimeout(ctx, quiet)
		var failure net.Error
		switch {
		case err == nil:
			tried = false
			if !l.e.heard(l, msg) {
				return errOutOfStep
			}
		case !errors.As(err, &failure) || !failure.Timeout() || tried:
			return err
		case l.idle():
			return nil
		default:
			tried = true
			if err := conn.Ping(ctx); err != nil {
				return err
			}
		}
	}
}

var errOutOfStep = errors.New("the server has ended a subscription")

func (l *line) again() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// speak tells the server what has come up.
func (l *line) speak(ctx context.Context, conn *redis.PubSub) error {
	var add, end []string
	l.e.mu.Lock()
	for _, tp := range l.todo {
		switch {
		case tp.line != l:
		case tp.state == fresh && len(tp.watchers) == 0:
			l.e.drop(tp)
		case tp.state == fresh:
			tp.state = subscribed
			add = append(add, tp.name)
		case tp.state == live && len(tp.watchers) == 0:
			tp.state, tp.confirmed = leaving, make(chan struct{})
			end = append(end, tp.name)
		}
	}
	l.todo = l.todo[:0]
	l.e.mu.Unlock()
	if !l.sharded {
		var err error
		if len(add) > 0 {
			err = conn.Subscribe(ctx, add...)
		}
		if err == nil && len(end) > 0 {
			err = conn.Unsubscribe(ctx, end...)
		}
		return err
	}
	// The names of one command would have to be in one slot.
	for _, name := range add {
		if err := conn.SSubscribe(ctx, name); err != nil {
			return err
		}
	}
	for _, name := range end {
		if err := conn.SUnsubscribe(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// idle reports whether nobody watches.
func (l *line) idle() bool {
	l.e.mu.Lock()
	defer l.e.mu.Unlock()
	for _, tp := range l.e.topics {
		if tp.line == l {
			return false
		}
	}
	return true
}

// lost wakes all who watch by the line, and has their names subscribed anew, in a
// cluster perhaps by other lines. It reports whether the line has ended.
func (l *line) lost(ctx context.Context, err error, rest bool) (ended bool) {
	e := l.e
	cluster, _ := e.client.(*redis.ClusterClient)
	if cluster != nil {
		cluster.ReloadState(ctx) // in the background; a line that is wrong again comes back here
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	l.todo = nil
	ended = cluster != nil
	for _, tp := range e.topics {
		if tp.line != l {
			continue
		}
		if tp.state == live {
			tp.confirmed, tp.again = make(chan struct{}), true
			tp.wake()
		}
		tp.state = fresh
		if !tp.again {
			tp.fail(err)
		}
		if tp.err != nil || len(tp.watchers) == 0 {
			e.drop(tp)
			continue
		}
		node := l.node
		if cluster != nil {
			if master, err := e.node(ctx, tp.name); err == nil {
				node = master
			}
		}
		if node != l.node {
			e.join(tp, node)
			continue
		}
		ended = false
		l.tend(tp)
	}
	switch {
	case ended:
		delete(e.lines, l.node)
	case rest:
		l.resting = err
	}
	return ended
}
