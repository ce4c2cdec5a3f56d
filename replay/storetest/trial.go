package storetest

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/submitonce/submitonce/replay"
)

const (
	lease     = time.Minute
	retention = time.Hour

	// slack is how much real time a case may lose between two calls.
	slack = 20 * time.Second

	// patience is how long a call or a message may take that should come at once.
	patience = 20 * time.Second
)

// A trial is one case under way.
type trial struct {
	*testing.T
	h     Harness
	store replay.Store // what cases write through
	peer  replay.Store // what cases read through; the same as store without Harness.Peer
}

func newTrial(t *testing.T, h Harness) *trial {
	s := h.New(t)
	if s == nil {
		t.Fatal("storetest: Harness.New returned nil")
	}
	t.Cleanup(func() { closeStore(t, s) })
	peer := s
	if h.Peer != nil {
		peer = h.Peer(t, s)
		t.Cleanup(func() { closeStore(t, peer) })
	}
	return &trial{t, h, s, peer}
}

// both returns the store for even i and its peer for odd ones.
func (t *trial) both(i int) replay.Store {
	if i%2 == 0 {
		return t.store
	}
	return t.peer
}

// advance lets d pass for the records.
func (t *trial) advance(d time.Duration) {
	t.Helper()
	if t.h.InProcess {
		time.Sleep(d)
		return
	}
	t.h.Advance(t.T, t.store, d)
}

// key returns a key that no other case has.
func key() string { return "storetest-" + rand.Text() }

func newOwner() (o replay.Owner) {
	_, _ = rand.Read(o[:])
	return o
}

func claimOf(key string) replay.Claim {
	return replay.Claim{Key: key, Owner: newOwner(), Lease: lease}
}

// claim claims, and fails on an error and on an answer that no store may give.
func (t *trial) claim(s replay.Store, c replay.Claim) (replay.Record, replay.Hold) {
	t.Helper()
	rec, hold, err := s.Claim(t.Context(), c)
	if err != nil {
		t.Fatalf("claim: %v", err)
	}
	if problem := t.answer(rec, hold); problem != "" {
		t.Fatalf("claim: record %+v, hold %v: %s", brief(rec), hold, problem)
	}
	return rec, hold
}

// answer returns what is wrong with what Claim returned.
func (t *trial) answer(rec replay.Record, hold replay.Hold) string {
	switch {
	case rec.State == replay.Free:
		return "a claim never returns a free record"
	case hold != nil && rec.State != replay.Pending:
		return "a won claim returns a pending record"
	case rec.State == replay.Pending && rec.Response != nil:
		return "a pending record has no response"
	case rec.State == replay.Done && rec.LeaseLeft != 0:
		return "a done record has no lease"
	case rec.Attempt < 1 && (hold != nil || rec.State == replay.Done):
		return "the attempt of this record counts from 1"
	case rec.State == replay.Pending && !t.h.Transactional && (rec.Attempt < 1 || rec.LeaseLeft <= 0):
		return "a pending record has an attempt and a running lease"
	}
	return ""
}

// win claims key for a new owner, who has to get it as the attempt given.
func (t *trial) win(s replay.Store, key string, attempt int) replay.Hold {
	t.Helper()
	rec, hold := t.claim(s, claimOf(key))
	if hold == nil {
		t.Fatalf("claim was not won, the record is %+v", brief(rec))
	}
	if rec.Attempt != attempt {
		t.Fatalf("claim was won as attempt %d, want %d", rec.Attempt, attempt)
	}
	return hold
}

// lose claims key for a new owner, who must not get it, and returns what stands.
func (t *trial) lose(s replay.Store, key string) replay.Record {
	t.Helper()
	rec, hold := t.claim(s, claimOf(key))
	if hold != nil {
		t.Fatalf("claim was won as attempt %d although a record stands", rec.Attempt)
	}
	return rec
}

func (t *trial) look(s replay.Store, key string) replay.Record {
	t.Helper()
	rec, err := s.Look(t.Context(), key)
	if err != nil {
		t.Fatalf("look: %v", err)
	}
	return rec
}

