package replay

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// A lazyContext has its parent's values, none of its cancellation, and a
// deadline of its own. Most handlers and in-memory stores never ask for Done,
// so the channel and the timer behind it are only made when somebody does.
type lazyContext struct {
	parent   context.Context // one without cancellation, which its Value hides too
	deadline time.Time       // zero: none
	fate     atomic.Pointer[fate]
}

// A fate is what has become of a lazyContext; nil while it runs without anybody
// listening. One that has ended can still get an inner context.
type fate struct {
	inner  context.Context // made by the first Done; it has the say from then on
	cancel context.CancelCauseFunc
	stop   context.CancelFunc // ends the deadline's timer; nil if there is none

	err   error // what Err says, where there is no inner
	cause error // why it was ended, if it was not the deadline
}

// endedBy is the fate of a context that is ended with a cause.
func endedBy(cause error) *fate { return &fate{err: context.Canceled, cause: cause} }

// These end most contexts, and are never changed.
var (
	callOver    = endedBy(errors.New("replay: store call over"))
	handlerOver = endedBy(context.Canceled)
	tooLate     = &fate{err: context.DeadlineExceeded}
)

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
	for {
		before := c.fate.Load()
		if before != nil && before.inner != nil {
			return before.inner
		}
		f := &fate{}
		f.inner, f.cancel = context.WithCancelCause(c.parent)
		if before != nil && before.cause != nil {
			f.cancel(before.cause) // before the deadline can have its say
		}
		if !c.deadline.IsZero() {
			f.inner, f.stop = context.WithDeadline(f.inner, c.deadline)
		}
		if c.fate.CompareAndSwap(before, f) {
			return f.inner
		}
		f.end(context.Canceled) // another one was first
	}
}

func (c *lazyContext) Err() error {
	f := c.fate.Load()
	if f == nil {
		if c.deadline.IsZero() || time.Until(c.deadline) > 0 {
			return nil
		}
		c.fate.CompareAndSwap(nil, tooLate) // and stays so
		f = c.fate.Load()
	}
	if f.inner != nil {
		return f.inner.Err()
	}
	return f.err
}

// Value looks into the inner context where there is one, so that package
// context finds its own cancelCtx there and children cost no goroutine. A cause
// that was given is found there, too, even if nobody has asked for Done.
func (c *lazyContext) Value(key any) any {
	if c.fate.Load() == nil {
		return c.parent.Value(key)
	}
	return c.realize().Value(key)
}

// end cancels the context with f's cause and frees its timer. Only the first call
// of it counts.
func (c *lazyContext) end(f *fate) {
	if !c.fate.CompareAndSwap(nil, f) {
		if now := c.fate.Load(); now.inner != nil {
			now.end(f.cause)
		}
	}
}

// end cancels the inner context.
func (f *fate) end(cause error) {
	f.cancel(cause)
	if f.stop != nil {
		f.stop()
	}
}
