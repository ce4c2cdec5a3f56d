package replay

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// errCallOver is why the context of a store call ends when it has returned.
var errCallOver = errors.New("replay: store call over")

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

	// event fills in what the task knows of itself.
	event(*Event)
}

// An attempt is what one try at a key needs. It is one piece of memory, because
// most requests are the first with their key and need all of it.
type attempt struct {
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

	base := context.WithoutCancel(ctx)
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
			return e.superseded(ctx, base, f, t, res, &l)
		case errors.Is(err, ErrUndone) && reruns < e.reruns && t.rewind():
			reruns++
			a, now = new(attempt), time.Now()
			began = now
		default:
			l.err = err
			return outcome{}, err
		}
	}
}

// win claims the flight's key. While another owner holds it, it waits for its
// outcome. It returns a hold, or the Done record that stands.
//
// The request came at began. The first claim uses call as its context.
//
// It returns when it made the claim that it won, to the caller's disadvantage:
// before the store was asked.
func (e *engine) win(ctx, base context.Context, f *flight, call *lazyContext, t task, began, now time.Time) (Record, Hold, time.Time, error) {
	claim := Claim{Key: f.key, Lease: e.lease}
	_, _ = rand.Read(claim.Owner[:]) // never fails: the runtime ends the program instead
	call.begin(base, now.Add(e.storeTimeout))
	rec, hold, err := e.claim(call, claim, t)
	if err != nil || hold != nil || rec.State == Done {
		return rec, hold, now, err
	}
	defer func() {
		if err == nil {
			e.waited(ctx, f.key, t, began)
		}
	}()

	var changed <-chan struct{}
	poll, slowest := 10*time.Millisecond, 250*time.Millisecond
	if w, ok := e.store.(Watcher); ok {
		c, stop, werr := w.Watch(base, f.key)
		if werr == nil {
			defer stop()
			changed = c
			poll, slowest = 50*time.Millisecond, time.Second // for the message that gets lost
		} else {
			e.failed(base, f.key, t, "watch", werr)
		}
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	budget := time.NewTimer(e.wait - time.Since(began))
	defer budget.Stop()
	for {
		now = time.Now()
		rec, hold, err = e.claim(e.storeContext(base, e.storeTimeout), claim, t)
		if err != nil || hold != nil || rec.State == Done {
			return rec, hold, now, err
		}
		pause := poll
		if rec.LeaseLeft > 0 {
			f.leaseEnd.Store(time.Now().Add(rec.LeaseLeft).UnixNano())
			pause = min(pause, rec.LeaseLeft+time.Millisecond)
		}
		timer.Reset(pause)
		select {
		case <-changed:
		case <-timer.C:
			poll = min(poll*3/2, slowest)
		case <-budget.C:
			err = pendingFor(rec.LeaseLeft)
			return rec, nil, now, err
		case <-ctx.Done():
			err = pendingFor(rec.LeaseLeft)
			return rec, nil, now, err
		}
	}
}

func (e *engine) claim(ctx *lazyContext, c Claim, t task) (Record, Hold, error) {
	defer ctx.end(errCallOver)
	rec, hold, err := e.store.Claim(ctx, c)
	if err != nil {
		e.failed(ctx.parent, c.Key, t, "claim", err)
		return rec, nil, fmt.Errorf("%w: claim: %w", ErrStoreAway, err)
	}
	return rec, hold, nil
}

// own runs the task under a hold and ends the hold, whatever happens.
func (e *engine) own(base context.Context, s *flightShard, f *flight, a *attempt, t task, rec Record, hold Hold, now time.Time) (res result, err error) {
	c := &a.run
	c.key, c.attempt = f.key, rec.Attempt
	parent, deadline := base, time.Time{}
	if e.handlerTimeout > 0 {
		deadline = now.Add(e.handlerTimeout)
	}
	lender, lends := hold.(Lender)
	if lends {
		parent = lender.Lend(base)
	}
	c.begin(parent, deadline)
	kind := Claimed
	if rec.Attempt > 1 {
		kind = TakenOver
	}
	e.tell(c, t, Event{Kind: kind, Key: f.key, Attempt: rec.Attempt})

	e.startBeat(s, f, hold, c, now)
	returned := false
	defer func() {
		e.stopBeat(s, f)
		c.end(context.Canceled)
		if !returned { // a panic or Goexit, which goes on to the caller
			e.release(base, f.key, t, hold, result{})
		}
	}()
	res = t.run(c)
	returned = true

	if !res.seal {
		e.release(base, f.key, t, hold, res)
		return res, nil
	}
	switch err = e.seal(base, f.key, &a.sealing, t, hold, lends, res); {
	case err == nil:
		e.tell(base, t, Event{Kind: Sealed, Key: f.key, Attempt: rec.Attempt, Status: res.status})
		return res, nil
	case lends:
		// Nothing is kept: what the hold lent goes back.
		ctx := e.storeContext(base, e.storeTimeout)
		defer ctx.end(errCallOver)
		_ = hold.Release(ctx) // a hold that has ended has nothing to release
		return res, err
	case errors.Is(err, ErrLeaseLost):
		return res, err
	}
	// The effect has happened and cannot be unmade, so the client hears of it;
	// only a later duplicate will not.
	e.log.LogAttrs(base, slog.LevelError, "submitonce: outcome could not be stored; a retry may run again",
		slog.String("key", f.key), slog.Int("status", res.status), slog.Any("error", err))
	e.tell(base, t, Event{Kind: SealLost, Key: f.key, Attempt: rec.Attempt, Status: res.status, Err: err})
	return res, nil
}

// seal stores the response, trying again within the seal timeout while the
// store is away. What a Lender could not commit is not tried again: its work may
// be gone. The first try uses call as its context.
func (e *engine) seal(base context.Context, key string, call *lazyContext, t task, hold Hold, lends bool, res result) error {
	limit := e.storeTimeout
	if lends {
		limit = e.sealTimeout
	}
	now := time.Now()
	end := now.Add(e.sealTimeout)
	call.begin(base, now.Add(limit))
	for pause := 20 * time.Millisecond; ; pause *= 2 {
		err := hold.Seal(call, res.response, e.retention)
		call.end(errCallOver)
		if err == nil || errors.Is(err, ErrLeaseLost) {
			return err
		}
		e.failed(base, key, t, "seal", err)
		if lends {
			return fmt.Errorf("%w: seal: %w", ErrStoreAway, err)
		}
		if time.Now().Add(pause).After(end) {
			return fmt.Errorf("seal: %w", err)
		}
		time.Sleep(pause)
		call = e.storeContext(base, limit)
	}
}

func (e *engine) release(base context.Context, key string, t task, hold Hold, res result) {
	ctx := e.storeContext(base, e.storeTimeout)
	defer ctx.end(errCallOver)
	if err := hold.Release(ctx); err != nil {
		e.failed(base, key, t, "release", err) // the lease will end it
	}
	e.tell(base, t, Event{Kind: Released, Key: key, Status: res.status})
}

// superseded finds the outcome that stands after the lease was lost to another
// owner. If none stands, because that owner gave the key back, ours does.
func (e *engine) superseded(ctx, base context.Context, f *flight, t task, res result, l *landing) (outcome, error) {
	e.log.LogAttrs(base, slog.LevelWarn, "submitonce: lease lost while the handler ran; the other outcome stands",
		slog.String("key", f.key))
	e.tell(base, t, Event{Kind: LeaseLost, Key: f.key, Status: res.status})
	a, now := new(attempt), time.Now()
	rec, hold, _, err := e.win(ctx, base, f, &a.claiming, t, now, now)
	if err != nil {
		return outcome{}, err
	}
	if hold == nil {
		l.response = rec.Response
		return outcome{response: rec.Response}, nil
	}
	_, lends := hold.(Lender)
	if lends { // our work is gone with the transaction, so our answer is too
		e.release(base, f.key, t, hold, res)
		return outcome{}, fmt.Errorf("%w: %w", ErrStoreAway, ErrUndone)
	}
	if err := e.seal(base, f.key, &a.sealing, t, hold, lends, res); err != nil {
		e.tell(base, t, Event{Kind: SealLost, Key: f.key, Status: res.status, Err: err})
	}
	l.response = res.response
	return outcome{ran: true}, nil
}

func (e *engine) look(ctx context.Context, key string) (Record, error) {
	base := context.WithoutCancel(ctx)
	sctx := e.storeContext(base, e.storeTimeout)
	defer sctx.end(errCallOver)
	rec, err := e.store.Look(sctx, key)
	if err != nil {
		e.storeFailed(base, key, "look", err)
		return rec, fmt.Errorf("%w: look: %w", ErrStoreAway, err)
	}
	return rec, nil
}

// storeContext bounds one call of the store. The client's hang-up does not
// cancel it: a claim half made would block the key for a lease.
func (e *engine) storeContext(base context.Context, limit time.Duration) *lazyContext {
	c := new(lazyContext)
	c.begin(base, time.Now().Add(limit))
	return c
}

func (e *engine) waited(ctx context.Context, key string, t task, began time.Time) {
	if e.observe != nil {
		e.tell(ctx, t, Event{Kind: Waited, Key: key, Waited: time.Since(began)})
	}
}

func (e *engine) failed(ctx context.Context, key string, t task, op string, err error) {
	e.logFailed(ctx, key, op, err)
	e.tell(ctx, t, Event{Kind: StoreError, Key: key, Err: fmt.Errorf("%s: %w", op, err)})
}

// storeFailed is failed for calls that no single task made.
func (e *engine) storeFailed(ctx context.Context, key, op string, err error) {
	e.logFailed(ctx, key, op, err)
	if e.observe != nil {
		e.observe(ctx, Event{Kind: StoreError, Key: key, Err: fmt.Errorf("%s: %w", op, err)})
	}
}

func (e *engine) logFailed(ctx context.Context, key, op string, err error) {
	e.log.LogAttrs(ctx, slog.LevelWarn, "submitonce: store call failed",
		slog.String("call", op), slog.String("key", key), slog.Any("error", err))
}

func (e *engine) tell(ctx context.Context, t task, ev Event) {
	if e.observe != nil {
		t.event(&ev)
		e.observe(ctx, ev)
	}
}

func isStoreError(err error) bool { return errors.Is(err, ErrStoreAway) }
