//go:build !race

package replay_test

import (
	"net/http"
	"testing"

	"github.com/submitonce/submitonce/replay"
)

// What a guard adds to the three allocations of the handler itself.
func TestAllocations(t *testing.T) {
	g := newGuard(t, newMemstore(t), replay.Config{})
	tokens := newTokens(t)
	r, body := benchRequest(tokens.Issue("", "").Value)
	src := r.Body
	w := &nullWriter{http.Header{}}
	next := http.HandlerFunc(benchHandler)
	submit := func() {
		body.Reset(benchIn)
		r.Body = src
		clear(w.h)
		g.Serve(w, r, next)
	}
	submit()
	if n := testing.AllocsPerRun(200, submit); n > 5 {
		t.Errorf("a replay: %v allocations, want at most 5", n)
	}
	const runs = 200
	toks := make([]string, 0, runs+1)
	for range cap(toks) {
		toks = append(toks, tokens.Issue("", "").Value)
	}
	first := func() {
		r.Header["X-Submit-Token"][0], toks = toks[0], toks[1:]
		submit()
	}
	if n := testing.AllocsPerRun(runs, first) - 3; n > 10 { // with the growth of maps
		t.Errorf("a first submit adds %v allocations, want at most 10", n)
	}
}
