package tieredstore

import (
	"sync"
	"time"
)

const (
	// breakAfter failures in a row the front is given up.
	breakAfter = 3

	// restFor is how long it is then left alone, before one call tries it.
	restFor = time.Second
)

// A breaker keeps calls away from a front that fails, so that its timeout is not
// waited for again and again.
type breaker struct {
	mu       sync.Mutex
	failures int       // in a row; guarded by mu
	until    time.Time // guarded by mu: when to try again
	trying   bool      // guarded by mu: one call is trying
}

// allow reports whether a call may go to the front. One that was allowed has to
// tell how it ended.
func (b *breaker) allow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < breakAfter {
		return true
	}
	if b.trying || time.Now().Before(b.until) {
		return false
	}
	b.trying = true
	return true
}

// succeeded reports whether the front was given up before.
func (b *breaker) succeeded() (back bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	back = b.failures >= breakAfter
	b.failures, b.trying = 0, false
	return back
}

// failed reports whether the front is given up with this failure.
func (b *breaker) failed() (givenUp bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures++
	b.trying = false
	b.until = time.Now().Add(restFor)
	return b.failures == breakAfter
}

// nothing is for a call that was broken off by its caller.
func (b *breaker) nothing() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trying = false
}
