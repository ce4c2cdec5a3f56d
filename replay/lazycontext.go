package replay

import (
	"context"
	"sync"
	"time"
)

// A lazyContext has its parent's values, none of its cancellation, and a
// deadline of its own. Most handlers and in-memory stores never ask for Done,
// so the channel and the timer behind it are only made when somebody does.
type lazyContext struct {
	parent   context.Context // one without cancellation, which its Value hides too
	deadline time.Time       // zero: none

	mu     sync.Mutex
	inner  context.Context // made by the first Done; guarded by mu
	cancel context.CancelCauseFunc
	stop   context.CancelFunc // ends the deadline's timer
	ended  error              // why cancelled, if before inner was made
	late   bool               // it has said that its deadline has passed
}

// An uncancelled context is what [context.WithoutCancel] makes of its parent, but
// needs no memory of its own.
type uncancelled struct{ parent context.Context }

func (uncancelled) Deadline() (time.Time, bool) { return time.Time{}, false }
func (uncancelled) Done() <-chan struct{}       { return nil }
func (uncancelled) Err() error                  { return nil }
func (c *uncancelled) Value(key any) any        { return context.WithoutCancel(c.parent).Value(key) }

// begin makes c a context. A zero deadline is none.
func (c *lazyContext) begin(parent context.Context, deadline time.Time) {
	c.parent, c.deadline = parent, deadline
}

func (c *lazyContext) Deadline() (time.Time, bool) { return c.deadline, !c.deadline.IsZero() }

func (c *lazyContext) Done() <-chan struct{} { return c.realize().Done() }

func (c *lazyContext) realize() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inner == nil {
		inner, cancel := context.WithCancelCause(c.parent)
		c.inner, c.cancel = inner, cancel
		if c.ended != nil && !c.late {
			cancel(c.ended) // before the deadline can have its say
		}
		if !c.deadline.IsZero() {
			c.inner, c.stop = context.WithDeadline(inner, c.deadline)
		}
	}
	return c.inner
}

func (c *lazyContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inner != nil {
		return c.inner.Err()
	}
	if c.ended == nil && !c.deadline.IsZero() && time.Until(c.deadline) <= 0 {
		c.ended, c.late = context.DeadlineExceeded, true // and stays so
	}
	switch {
	case c.late:
		return context.DeadlineExceeded
	case c.ended != nil:
		return context.Canceled
	}
	return nil
}

// Value looks into the inner context where there is one, so that package
// context finds its own cancelCtx there and children cost no goroutine. A cause
// that was given is found there, too, even if nobody has asked for Done.
func (c *lazyContext) Value(key any) any {
	c.mu.Lock()
	inner, caused := c.inner, c.ended != nil
	c.mu.Unlock()
	switch {
	case inner != nil:
		return inner.Value(key)
	case caused:
		return c.realize().Value(key)
	}
	return c.parent.Value(key)
}

// end cancels the context with a cause and frees its timer. Only the first call
// of it counts.
func (c *lazyContext) end(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended == nil {
		c.ended = cause
	}
	if c.inner != nil {
		c.cancel(cause)
		if c.stop != nil {
			c.stop()
		}
	}
}
