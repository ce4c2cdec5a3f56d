package replay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// own runs the task under a hold and ends the hold, whatever happens.
func (e *engine) own(base context.Context, s *flightShard, f *flight, a *attempt, t task, rec Record, hold Hold, now time.Time) (res result, err error) {
	c := &a.run
	c.key, c.attempt = f.key, rec.Attempt
	parent, deadline := base, time.Time{}
	if e.handlerTimeout > 0 {
		deadline = now.Add(e.handlerTimeout)
	}
	if until := t.until(); !until.IsZero() && (deadline.IsZero() || until.Before(deadline)) {
		deadline = until
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
		c.end(handlerOver)
		if !returned { // a panic or Goexit, which goes on to the caller
			_ = e.release(base, f.key, t, hold, result{})
		}
	}()
	res = t.run(c)
	returned = true

	if !res.seal {
		if err := e.release(base, f.key, t, hold, res); lends && errors.Is(err, ErrUndone) {
			return res, err
		}
		return res, nil
	}
	switch err = e.seal(base, f.key, &a.sealing, t, hold, lends, res, now.Add(time.Since(now))); {
	case err == nil:
		e.tell(base, t, Event{Kind: Sealed, Key: f.key, Attempt: rec.Attempt, Status: res.status})
		return res, nil
	case lends:
		// Nothing is kept: what the hold lent goes back.
		ctx := e.storeContext(base, e.storeTimeout)
		defer ctx.end(callOver)
		_ = hold.Release(ctx) // a hold that has ended has nothing to release
		return res, err
	case errors.Is(err, ErrLeaseLost):
		return res, err
	}
	// The effect has happened and cannot be unmade, so the client hears of it;
	// only a later duplicate will not.
	e.sealLost(base, f.key, t, rec, res, err)
	return res, nil
}

func (e *engine) sealLost(ctx context.Context, key string, t task, rec Record, res result, err error) {
	e.log.LogAttrs(ctx, slog.LevelError, "submitonce: outcome could not be stored; a retry may run again",
		slog.String("key", key), slog.Int("status", res.status), slog.Any("error", err))
	e.tell(ctx, t, Event{Kind: SealLost, Key: key, Attempt: rec.Attempt, Status: res.status, Err: err})
}

// seal stores the response, trying again within the seal timeout while the
// store is away. What a Lender could not commit is not tried again: its work may
// be gone. The first try is made now and uses call as its context.
func (e *engine) seal(base context.Context, key string, call *lazyContext, t task, hold Hold, lends bool, res result, now time.Time) error {
	limit := e.storeTimeout
	if lends {
		limit = e.sealTimeout
	}
	end := now.Add(e.sealTimeout)
	call.begin(base, now.Add(limit))
	for pause := 20 * time.Millisecond; ; pause *= 2 {
		err := hold.Seal(call, res.response, e.retention)
		call.end(callOver)
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

func (e *engine) release(base context.Context, key string, t task, hold Hold, res result) error {
	ctx := e.storeContext(base, e.storeTimeout)
	defer ctx.end(callOver)
	err := hold.Release(ctx)
	if err != nil && !errors.Is(err, ErrUndone) {
		e.failed(base, key, t, "release", err) // the lease will end it
	}
	e.tell(base, t, Event{Kind: Released, Key: key, Status: res.status})
	return err
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
		_ = e.release(base, f.key, t, hold, res)
		return outcome{}, fmt.Errorf("%w: %w", ErrStoreAway, ErrUndone)
	}
	if err := e.seal(base, f.key, &a.sealing, t, hold, lends, res, time.Now()); err != nil {
		e.sealLost(base, f.key, t, rec, res, err)
	}
	l.response = res.response
	return outcome{ran: true}, nil
}
