package replay

import (
	"log/slog"
	"sync"
	"time"
)

// recentPayloads remembers which payloads have come of late, to find pages that
// draw a new token for each click. It is an aid for development, and bounded.
type recentPayloads struct {
	mu   sync.Mutex
	seen map[fingerprint]sighting // guarded by mu; payload and scope
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
	return &recentPayloads{seen: make(map[fingerprint]sighting)}
}

// warn says so if the same subject has sent the same payload under another token
// just now. A nil receiver does nothing.
func (p *recentPayloads) warn(c *call, fp fingerprint) {
	if p == nil || !c.id.isToken {
		return
	}
	for i := range fp {
		fp[i] ^= c.id.scope[i]
	}
	now := time.Now()
	p.mu.Lock()
	before, ok := p.seen[fp]
	if len(p.seen) >= recentMax {
		clear(p.seen)
	}
	p.seen[fp] = sighting{c.id.key, now}
	p.mu.Unlock()
	if !ok || before.key == c.id.key || now.Sub(before.at) > recentFor {
		return
	}
	c.g.engine.log.Warn("submitonce: the same payload came twice under different tokens: "+
		"does the page draw a new token for each click? It has to draw one when it loads",
		slog.String("path", c.r.URL.Path), slog.Duration("apart", now.Sub(before.at)),
		slog.String("first", before.key), slog.String("second", c.id.key))
	c.g.tell(c, Event{Kind: FreshToken, Status: c.cap.status})
}
