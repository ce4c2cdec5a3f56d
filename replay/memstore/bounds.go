package memstore

import (
	"sync/atomic"
	"time"
)

// bounds are what the store may hold, and about what it holds. The counts are
// written now and then only, so that shards do not fight over a cache line at
// each claim: what a shard has not told yet is less than a step.
type bounds struct {
	entries, bytes bound
	_              [64]byte // keeps the counts off what is only read
}

type bound struct {
	limit int64 // what the shards may tell before they could hold more than the bound
	step  int64
	_     [64]byte
	told  atomic.Int64
}

func (b *bounds) init(entries, bytes int64) {
	b.entries.init(entries)
	b.bytes.init(bytes)
}

func (b *bound) init(most int64) {
	b.step = most / (shardCount * shardCount) // 0 for small stores: they count exactly
	b.limit = most - shardCount*b.step
}

// passed reports whether there is no room for one more. mine is what the shard
// that asks has not told yet.
func (b *bound) passed(mine int64) bool { return b.told.Load()+mine >= b.limit }

// A tally is what one shard holds more, or less, than it has told.
type tally struct {
	entries, bytes int64
}

func (t *tally) add(b *bounds, entries, bytes int64) {
	t.entries += entries
	t.bytes += bytes
	t.entries = b.entries.tell(t.entries, b.entries.step)
	t.bytes = b.bytes.tell(t.bytes, b.bytes.step)
}

// tell tells n if it is more than step, and returns what is left to tell.
func (b *bound) tell(n, step int64) int64 {
	if n > step || n < -step {
		b.told.Add(n)
		return 0
	}
	return n
}

// room reports whether the shard may have one more entry, after it has removed
// what has expired, if need be. mu is held.
func (sh *shard) room(now time.Duration) bool {
	b, t := &sh.store.bounds, &sh.count
	if !b.entries.passed(t.entries) && !b.bytes.passed(t.bytes) {
		return true
	}
	sh.sweep(now, sweepBatch)
	t.entries = b.entries.tell(t.entries, 0)
	t.bytes = b.bytes.tell(t.bytes, 0)
	return !b.entries.passed(0) && !b.bytes.passed(0)
}
