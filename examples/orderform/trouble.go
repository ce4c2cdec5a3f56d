package main

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// A trouble is what the page asks to happen to a request, so that its visitor
// can see what comes of it. Each is a header that only this demo knows.
type trouble struct {
	round string        // X-Demo-Round: which press of a button the request belongs to
	name  string        // X-Demo-Trouble: which button that was
	cut   string        // X-Demo-Cut: lose the first answer of all with this value
	delay time.Duration // X-Demo-Delay: how long the order takes
}

const maxTroubleDelay = 10 * time.Second

func readTrouble(h http.Header) trouble {
	clip := func(s string) string { return s[:min(len(s), 40)] }
	t := trouble{
		round: clip(h.Get("X-Demo-Round")),
		name:  clip(h.Get("X-Demo-Trouble")),
		cut:   clip(h.Get("X-Demo-Cut")),
	}
	if d, err := time.ParseDuration(h.Get("X-Demo-Delay")); err == nil {
		t.delay = min(max(d, 0), maxTroubleDelay)
	}
	return t
}

func troubleOf(ctx context.Context) trouble {
	if s := submitOf(ctx); s != nil {
		return s.trouble
	}
	return trouble{}
}

// A cutter loses answers: the shop does its work and commits it, and then the
// line goes dead before the client has heard of it. It stands outside the guard,
// as the network does.
type cutter struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (c *cutter) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if t := troubleOf(r.Context()); t.cut == "" || !c.first(t.cut) {
			next.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(lostWriter{make(http.Header)}, r)
		panic(http.ErrAbortHandler) // closes the connection without a word
	})
}

// maxCuts bounds what a cutter remembers.
const maxCuts = 10_000

func (c *cutter) first(cut string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen[cut] {
		return false
	}
	if c.seen == nil || len(c.seen) >= maxCuts {
		c.seen = make(map[string]bool)
	}
	c.seen[cut] = true
	return true
}

// A lostWriter is a http.ResponseWriter whose answer nobody gets.
type lostWriter struct{ header http.Header }

func (w lostWriter) Header() http.Header         { return w.header }
func (w lostWriter) Write(p []byte) (int, error) { return len(p), nil }
func (w lostWriter) WriteHeader(int)             {}
