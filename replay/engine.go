package replay

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// An engine brings a task to one outcome per key: claim, run, seal, and for all
// others wait and replay. It knows nothing of HTTP; [Guard] and [Once] are built
// on it.
type engine struct {
	store   Store
	flights flights

	wait           time.Duration
	lease          time.Duration
	retention      time.Duration
	handlerTimeout time.Duration
	storeTimeout   time.Duration
	sealTimeout    time.Duration
	reruns         int

	log     *slog.Logger
	observe observer // nil if nobody listens
}

// A task is what the winner of a claim does.
type task interface {
	// run does the work. It is called at most once for each won claim.
	run(ctx *runContext) result

	// rewind makes the task ready to run once more after its work was undone. It
	// reports false if that can't be done.
	rewind() bool

	// until returns when the work has to end for the caller's sake; zero: whenever
	// it does.
	until() time.Time

	// event fills in what the task knows of itself.
	event(*Event)
}

// An attempt is what one try at a key needs. It is one piece of memory, because
// most requests are the first with their key and need all of it.
type attempt struct {
	base     uncancelled
	flight   flight
	run      runContext
	claiming lazyContext
	sealing  lazyContext
}

// A result is what a run came to.
type result struct {
	seal     bool   // keep response for all that follow
	response []byte // not nil if seal; the task's again when do returns
	status   int
}

// An outcome is what a caller of do gets.
type outcome struct {
	ran      bool   // the caller's own task ran, and its answer is the one to give
	response []byte // else: the response of the record that stands
}

// do brings t to its outcome under key. It blocks while another owner works,
// until the wait has run out or ctx ends.
// The request came at began.
func (e *engine) do(ctx context.Context, key string, t task, began time.Time) (outcome, error) {
	var (
		shard = e.flights.shard(key)
		own   = new(attempt)
		now   = began
	)
	for {
		f, leads := shard.join(key, &own.flight)
		if leads {
			return e.lead(ctx, shard, own, t, began, now)
		}
		if err := e.follow(ctx, f, began); err != nil {
			return outcome{}, err
		}
		if f.response != nil || f.err != nil {
			e.waited(ctx, key, t, began)
			return outcome{response: f.response}, f.err
		}
		now = time.Now()
	}
}

// follow waits until f has landed.
func (e *engine) follow(ctx context.Context, f *flight, began time.Time) error {
	timer := time.NewTimer(e.wait - time.Since(began))
	defer timer.Stop()
	select {
	case <-f.done:
		return nil
	case <-timer.C:
		return pendingFor(time.Until(time.Unix(0, f.leaseEnd.Load())))
	case <-ctx.Done():
		return pendingFor(0)
	}
}

// pendingFor gives up waiting. An owner whose lease is not known is at work, so
// trying again soon is worth while.
func pendingFor(leaseLeft time.Duration) error {
	return &PendingError{RetryAfter: max(leaseLeft, time.Second)}
}

// lead asks the store for the flight's key, and lands the flight with what came
// of it, even if the task panics.
func (e *engine) lead(ctx context.Context, s *flightShard, a *attempt, t task, began, now time.Time) (o outcome, err error) {
	var l landing // zero: whoever waits competes again
	f := &a.flight
	defer func() { s.land(f, l) }()

	a.base.parent = ctx
	base := &a.base
	for reruns := 0; ; {
		rec, hold, at, err := e.win(ctx, base, f, &a.claiming, t, began, now)
		if err != nil {
			if isStoreError(err) {
				l.err = err
			}
			return outcome{}, err
		}
		if hold == nil {
			l.response = rec.Response
			return outcome{response: rec.Response}, nil
		}
		res, err := e.own(base, s, f, a, t, rec, hold, at)
		switch {
		case err == nil && res.seal:
			l.response = res.response
			return outcome{ran: true}, nil
		case err == nil:
			return outcome{ran: true}, nil
		case errors.Is(err, ErrLeaseLost):
			e.stopBeat(s, f)
			return e.superseded(ctx, base, f, t, res, &l)
		case errors.Is(err, ErrUndone) && reruns < e.reruns && t.rewind():
			e.stopBeat(s, f)
			reruns++
			a, now = new(attempt), time.Now()
			began = now
		case errors.Is(err, ErrUndone) && !res.seal:
			return outcome{ran: true}, nil // its answer says that it has failed
		default:
			l.err = err
			return outcome{}, err
		}
	}
}
