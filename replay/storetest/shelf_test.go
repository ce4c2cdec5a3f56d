package storetest_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/storetest"
)

// A box holds records under one lock. It is right, unless it is told to have a
// fault.
type box struct {
	fault   string
	lends   bool // as if claims lived in transactions
	started time.Time

	mu       sync.Mutex
	moved    time.Duration // by Advance
	slots    map[string]*slot
	watchers map[string][]chan struct{}
	stopped  int           // watches that were stopped
	lanes    chan struct{} // calls at once
}

type slot struct {
	owner    replay.Owner
	attempt  int
	done     bool
	end      time.Duration
	response []byte
}

// A shelf is one instance over a box.
type shelf struct {
	*box
	closed bool // guarded by mu
}

func newShelf(fault string) *shelf {
	return &shelf{box: &box{
		fault: fault, started: time.Now(), slots: make(map[string]*slot),
		watchers: make(map[string][]chan struct{}), lanes: make(chan struct{}, 30),
	}}
}

// is reports whether the box has this fault.
func (b *box) is(fault string) bool { return b.fault == fault }

// between is where a store that checks first and acts later lets others in.
func (b *box) between() {
	b.mu.Unlock()
	time.Sleep(10 * time.Microsecond)
	b.mu.Lock()
}

func (b *box) now() time.Duration { return time.Since(b.started) + b.moved }

func (b *box) name(key string) string {
	switch {
	case b.is("keys without case"):
		return strings.ToLower(key)
	case b.is("keys cut at 127 bytes"):
		return key[:min(len(key), 127)]
	case b.is("keys are patterns"):
		return strings.Trim(key, "*?")
	case b.is("one record for all"):
		return "all"
	}
	return key
}

func (s *shelf) begin(ctx context.Context) error {
	if s.is("cancelled calls keep their lane") {
		s.lanes <- struct{}{}
		if ctx.Err() == nil {
			<-s.lanes
		}
	}
	s.mu.Lock()
	if s.closed && !s.is("works when closed") {
		s.mu.Unlock()
		return replay.ErrClosed
	}
	if err := ctx.Err(); err != nil && !s.is("does not heed contexts") {
		s.mu.Unlock()
		if s.is("takes a cancelled call for lost") {
			return replay.ErrLeaseLost
		}
		return err
	}
	return nil
}

func (s *shelf) Claim(ctx context.Context, c replay.Claim) (replay.Record, replay.Hold, error) {
	if err := s.begin(ctx); err != nil {
		return replay.Record{}, nil, err
	}
	defer s.mu.Unlock()
	key := s.name(c.Key)
	old := s.slots[key]
	now := s.now()
	past := 0
	if old != nil && old.done && old.end <= now && !s.is("ignores retention") {
		if s.is("attempts outlive the retention") {
			past = old.attempt
		}
		old = nil
	}
	if s.is("forgets abandoned claims") && old != nil && old.end <= now {
		old = nil
	}
	stands := old != nil && (old.end > now || s.is("ignores leases") || s.lends || old.done)
	switch {
	case stands && old.done && s.is("owners win what they sealed") && old.owner == c.Owner:
	case stands && !old.done && old.owner == c.Owner && !s.is("refuses repeated claims") && !s.lends:
	case stands:
		if s.is("lost claims extend the lease") && !old.done {
			old.end = max(old.end, now+c.Lease)
		}
		return s.record(old, now), nil, nil
	}
	if s.is("checks, then claims") {
		s.between()
	}
	next := &slot{owner: c.Owner, attempt: past + 1, end: now + c.Lease}
	if old != nil {
		if next.attempt = old.attempt; old.owner != c.Owner && !s.is("counts no attempts") {
			next.attempt++
		}
		if s.is("keeps the first lease") {
			next.end = now + time.Minute
		}
	}
	if s.is("attempts from 0") {
		next.attempt--
	}
	s.slots[key] = next
	if s.is("claims without a record") {
		return replay.Record{}, &grip{s, key, c.Owner}, nil
	}
	rec := s.record(next, now)
	if s.lends {
		rec.Attempt = 1
	}
	return rec, &grip{s, key, c.Owner}, nil
}

