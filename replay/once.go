package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// A Once does a piece of work once per key and answers every repetition with
// the first result, as a [Guard] does for requests, but without HTTP: for jobs,
// message consumers and scheduled tasks. It is safe for concurrent use. Make one
// per kind of work; the store is what is shared.
type Once struct {
	engine engine
	name   string
}

// A OnceConfig says how a [Once] works. Only Name has to be set.
type OnceConfig struct {
	// Name is the kind of work, as "send receipt". It keeps the keys apart from
	// those of other kinds in the same store, so it must stay the same for as long
	// as results are kept.
	Name string

	// Lease is how long a claim outlives its owner's last sign of life. The owner
	// extends it while the work goes on. At least 100 ms. The default is 30
	// seconds.
	Lease time.Duration

	// Retention is how long a result is kept, and so how late a repetition may
	// come. The default is 7 days.
	Retention time.Duration

	// Wait is how long Do waits for another owner's result. The default is 30
	// seconds; negative means not at all.
	Wait time.Duration

	// Timeout bounds the work: its context ends, and the lease is no longer
	// extended. The default is 5 minutes; negative means no bound.
	Timeout time.Duration

	// StoreTimeout bounds each call of the store. The default is 800 ms.
	StoreTimeout time.Duration

	// Reruns is how often work is run again whose transaction has lost a conflict
	// with another one, at its commit or at one of its statements. The default is
	// 0: Do returns an error that is ErrUndone for a commit that fails, and the
	// work's own for a statement.
	Reruns int

	// Observe is told of each step. It must be quick and safe for concurrent use.
	// The default is nil: nobody is told.
	Observe func(ctx context.Context, e Event)

	// Logger hears what an operator must know. The default is slog.Default().
	Logger *slog.Logger
}

// NewOnce returns a Once over store, or all that is wrong with c.
func NewOnce(store Store, c OnceConfig) (*Once, error) {
	t := timing{
		Wait: c.Wait, Lease: c.Lease, Retention: c.Retention,
		HandlerTimeout: c.Timeout, StoreTimeout: c.StoreTimeout,
	}
	var unnamed error
	if c.Name == "" {
		unnamed = errors.New("replay: OnceConfig.Name is empty: name the kind of work, so that another kind may use the same keys")
	}
	if err := errors.Join(unnamed, t.check(store, "OnceConfig"), checkReruns(c.Reruns, "OnceConfig")); err != nil {
		return nil, err
	}
	o := &Once{name: c.Name}
	t.apply(&o.engine, store, c.Logger, c.Observe)
	o.engine.reruns = c.Reruns
	return o, nil
}

// Do runs work unless it has been done under key, and returns the result that
// stands and whether it is a replay. Work that returns an error is not an
// outcome, not even after [Seal]: nothing is kept, Do returns the error as it is,
// and the next Do runs again. While another owner works, Do waits and then returns its result.
//
// The key may be any string that is not empty; a long one, or one of other
// characters than printable ASCII, is stored as its SHA-256. [Attempt] and [Key]
// work in work's context, which has ctx's values but not its cancellation: once
// begun, work is brought to an end. A panic of work passes through after the
// release.
//
// Errors: [ErrMissingKey]; a [*PendingError] if another owner is still at it
// after the wait, or ctx ends in the wait; [ErrStoreAway] if the store does not
// answer, and then work has not run, or has run in a transaction that may not
// have committed.
func (o *Once) Do(ctx context.Context, key string, work func(ctx context.Context) ([]byte, error)) (value []byte, replayed bool, err error) {
	if key == "" {
		return nil, false, fmt.Errorf("%w: Once.Do needs one", ErrMissingKey)
	}
	if err := ctx.Err(); err != nil {
		return nil, false, fmt.Errorf("replay: do: %w", context.Cause(ctx))
	}
	name := jobKey(o.name, key)
	if outer := running(ctx); outer != nil && outer.key == name {
		return nil, false, fmt.Errorf("%w: Do was called inside its own work", pendingFor(0))
	}
	j := job{work: work}
	out, err := o.engine.do(ctx, name, &j, time.Now())
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, false, fmt.Errorf("%w: %w", err, context.Cause(ctx))
	case err != nil:
		return nil, false, err
	case out.ran:
		return j.value, false, j.err
	case len(out.response) == 0 || out.response[0] != jobRecord:
		return nil, false, fmt.Errorf("%w: not the result of a Once", ErrUnreadable)
	}
	return bytes.Clone(out.response[1:]), true, nil
}

// A job is the task of one Do.
type job struct {
	work  func(ctx context.Context) ([]byte, error)
	value []byte
	err   error
}

func (j *job) run(ctx *runContext) result {
	j.value, j.err = j.work(ctx)
	if v := verdict(ctx.verdict.Load()); v == releaseVerdict || j.err != nil {
		return result{}
	}
	return result{seal: true, response: append([]byte{jobRecord}, j.value...)}
}

func (j *job) rewind() bool { return true }

func (j *job) until() time.Time { return time.Time{} }

func (j *job) event(*Event) {}
