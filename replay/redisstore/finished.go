package redisstore

import (
	"hash/maphash"
	"sync/atomic"
)

// finished remembers the names that this process has lately seen done, so that a
// duplicate of one of them is asked for by a plain GET, which is cheaper than a
// claim. It is a hint, right or wrong: what counts is what the GET finds.
// Duplicates come in bursts, and mostly to the same process.
type finished struct {
	seed   maphash.Seed
	hashes [8192]atomic.Uint64 // each name has one place, which it takes from another
}

func newFinished() *finished { return &finished{seed: maphash.MakeSeed()} }

func (f *finished) place(name string) (place *atomic.Uint64, hash uint64) {
	hash = maphash.String(f.seed, name)
	return &f.hashes[hash%uint64(len(f.hashes))], hash
}

func (f *finished) has(name string) bool {
	place, hash := f.place(name)
	return place.Load() == hash
}

func (f *finished) add(name string) {
	// Only a change is written, so that processors need not take turns.
	if place, hash := f.place(name); place.Load() != hash {
		place.Store(hash)
	}
}

func (f *finished) remove(name string) {
	place, hash := f.place(name)
	place.CompareAndSwap(hash, 0)
}
