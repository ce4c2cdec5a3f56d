package storetest_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/storetest"
)

// A Drawer is the shortest store that keeps every promise: a map and a lock. It
// forgets nothing, so it is for reading only.
type Drawer struct {
	mu      sync.Mutex
	records map[string]sheet // guarded by mu
}

type sheet struct {
	owner    replay.Owner
	attempt  int
	end      time.Time // of the lease, or of the retention
	done     bool
	response []byte
}

// standing returns the record as others see it.
func (s sheet) standing() replay.Record {
	left := time.Until(s.end)
	switch {
	case left <= 0:
		return replay.Record{}
	case s.done:
		return replay.Record{State: replay.Done, Attempt: s.attempt, Response: bytes.Clone(s.response)}
	}
	return replay.Record{State: replay.Pending, Attempt: s.attempt, LeaseLeft: left}
}

func (d *Drawer) Claim(ctx context.Context, c replay.Claim) (replay.Record, replay.Hold, error) {
	if err := ctx.Err(); err != nil {
		return replay.Record{}, nil, fmt.Errorf("drawer: claim: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s, ok := d.records[c.Key]
	held := ok && !s.done && s.owner == c.Owner // its answer was lost
	rec := s.standing()
	switch {
	case rec.State != replay.Free && !held:
		return rec, nil, nil
	case !ok || s.done:
		s = sheet{attempt: 1}
	case !held:
		s.attempt++ // the owner before has abandoned it
	}
	s.owner, s.end = c.Owner, time.Now().Add(c.Lease)
	d.records[c.Key] = s
	return s.standing(), &hand{d, c.Key, c.Owner}, nil
}

func (d *Drawer) Look(ctx context.Context, key string) (replay.Record, error) {
	if err := ctx.Err(); err != nil {
		return replay.Record{}, fmt.Errorf("drawer: look: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.records[key].standing(), nil
}

// A hand holds one sheet. The owner is what keeps it off all others.
type hand struct {
	d     *Drawer
	key   string
	owner replay.Owner
}

func (h *hand) Extend(ctx context.Context, lease time.Duration) error {
	return h.change(ctx, func(s sheet) (sheet, error) {
		if s.done {
			return s, replay.ErrLeaseLost
		}
		if end := time.Now().Add(lease); end.After(s.end) {
			s.end = end
		}
		return s, nil
	})
}

func (h *hand) Seal(ctx context.Context, response []byte, retention time.Duration) error {
	return h.change(ctx, func(s sheet) (sheet, error) {
		if !s.done { // else this is a repetition
			s.done, s.response, s.end = true, bytes.Clone(response), time.Now().Add(retention)
		}
		return s, nil
	})
}

func (h *hand) Release(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("drawer: release: %w", err)
	}
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if s := h.d.records[h.key]; s.owner == h.owner && !s.done {
		delete(h.d.records, h.key)
	}
	return nil
}

// change puts what f makes of the sheet in its place, if it is still in hand.
func (h *hand) change(ctx context.Context, f func(sheet) (sheet, error)) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("drawer: %w", err)
	}
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	s, ok := h.d.records[h.key]
	if !ok || s.owner != h.owner {
		return replay.ErrLeaseLost
	}
	s, err := f(s)
	if err == nil {
		h.d.records[h.key] = s
	}
	return err
}

// testDrawer is what func TestDrawer(t *testing.T) is in your own package.
func testDrawer(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		New:       func(*testing.T) replay.Store { return &Drawer{records: make(map[string]sheet)} },
		InProcess: true,
	})
}

// A store of one's own, and the test that says whether it is right.
func Example_ownStore() {
	var (
		ctx   = context.Background()
		store = &Drawer{records: make(map[string]sheet)}
		claim = replay.Claim{Key: "order-17", Owner: replay.Owner{1}, Lease: 30 * time.Second}
	)
	rec, hold, _ := store.Claim(ctx, claim)
	fmt.Println(rec.State, hold != nil)

	_ = hold.Seal(ctx, []byte("201 Created"), time.Hour)

	claim.Owner = replay.Owner{2} // a duplicate
	rec, hold, _ = store.Claim(ctx, claim)
	fmt.Println(rec.State, hold != nil, string(rec.Response))
	// Output:
	// pending true
	// done false 201 Created
}