func (t *trial) seal(h replay.Hold, response string) {
	t.Helper()
	if err := h.Seal(t.Context(), []byte(response), retention); err != nil {
		t.Fatalf("seal: %v", err)
	}
}

func (t *trial) release(h replay.Hold) {
	t.Helper()
	if err := h.Release(t.Context()); err != nil {
		t.Fatalf("release: %v", err)
	}
}

func (t *trial) extend(h replay.Hold, d time.Duration) {
	t.Helper()
	if err := h.Extend(t.Context(), d); err != nil {
		t.Fatalf("extend: %v", err)
	}
}

// wantDone checks that key stands sealed with response, by Look and by Claim,
// through both instances.
func (t *trial) wantDone(key, response string) {
	t.Helper()
	for i := range 2 {
		t.isDone("look", t.look(t.both(i), key), response)
		t.isDone("claim", t.lose(t.both(i), key), response)
	}
}

func (t *trial) isDone(what string, rec replay.Record, response string) {
	t.Helper()
	if rec.State != replay.Done || string(rec.Response) != response {
		t.Fatalf("%s: %+v, want done with response %s", what, brief(rec), short([]byte(response)))
	}
}

// wantPending checks that key stands claimed as the attempt given, with about
// left of its lease.
func (t *trial) wantPending(key string, attempt int, left time.Duration) {
	t.Helper()
	for i := range 2 {
		t.isPending("look", t.look(t.both(i), key), attempt, left)
		t.isPending("claim", t.lose(t.both(i), key), attempt, left)
	}
}

func (t *trial) isPending(what string, rec replay.Record, attempt int, left time.Duration) {
	t.Helper()
	if rec.State != replay.Pending {
		t.Fatalf("%s: %+v, want pending", what, brief(rec))
	}
	if t.h.Transactional {
		return
	}
	if rec.Attempt != attempt {
		t.Fatalf("%s: attempt %d, want %d", what, rec.Attempt, attempt)
	}
	// A millisecond more is a store that rounds up.
	if rec.LeaseLeft > left+time.Millisecond || rec.LeaseLeft < left-slack {
		t.Fatalf("%s: %v of the lease is left, want about %v", what, rec.LeaseLeft, left)
	}
}

// wantFree checks that no record stands under key.
func (t *trial) wantFree(key string) {
	t.Helper()
	for i := range 2 {
		rec := t.look(t.both(i), key)
		if rec.State != replay.Free || rec.Attempt != 0 || rec.Response != nil || rec.LeaseLeft != 0 {
			t.Fatalf("look: %+v, want a free record and nothing in it", brief(rec))
		}
	}
}

// prompt calls f, and fails if it does not return soon.
func (t *trial) prompt(what string, f func()) {
	t.Helper()
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		f()
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-returned:
	case <-timer.C:
		t.Fatalf("%s has not returned after %v", what, patience)
	}
}

// crowd calls f n times at once, as nearly as that can be done, and waits for all.
func crowd(n int, f func(i int)) {
	var (
		ready sync.WaitGroup
		gone  sync.WaitGroup
		start = make(chan struct{})
	)
	for i := range n {
		ready.Add(1)
		gone.Go(func() {
			ready.Done()
			<-start
			f(i)
		})
	}
	ready.Wait()
	close(start)
	gone.Wait()
}

// cancelled returns a context that is cancelled.
func (t *trial) cancelled() context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// brief is rec as messages show it, without most of a long response.
func brief(rec replay.Record) any {
	type record struct {
		State     replay.State
		Attempt   int
		Response  string
		LeaseLeft time.Duration
	}
	return record{rec.State, rec.Attempt, short(rec.Response), rec.LeaseLeft}
}

func short(p []byte) string {
	const most = 40
	if len(p) > most {
		return fmt.Sprintf("%q… (%d bytes)", p[:most], len(p))
	}
	return strconv.Quote(string(p))
}
