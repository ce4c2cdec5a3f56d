package replay

import (
	"log/slog"
	"strings"
	"sync"
	"time"
)

// recentPayloads remembers which payloads have come of late, to find pages that
// draw a new token for each click. It is an aid for development, and bounded.
type recentPayloads struct {
	mu   sync.Mutex
	seen map[payload]sighting // guarded by mu
}

// A payload is what one subject has sent.
type payload struct {
	fingerprint
	scope string
}

type sighting struct {
	key string
	at  time.Time
}

const (
	recentFor = 10 * time.Second
	recentMax = 4096
)

func newRecentPayloads() *recentPayloads {
	return &recentPayloads{seen: make(map[payload]sighting)}
}

// warn says so if the same subject has sent the same payload under another token
// just now. A nil receiver does nothing.
func (p *recentPayloads) warn(c *call, fp fingerprint) {
	if p == nil {
		return
	}
	_, scope, ofToken := strings.Cut(c.key, ".")
	if !ofToken {
		return
	}
	sent := payload{fp, scope}
	now := time.Now()
	p.mu.Lock()
	before, ok := p.seen[sent]
	if len(p.seen) >= recentMax {
		clear(p.seen)
	}
	p.seen[sent] = sighting{c.key, now}
	p.mu.Unlock()
	if !ok || before.key == c.key || now.Sub(before.at) > recentFor {
		return
	}
	c.g.engine.log.Warn("submitonce: the same payload came twice under different tokens: "+
		"does the page draw a new token for each click? It has to draw one when it loads",
		slog.String("path", c.r.URL.Path), slog.Duration("apart", now.Sub(before.at)),
		slog.String("first", before.key), slog.String("second", c.key))
	c.g.tell(c, Event{Kind: FreshToken, Status: c.cap.status})
}