func (s *shelf) record(e *slot, now time.Duration) replay.Record {
	if !e.done {
		if s.lends {
			return replay.Record{State: replay.Pending}
		}
		return replay.Record{State: replay.Pending, Attempt: e.attempt, LeaseLeft: max(e.end-now, 1)}
	}
	rec := replay.Record{State: replay.Done, Attempt: e.attempt, Response: e.response}
	switch {
	case s.is("done records without attempt"):
		rec.Attempt = 0
	case s.is("done records with a lease"):
		rec.LeaseLeft = e.end - now
	}
	return rec
}

func (s *shelf) Look(ctx context.Context, key string) (replay.Record, error) {
	if err := s.begin(ctx); err != nil {
		return replay.Record{}, err
	}
	defer s.mu.Unlock()
	key, now := s.name(key), s.now()
	e := s.slots[key]
	switch {
	case e == nil && s.is("look claims"):
		s.slots[key] = &slot{attempt: 1, end: now + time.Minute}
		return replay.Record{}, nil
	case e == nil:
		return replay.Record{}, nil
	case e.end <= now && (e.done || !s.lends) && !s.is("look finds the expired"):
		return replay.Record{}, nil
	case s.is("look extends") && e.done:
		e.end = now + time.Hour
	case s.is("look extends"):
		e.end = now + time.Minute
	}
	return s.record(e, now), nil
}

func (s *shelf) Watch(ctx context.Context, key string) (<-chan struct{}, func(), error) {
	if s.is("cancelled watches hang") && ctx.Err() != nil {
		select {}
	}
	if err := s.begin(ctx); err != nil {
		return nil, nil, err
	}
	defer s.mu.Unlock()
	if s.is("watching claims") {
		s.slots[key] = &slot{attempt: 1, end: s.now() + time.Minute}
	}
	c := make(chan struct{}, 1)
	register := func() { s.watchers[key] = append(s.watchers[key], c) }
	if s.is("watches begin late") {
		time.AfterFunc(time.Millisecond, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			register()
		})
	} else {
		register()
	}
	return c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stopped++
		all := s.watchers[key]
		for i, w := range all {
			if w == c || s.is("stop stops the last") {
				s.watchers[key] = append(all[:i:i], all[i+1:]...)
				if s.is("stop closes the channel") {
					close(c)
				}
				break
			}
		}
	}, nil
}

// wake is called with mu held.
func (s *shelf) wake(key string) {
	if s.is("wakes once") {
		defer delete(s.watchers, key)
	}
	for _, c := range s.watchers[key] {
		select {
		case c <- struct{}{}:
		default:
		}
		if s.is("wakes one") {
			break
		}
	}
}

func (s *shelf) Sweep(ctx context.Context, limit int) (removed int, err error) {
	if err := s.begin(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	now := s.now()
	for key, e := range s.slots {
		switch {
		case removed == limit && !s.is("sweeps beyond the limit"):
			return removed, nil
		case s.is("sweeps nothing"):
		case s.is("sweeps claims at work") && !e.done,
			s.is("sweeps abandoned claims at once") && !e.done && e.end <= now,
			e.end <= now && e.done,
			e.end+time.Minute <= now && !s.lends,
			s.is("sweeps everything"):
			delete(s.slots, key)
			removed++
		}
	}
	return removed, nil
}

func (s *shelf) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.is("closes once") && s.closed:
		return replay.ErrClosed
	case s.is("leaves a goroutine"):
		go func() { select {} }()
	case s.is("close waits for watchers"):
		for s.stopped < len(s.watchers) {
			s.mu.Unlock()
			time.Sleep(time.Millisecond)
			s.mu.Lock()
		}
	}
	s.closed = true
	return nil
}

// harness is how the suite gets at shelves in this process.
func harness(fault string) storetest.Harness {
	return storetest.Harness{
		New:       func(*testing.T) replay.Store { return newShelf(fault) },
		InProcess: true,
	}
}

// distant is the same for shelves that are as if they were on a server.
func distant(fault string) storetest.Harness {
	return storetest.Harness{
		New: func(*testing.T) replay.Store { return newShelf(fault) },
		Peer: func(_ *testing.T, s replay.Store) replay.Store {
			if fault == "keeps records to itself" {
				return newShelf("")
			}
			return &shelf{box: s.(*shelf).box}
		},
		Advance: func(_ *testing.T, s replay.Store, d time.Duration) {
			b := s.(*shelf)
			b.mu.Lock()
			defer b.mu.Unlock()
			b.moved += d
		},
	}
}
