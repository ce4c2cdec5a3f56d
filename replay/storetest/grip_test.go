package storetest_test

import (
	"bytes"
	"context"
	"time"

	"github.com/submitonce/submitonce/replay"
)

// A grip is a hold on a slot of a shelf.
type grip struct {
	s     *shelf
	key   string
	owner replay.Owner
}

// slot returns the slot if it is still this grip's. mu is held.
func (g *grip) slot() *slot {
	if e := g.s.slots[g.key]; e != nil && e.owner == g.owner {
		return e
	}
	return nil
}

func (g *grip) Extend(ctx context.Context, lease time.Duration) error {
	s := g.s
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	e := g.slot()
	if s.is("extends for anyone") {
		e = s.slots[g.key]
	}
	if e == nil || e.done && !s.is("extends what is sealed") {
		return replay.ErrLeaseLost
	}
	end := s.now() + lease
	switch {
	case s.is("extends nothing"):
	case s.is("extend shortens"):
		e.end = end
	case s.is("extend revives nothing") && e.end <= s.now():
		return replay.ErrLeaseLost
	case s.is("checks, then extends"):
		s.between()
		e.end = end
		s.slots[g.key] = e
	default:
		e.end = max(e.end, end)
	}
	return nil
}

func (g *grip) Seal(ctx context.Context, response []byte, retention time.Duration) error {
	s := g.s
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	e := g.slot()
	if s.is("seals for anyone") {
		if e = s.slots[g.key]; e == nil {
			e = new(slot)
			s.slots[g.key] = e
		}
	}
	switch {
	case e == nil:
		return replay.ErrLeaseLost
	case e.done && s.is("repeated seals are lost"):
		return replay.ErrLeaseLost
	case e.done && !s.is("last seal stands"):
		return nil
	case s.is("refuses late seals") && e.end <= s.now():
		return replay.ErrLeaseLost
	case s.is("checks, then seals"):
		s.between()
		s.slots[g.key] = e
	}
	switch {
	case s.is("responses are text"):
		response = bytes.ToValidUTF8(response, []byte("?"))
	case s.is("responses are cut"):
		response = response[:min(len(response), 1<<16)]
	case s.is("empty responses are none") && len(response) == 0:
		return nil
	}
	if !s.is("keeps the caller's slice") {
		response = bytes.Clone(response)
	}
	e.done, e.response, e.end = true, response, s.now()+retention
	if s.is("retention from the claim") {
		e.end -= 40 * time.Second
	}
	if !s.is("seals silently") {
		s.wake(g.key)
	}
	return nil
}

func (g *grip) Release(ctx context.Context) error {
	s := g.s
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	e := g.slot()
	if s.is("lets anyone release") {
		e = s.slots[g.key]
	}
	if e == nil || e.done && !s.is("releases what is sealed") {
		return nil
	}
	switch {
	case s.is("checks, then releases"):
		s.between()
		delete(s.slots, g.key)
	case s.is("release ends the lease only"):
		e.end = s.now()
		e.owner = replay.Owner{}
	default:
		delete(s.slots, g.key)
	}
	if !s.is("releases silently") {
		s.wake(g.key)
	}
	return nil
}
