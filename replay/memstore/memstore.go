package memstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"sync"
	"time"

	"github.com/submitonce/submitonce/replay"
)

var (
	_ replay.Store   = (*Store)(nil)
	_ replay.Watcher = (*Store)(nil)
	_ replay.Hold    = (*entry)(nil)
	_ io.Closer      = (*Store)(nil)
)

// Defaults of [Config]. A submit whose response has 300 bytes takes about 0.6
// KiB, so 256 MiB are some 400,000 of them; the default for entries keeps very
// small records from taking much more than is counted for them.
const (
	DefaultMaxEntries = 1 << 20
	DefaultMaxBytes   = 256 << 20
)

// A Config says how much a [Store] may hold. Its zero value is right for most.
// The shards of a store count each for itself and tell the others now and then,
// so a store may refuse claims from 96 % of a bound on; one of less than 4,096
// entries, or bytes, counts exactly. Claims that are made in the same instant may
// pass a bound by as many as there are processors.
type Config struct {
	// MaxEntries is how many records the store holds at the most. The default is
	// 1,048,576.
	MaxEntries int

	// MaxBytes is how many bytes its records take at the most, with their keys,
	// their responses and what the store adds to them. Claims are refused from
	// there on; a claim that stands is always sealed, so that the store passes the
	// bound by as much as the responses that are being made take. The default is
	// 256 MiB.
	MaxBytes int64
}

// A Store keeps records in memory. It is safe for concurrent use: keys are
// spread over shards that have a lock each.
type Store struct {
	seed    maphash.Seed
	started time.Time // all ends are counted from here, on the monotonic clock
	bounds  bounds
	ticks   sync.WaitGroup // timers that are set or at work
	shards  [shardCount]shard
}

// shardCount is enough for processes with some hundred cores, since a lock is
// held for a small part of a request. It is a power of two.
const shardCount = 64

// New returns an empty store, or all that is wrong with c. It starts nothing.
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
	s := &Store{seed: maphash.MakeSeed(), started: time.Now()}
	s.bounds.init(int64(c.MaxEntries), c.MaxBytes)
	for i := range s.shards {
		sh := &s.shards[i]
		sh.store, sh.alarm = s, never
		sh.entries = make(table)
		sh.late = time.Duration(i) * sweepPause / shardCount
	}
	return s, nil
}

func (s *Store) hash(key string) uint64 { return maphash.String(s.seed, key) }

func (s *Store) shard(hash uint64) *shard { return &s.shards[hash%shardCount] }

func (s *Store) now() time.Duration { return time.Since(s.started) }

// Claim implements [replay.Store].
func (s *Store) Claim(ctx context.Context, c replay.Claim) (replay.Record, replay.Hold, error) {
	hash := s.hash(c.Key)
	sh := s.shard(hash)
	rec, hold, err := sh.claim(ctx, hash, c)
	if errors.Is(err, replay.ErrStoreFull) {
		s.makeRoom()
		rec, hold, err = sh.claim(ctx, hash, c)
	}
	if err != nil {
		return replay.Record{}, nil, fmt.Errorf("memstore: claim: %w", err)
	}
	if hold == nil {
		return rec, nil, nil // not a nil *entry
	}
	return rec, hold, nil
}

// claim is Claim for a key of this shard.
func (sh *shard) claim(ctx context.Context, hash uint64, c replay.Claim) (replay.Record, *entry, error) {
	if err := sh.lock(ctx); err != nil {
		return replay.Record{}, nil, err
	}
	defer sh.mu.Unlock()
	now := sh.store.now()
	e := sh.entries.find(hash, c.Key)
	switch {
	case e == nil || e.done && e.end <= now:
		if e != nil {
			sh.remove(e)
		}
		if sh.store.bounds.passed(&sh.count) {
			return replay.Record{}, nil, replay.ErrStoreFull
		}
		e = &entry{shard: sh, key: c.Key, owner: c.Owner, attempt: 1, end: now + c.Lease}
		sh.add(hash, e)
	case !e.done && e.owner == c.Owner: // asked again, because its answer was lost
		e.end = now + c.Lease
		sh.claims.fix(e)
	case !e.done && e.end <= now:
		// A new entry, so that the old owner's hold is of no use any more.
		next := &entry{shard: sh, key: c.Key, owner: c.Owner, attempt: e.attempt + 1, end: now + c.Lease}
		sh.remove(e)
		sh.add(hash, next)
		e = next
	default:
		return e.record(now), nil, nil
	}
	sh.wakeUp(now)
	return e.record(now), e, nil
}

// Look implements [replay.Store].
func (s *Store) Look(ctx context.Context, key string) (replay.Record, error) {
	hash := s.hash(key)
	sh := s.shard(hash)
	if err := sh.lock(ctx); err != nil {
		return replay.Record{}, fmt.Errorf("memstore: look: %w", err)
	}
	defer sh.mu.Unlock()
	now := s.now()
	if e := sh.entries.find(hash, key); e != nil && e.end > now {
		return e.record(now), nil
	}
	return replay.Record{}, nil
}

// Size returns how many records the store holds and for how many bytes they
// count towards [Config.MaxBytes]. Those that have expired but are not removed
// yet are among them.
func (s *Store) Size() (records int, bytes int64) {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		records += sh.size()
		bytes += sh.bytes
		sh.mu.Unlock()
	}
	return records, bytes
}

// Close drops all records, ends the store's timers, waits for those that are at
// work, and wakes all watchers, who then learn that the store is closed. It may
// be called twice, and always returns nil.
func (s *Store) Close() error {
	for i := range s.shards {
		s.shards[i].close()
	}
	s.ticks.Wait()
	return nil
}
