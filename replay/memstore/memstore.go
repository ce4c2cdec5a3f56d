package memstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/submitonce/submitonce/replay"
)

var (
	_ replay.Store   = (*Store)(nil)
	_ replay.Watcher = (*Store)(nil)
)

// Defaults of [Config].
const (
	DefaultMaxEntries = 1 << 20
	DefaultMaxBytes   = 512 << 20
)

// A Config says how much a [Store] may hold. Its zero value is right for most.
type Config struct {
	// MaxEntries is how many records the store holds at the most. The default is
	// 1,048,576.
	MaxEntries int

	// MaxBytes is how many bytes its records take at the most, keys, responses and
	// what the store adds to them. Claims are refused from there on; a claim that
	// stands is always sealed, so that the bound can be passed by the responses
	// that are being made. The default is 512 MiB.
	MaxBytes int64
}

// A Store keeps records in memory. It is safe for concurrent use.
type Store struct {
	seed    maphash.Seed
	started time.Time // entries count time from here, on the monotonic clock
	c       Config
	closed  atomic.Bool
	shards  [shardCount]shard
}

const (
	shardCount = 64

	// overhead is what an entry takes beside its key and its response: the
	// struct, the slot in the map, and what the allocator rounds up.
	overhead = 200

	// keepAbandoned is how long an abandoned claim is kept for its attempt.
	keepAbandoned = time.Minute
)

// A shard has a part of the keys under a lock of its own. Its counters are
// atomic because other shards read them when they may be full.
type shard struct {
	mu       sync.Mutex
	m        map[string]*entry          // guarded by mu
	peak     int                        // guarded by mu: the most entries since m was made
	watchers map[string][]chan struct{} // guarded by mu
	sweep    *time.Timer                // guarded by mu: nil until the first entry
	armed    bool                       // guarded by mu

	entries atomic.Int64
	bytes   atomic.Int64
	_       [64]byte // keeps the next shard off this cache line
}

// An entry is a record. All of it is guarded by the shard's mutex.
type entry struct {
	owner    replay.Owner
	end      time.Duration // of the lease, or of the retention; since Store.started
	response []byte        // not changed once it is set
	attempt  int32
	done     bool
}

// New returns an empty store.
func New(c Config) (*Store, error) {
	c.MaxEntries = cmp.Or(c.MaxEntries, DefaultMaxEntries)
	c.MaxBytes = cmp.Or(c.MaxBytes, DefaultMaxBytes)
	var errs []error
	if c.MaxEntries < 0 {
		errs = append(errs, fmt.Errorf("memstore: Config.MaxEntries is %d: it has to be positive", c.MaxEntries))
	}
	if c.MaxBytes < 0 {
		errs = append(errs, fmt.Errorf("memstore: Config.MaxBytes is %d: it has to be positive", c.MaxBytes))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	s := &Store{seed: maphash.MakeSeed(), started: time.Now(), c: c}
	for i := range s.shards {
		s.shards[i].m = make(map[string]*entry)
	}
	return s, nil
}

func (s *Store) shard(key string) *shard {
	return &s.shards[maphash.String(s.seed, key)%shardCount]
}

func (s *Store) now() time.Duration { return time.Since(s.started) }

// check is what each call begins with.
func (s *Store) check(ctx context.Context) error {
	if s.closed.Load() {
		return replay.ErrClosed
	}
	return ctx.Err()
}

// Claim implements [replay.Store].
func (s *Store) Claim(ctx context.Context, c replay.Claim) (replay.Record, replay.Hold, error) {
	if err := s.check(ctx); err != nil {
		return replay.Record{}, nil, fmt.Errorf("memstore: claim: %w", err)
	}
	sh, now := s.shard(c.Key), s.now()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	e := sh.m[c.Key]
	switch {
	case e == nil || e.done && e.end <= now:
		if e != nil {
			sh.remove(c.Key, e)
		}
		if s.full(sh, now) {
			return replay.Record{}, nil, fmt.Errorf("memstore: claim: %w", replay.ErrStoreFull)
		}
		e = &entry{attempt: 1}
		sh.add(c.Key, e)
		s.arm(sh)
	case !e.done && e.owner == c.Owner: // asked again, its answer was lost
	case !e.done && e.end <= now:
		e.attempt++
	default:
		return e.record(now), nil, nil
	}
	e.owner, e.end = c.Owner, now+c.Lease
	return e.record(now), &hold{s, sh, c.Key, c.Owner}, nil
}

// Look implements [replay.Store].
func (s *Store) Look(ctx context.Context, key string) (replay.Record, error) {
	if err := s.check(ctx); err != nil {
		return replay.Record{}, fmt.Errorf("memstore: look: %w", err)
	}
	sh, now := s.shard(key), s.now()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	e := sh.m[key]
	if e == nil || e.end <= now {
		return replay.Record{}, nil
	}
	return e.record(now), nil
}

func (e *entry) record(now time.Duration) replay.Record {
	r := replay.Record{State: replay.Pending, Attempt: int(e.attempt)}
	if e.done {
		r.State, r.Response = replay.Done, bytes.Clone(e.response)
	} else {
		r.LeaseLeft = e.end - now
	}
	return r
}

// Watch implements [replay.Watcher].
func (s *Store) Watch(ctx context.Context, key string) (<-chan struct{}, func(), error) {
	if err := s.check(ctx); err != nil {
		return nil, nil, fmt.Errorf("memstore: watch: %w", err)
	}
	sh := s.shard(key)
	c := make(chan struct{}, 1)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.watchers == nil {
		sh.watchers = make(map[string][]chan struct{})
	}
	sh.watchers[key] = append(sh.watchers[key], c)
	return c, func() { sh.unwatch(key, c) }, nil
}

func (sh *shard) unwatch(key string, c chan struct{}) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	watchers := sh.watchers[key]
	for i, w := range watchers {
		if w == c {
			watchers[i] = watchers[len(watchers)-1]
			watchers = watchers[:len(watchers)-1]
			break
		}
	}
	if len(watchers) == 0 {
		delete(sh.watchers, key)
	} else {
		sh.watchers[key] = watchers
	}
}

// wake tells who watches key. The caller holds mu.
func (sh *shard) wake(key string) {
	for _, c := range sh.watchers[key] {
		select {
		case c <- struct{}{}:
		default: // it has been told already
		}
	}
}

// add and remove keep the counters. The caller holds mu.
func (sh *shard) add(key string, e *entry) {
	sh.m[key] = e
	sh.peak = max(sh.peak, len(sh.m))
	sh.entries.Add(1)
	sh.bytes.Add(int64(len(key)) + overhead)
}

func (sh *shard) remove(key string, e *entry) {
	delete(sh.m, key)
	sh.entries.Add(-1)
	sh.bytes.Add(-(int64(len(key)) + overhead + int64(len(e.response))))
}
