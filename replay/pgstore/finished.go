package pgstore

import (
	"hash/maphash"
	"sync"
)

// finishedKeys is how many keys a generation of finished holds.
const finishedKeys = 4096

// finished remembers the keys that this process has lately seen done, so that a
// duplicate of one of them is asked for by a plain read, which costs the server
// half of a claim. It is a hint, right or wrong: what counts is what the read
// finds. Duplicates come in bursts, and mostly to the same process.
type finished struct {
	seed maphash.Seed

	mu       sync.Mutex
	now, old map[uint64]struct{} // hashes of keys, in two generations; guarded by mu
}

func newFinished() *finished {
	return &finished{seed: maphash.MakeSeed(), now: make(map[uint64]struct{})}
}

// has reports whether key has been done lately.
func (f *finished) has(key string) bool {
	h := maphash.String(f.seed, key)
	f.mu.Lock()
	defer f.mu.Unlock()
	_, now := f.now[h]
	_, old := f.old[h]
	return now || old
}

// add remembers key.
func (f *finished) add(key string) {
	h := maphash.String(f.seed, key)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now[h] = struct{}{}
	if len(f.now) >= finishedKeys {
		f.now, f.old = make(map[uint64]struct{}), f.now
	}
}

// remove forgets key, whose record is gone.
func (f *finished) remove(key string) {
	h := maphash.String(f.seed, key)
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.now, h)
	delete(f.old, h)
}
