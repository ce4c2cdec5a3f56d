package replay

import (
	"bytes"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

// Duplicates of one key that are in this process at the same time gather on one
// flight: its leader asks the store, the others wait for what it brings. So ten
// thousand duplicates cost the store what one costs.
type flight struct {
	key string

	// Guarded by the shard's mutex.
	done     chan struct{} // made by the first follower
	hold     Hold          // while the leader's handler runs here
	ctx      *runContext   // of that handler
	extended time.Time     // when its lease was last extended

	// leaseEnd is when the lease of an owner elsewhere ends, in Unix
	// nanoseconds; 0 if unknown.
	leaseEnd atomic.Int64

	// Written by the leader before done is closed.
	landing
}

// A landing is how a flight ends for those who waited for it. The zero landing
// means that the key may be free: compete for it again.
type landing struct {
	response []byte // of a sealed record; not nil if there is one
	err      error  // why there is none
}

const flightShards = 64

type flights struct {
	seed   maphash.Seed
	shards [flightShards]flightShard
}

type flightShard struct {
	mu    sync.Mutex
	m     map[string]*flight // guarded by mu
	armed bool               // guarded by mu: the heartbeat's timer is running
	beat  *time.Timer        // guarded by mu: made at the first use
	_     [64]byte           // keeps neighbours' mutexes off this cache line
}

func (fs *flights) shard(key string) *flightShard {
	return &fs.shards[maphash.String(fs.seed, key)%flightShards]
}

// join returns the flight of key, and whether the caller leads it. A leader has
// to land it, whatever happens.
func (s *flightShard) join(key string, own *flight) (f *flight, leads bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f, ok := s.m[key]; ok {
		if f.done == nil {
			f.done = make(chan struct{})
		}
		return f, false
	}
	if s.m == nil {
		s.m = make(map[string]*flight)
	}
	own.key = key
	s.m[key] = own
	return own, true
}

// land ends the flight and tells those who wait for it.
func (s *flightShard) land(f *flight, l landing) {
	s.mu.Lock()
	flying := s.m[f.key] == f // else it was given up
	if flying {
		delete(s.m, f.key)
	}
	f.hold, f.ctx = nil, nil
	done := f.done
	s.mu.Unlock()
	if flying && done != nil {
		l.response = bytes.Clone(l.response) // the leader's buffer is lent
		f.landing = l
		close(done)
	}
}

// giveUp ends a flight whose handler is beyond its time: those who wait compete
// for the key, as others elsewhere do. The caller holds s.mu.
func (s *flightShard) giveUp(f *flight) {
	delete(s.m, f.key)
	f.hold, f.ctx = nil, nil
	if f.done != nil {
		close(f.done)
	}
}
