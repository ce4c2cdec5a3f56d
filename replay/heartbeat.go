package replay

import (
	"errors"
	"time"
)

// Heartbeats keep the lease of a handler that takes its time. They cost a
// request nothing: each shard of flights has one timer, which is armed only
// while a handler of that shard runs, and looks for holds that have stood for a
// third of their lease. It ticks each sixth, so that a lease is extended before
// half of it has gone and one failed try can be made good.

func (e *engine) startBeat(s *flightShard, f *flight, h Hold, c *runContext, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.hold, f.ctx, f.extended = h, c, now
	if s.armed {
		return
	}
	s.armed = true
	if s.beat == nil {
		s.beat = time.AfterFunc(e.lease/3, func() { e.tick(s) })
		return
	}
	s.beat.Reset(e.lease / 3)
}

// stopBeat ends what startBeat began where the flight goes on; else land does.
func (e *engine) stopBeat(s *flightShard, f *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.hold, f.ctx = nil, nil
}

// tick extends the leases that are due, and arms the timer again while any
// handler of the shard runs.
func (e *engine) tick(s *flightShard) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = false
	for _, f := range s.m {
		if f.hold == nil {
			continue
		}
		if !f.ctx.deadline.IsZero() && now.After(f.ctx.deadline) {
			s.giveUp(f) // a handler beyond its time no longer holds its key
			continue
		}
		s.armed = true
		if now.Sub(f.extended) >= e.lease/3 {
			f.extended = now
			go e.extend(f.hold, f.ctx)
		}
	}
	if s.armed {
		s.beat.Reset(e.lease / 6)
	}
}

func (e *engine) extend(h Hold, c *runContext) {
	ctx := e.storeContext(c.parent, e.storeTimeout)
	defer ctx.end(callOver)
	err := h.Extend(ctx, e.lease)
	switch {
	case errors.Is(err, ErrLeaseLost):
		c.end(endedBy(ErrLeaseLost)) // the handler may still stop before it commits
	case err != nil:
		e.storeFailed(c, c.key, "extend", err)
	}
}
