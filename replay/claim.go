package replay

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"
)

// win claims the flight's key. While another owner holds it, it waits for its
// outcome. It returns a hold, or the Done record that stands.
//
// The request came at began. The first claim uses call as its context.
//
// It returns when it made the claim that it won, to the caller's disadvantage:
// before the store was asked.
func (e *engine) win(ctx, base context.Context, f *flight, call *lazyContext, t task, began, now time.Time) (Record, Hold, time.Time, error) {
	claim := Claim{Key: f.key, Owner: newOwner(), Lease: e.lease}
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
		watching := e.storeContext(base, e.storeTimeout)
		c, stop, werr := w.Watch(watching, f.key)
		watching.end(callOver)
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

// newOwner returns a name that nobody else has. It has to be unique among all
// processes and is no secret, so that the runtime's generator will do, which the
// system's randomness seeds.
func newOwner() (o Owner) {
	binary.NativeEndian.PutUint64(o[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(o[8:], rand.Uint64())
	return o
}

func (e *engine) claim(ctx *lazyContext, c Claim, t task) (Record, Hold, error) {
	defer ctx.end(callOver)
	rec, hold, err := e.store.Claim(ctx, c)
	if err != nil {
		e.failed(ctx.parent, c.Key, t, "claim", err)
		return rec, nil, fmt.Errorf("%w: claim: %w", ErrStoreAway, err)
	}
	return rec, hold, nil
}

func (e *engine) look(ctx context.Context, key string) (Record, error) {
	base := &uncancelled{ctx}
	sctx := e.storeContext(base, e.storeTimeout)
	defer sctx.end(callOver)
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
