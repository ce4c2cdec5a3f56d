package storetest

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/submitonce/submitonce/replay"
)

// A Harness says how to get at the store that is to be tested. New is required,
// and Advance unless InProcess is set.
type Harness struct {
	// New returns a store for one case. It is called once for each case, with the
	// case's t, and once more to see what the store can do. What the store needs
	// and does not close itself, New ends with t.Cleanup; stores are closed by the
	// suite if they are an [io.Closer].
	//
	// Stores of several cases may share one database: each case draws keys of its
	// own at random, and none minds other records. Those that are left behind
	// should not be touched by anybody else while the suite runs.
	New func(t *testing.T) replay.Store

	// Peer returns another instance over the same records as s, with connections
	// of its own, as a second process would have it. The suite reads through it
	// what it wrote through s, and races both. It is called at most once for each
	// store. The default, nil, is right for a store that has no second instance:
	// the suite then uses s for both.
	Peer func(t *testing.T, s replay.Store) replay.Store

	// Advance makes all records of s older by d, with their leases and retentions,
	// as if d had passed: usually by moving their ends back by d in the server. It
	// is not used with InProcess.
	Advance func(t *testing.T, s replay.Store, d time.Duration)

	// InProcess says that the store measures time by package time in this process
	// and waits for nothing outside of it. Each case then runs in a bubble of
	// package [testing/synctest], where minutes pass at once. The default is false.
	InProcess bool

	// Transactional says that a claim lives in an open transaction: it stands
	// until its hold ends or its connection does, and not by a lease; others see
	// that the key is pending, but neither its attempt nor a lease; and a Seal or
	// Release that fails ends the hold. Cases of leases are left out then. The
	// default is false.
	Transactional bool
}

// Run checks the store that h makes against every promise of [replay.Store],
// each as a subtest of t. It must not run beside other tests that use the same
// store, since it moves its time.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if h.New == nil {
		t.Fatal("storetest: Harness.New is nil")
	}
	if h.Advance == nil && !h.InProcess {
		t.Fatal("storetest: Harness.Advance is nil, and InProcess is not set: time would have to pass for real")
	}
	probe := h.New(t)
	closeStore(t, probe)
	for _, c := range cases() {
		switch {
		case !offers(probe, c.needs):
			t.Logf("left out, since the store is no %s: %s", c.needs, c.name)
			continue
		case c.leased && h.Transactional:
			t.Logf("left out, since claims do not stand by a lease: %s", c.name)
			continue
		}
		passed := t.Run(c.name, func(t *testing.T) {
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("package replay promises: %s", c.promise)
				}
			})
			if h.InProcess && !c.realTime {
				synctest.Test(t, func(t *testing.T) { c.run(newTrial(t, h)) })
				return
			}
			c.run(newTrial(t, h))
		})
		if !passed && c.realTime && h.InProcess {
			// A goroutine that is left in a bubble would end the whole program.
			t.Log("the other cases are left out, since the store leaves something running")
			return
		}
	}
}

// A test is one case: a behaviour, and the sentence of package replay that it
// defends.
type test struct {
	name     string
	promise  string
	needs    ability
	leased   bool // makes sense only where claims stand by a lease
	realTime bool // counts goroutines, so not in a bubble
	run      func(t *trial)
}

// cases returns all of them. What leaves goroutines behind is found first.
func cases() []test {
	var all []test
	for _, group := range [][]test{
		closeTests, claimTests, lookTests, sealTests, releaseTests, leaseTests, fencingTests,
		byteTests, keyTests, raceTests, contextTests, watchTests, sweepTests,
	} {
		all = append(all, group...)
	}
	return all
}

// An ability is an interface that a store may have or not.
type ability string

const (
	watcher ability = "replay.Watcher"
	sweeper ability = "replay.Sweeper"
	closer  ability = "io.Closer"
)

func offers(s replay.Store, a ability) (ok bool) {
	switch a {
	case watcher:
		_, ok = s.(replay.Watcher)
	case sweeper:
		_, ok = s.(replay.Sweeper)
	case closer:
		_, ok = s.(io.Closer)
	default:
		ok = true
	}
	return ok
}

func closeStore(t *testing.T, s replay.Store) {
	if c, ok := s.(io.Closer); ok {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}
