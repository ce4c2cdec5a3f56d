package memstore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/submitonce/submitonce/replay"
)

// A shard has a part of the keys under a lock of its own. All of it is guarded
// by mu, but for what never changes.
type shard struct {
	mu       sync.Mutex
	closed   bool
	entries  table
	most     int   // entries since the table was made
	claims   queue // the pending entries, by when they may be removed
	seals    queue // the done ones
	bytes    int64 // of all entries
	count    tally // what bounds does not know of
	watchers map[string][]chan struct{}

	timer *time.Timer   // nil until there is something to wait for
	alarm time.Duration // when it goes off, or never

	store *Store        // never changes
	late  time.Duration // how much later than due its timer goes off; never changes

	_ [128]byte // keeps the lock of the next shard off the cache lines of this one
}

// lock locks the shard, unless the call is over before it has begun.
func (sh *shard) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	sh.mu.Lock()
	if sh.closed {
		sh.mu.Unlock()
		return replay.ErrClosed
	}
	return nil
}

// An entry is a record, and the hold of the owner that made it. A takeover makes
// a new one, so that the hold of the old owner ends when its entry is out of the
// store. All but key and shard is guarded by the shard's mu.
type entry struct {
	shard    *shard
	key      string
	owner    replay.Owner
	end      time.Duration // of the lease, or of the retention; since Store.started
	response []byte        // a copy that nobody changes; Done only
	place    int32         // in claims or seals, or out
	attempt  int32
	done     bool
	next     *entry // in the table
}

// out is the place of an entry that is not in the store any more.
const out = -1

// record returns what stands at now. The entry has not expired.
func (e *entry) record(now time.Duration) replay.Record {
	if e.done {
		return replay.Record{State: replay.Done, Attempt: int(e.attempt), Response: e.response}
	}
	return replay.Record{State: replay.Pending, Attempt: int(e.attempt), LeaseLeft: e.end - now}
}

// size is what the entry counts for.
func (e *entry) size() int64 { return overhead + int64(len(e.key)+len(e.response)) }

// overhead is what an entry takes beside its key and its response: itself, its
// slots in table and queue, and what the allocator rounds up. With keys of tokens,
// and between 100,000 and a million records, 162 to 180 bytes were measured.
const overhead = 180

// size returns how many entries there are.
func (sh *shard) size() int { return len(sh.claims) + len(sh.seals) }

func (sh *shard) add(hash uint64, e *entry) {
	sh.entries.add(hash, e)
	sh.claims.push(e)
	sh.most = max(sh.most, sh.size())
	sh.grow(1, e.size())
}

func (sh *shard) remove(e *entry) {
	sh.entries.remove(sh.store.hash(e.key), e)
	if e.done {
		sh.seals.remove(e)
	} else {
		sh.claims.remove(e)
	}
	sh.grow(-1, -e.size())
}

// grow keeps the counts.
func (sh *shard) grow(entries, bytes int64) {
	sh.bytes += bytes
	sh.store.bounds.add(&sh.count, entries, bytes)
}

// shrink gives memory back after many removals, because maps and slices don't.
func (sh *shard) shrink() {
	const small = 128
	if sh.most <= small || sh.size() > sh.most/4 {
		return
	}
	entries := make(table, len(sh.entries))
	for hash, e := range sh.entries {
		entries[hash] = e
	}
	sh.entries, sh.most = entries, sh.size()
	sh.claims, sh.seals = slices.Clone(sh.claims), slices.Clone(sh.seals)
}

func (sh *shard) close() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.closed {
		return
	}
	sh.closed = true
	if sh.timer != nil && sh.timer.Stop() {
		sh.store.ticks.Done()
	}
	for key := range sh.watchers {
		sh.wake(key)
	}
	sh.entries, sh.claims, sh.seals, sh.watchers = nil, nil, nil, nil
	sh.bytes = 0
}
