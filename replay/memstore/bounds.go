package memstore

import "sync/atomic"

// bounds are what the store may hold, and about what it holds. Shards tell it
// only when they have a step more to tell, or less, so that they do not fight
// over a cache line at each claim.
type bounds struct {
	entries, bytes bound
	_              [64]byte
}

type bound struct {
	limit int64 // of what is told, such that the rest has room below the bound
	step  int64
	_     [64]byte // keeps what changes off what is only read
	told  atomic.Int64
}

// A tally is what one shard has to tell.
type tally struct {
	entries, bytes int64
}

func (b *bounds) init(entries, bytes int64) {
	b.entries.init(entries)
	b.bytes.init(bytes)
}

func (b *bound) init(most int64) {
	b.step = most / (shardCount * shardCount) // 0 for small stores: they count exactly
	b.limit = most - shardCount*b.step
}

func (b *bounds) add(t *tally, entries, bytes int64) {
	t.entries = b.entries.tell(t.entries + entries)
	t.bytes = b.bytes.tell(t.bytes + bytes)
}

// tell returns what is left to tell.
func (b *bound) tell(n int64) int64 {
	if n > b.step || n < -b.step {
		b.told.Add(n)
		return 0
	}
	return n
}

// passed reports whether there is no room for one more entry of the shard that
// has t to tell.
func (b *bounds) passed(t *tally) bool {
	return b.entries.told.Load()+t.entries >= b.entries.limit || b.bytes.told.Load()+t.bytes >= b.bytes.limit
}

// makeRoom removes records that have expired from all shards until there is
// room, or a batch from each. No lock is held.
func (s *Store) makeRoom() {
	now := s.now()
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		sh.sweep(now, sweepBatch)
		full := s.bounds.passed(&sh.count)
		sh.mu.Unlock()
		if !full {
			return
		}
	}
}
