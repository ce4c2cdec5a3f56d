package submittest

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/submitonce/submitonce/replay"
)

// A report tells what came of an attack.
type report struct {
	target  string
	times   int
	effects int
	groups  []*group
	tokens  int // different ones in the requests' headers
}

const (
	maxGroups = 5   // shown
	maxBody   = 300 // bytes shown
)

// text returns "" if all is well.
func (r *report) text() string {
	if r.effects == 1 && len(r.groups) == 1 && r.groups[0].panicked == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "submittest: %s, sent %d times at once and %d times one after the other\n", r.target, r.times, r.times)
	fmt.Fprintf(&b, "  the effect happened %s, want once\n", times(r.effects))
	if n := len(r.groups); n > 1 {
		fmt.Fprintf(&b, "  the answers are of %d kinds, want one\n", n)
	}
	for i, g := range r.groups {
		if i == maxGroups {
			fmt.Fprintf(&b, "\n  and %d more\n", len(r.groups)-i)
			break
		}
		g.write(&b, r.groups[0], r.times)
	}
	if hint := r.hint(); hint != "" {
		fmt.Fprintf(&b, "\n  %s\n", hint)
	}
	return b.String()
}

// write shows the group, and what sets it apart from the first one.
func (g *group) write(b *strings.Builder, first *group, timesAtOnce int) {
	when := "at once"
	if g.number > timesAtOnce {
		when = "one after the other"
	}
	fmt.Fprintf(b, "\n  %d answers, %d of them replays; the first is request %d, %s\n", g.count, g.replayed, g.number, when)
	if g != first {
		fmt.Fprintf(b, "  other in: %s\n", strings.Join(g.differs(first), ", "))
	}
	if g.panicked != nil {
		fmt.Fprintf(b, "    panic: %v\n", g.panicked)
		return
	}
	fmt.Fprintf(b, "    %d %s\n", g.response.StatusCode, http.StatusText(g.response.StatusCode))
	for line := range strings.SplitSeq(strings.TrimSpace(g.header), "\r\n") {
		if line != "" {
			fmt.Fprintf(b, "    %s\n", line)
		}
	}
	body := strings.TrimRight(string(g.body), "\n")
	switch {
	case body == "":
	case len(body) > maxBody:
		fmt.Fprintf(b, "    %.*q and %d bytes more\n", maxBody, body[:maxBody], len(body)-maxBody)
	default:
		fmt.Fprintf(b, "    %s\n", strings.ReplaceAll(body, "\n", "\n    "))
	}
}

func (g *group) differs(first *group) []string {
	var in []string
	if (g.panicked == nil) != (first.panicked == nil) {
		return []string{"that the handler panicked for one of them"}
	}
	if g.response.StatusCode != first.response.StatusCode {
		in = append(in, "status")
	}
	if string(g.body) != string(first.body) {
		in = append(in, "body")
	}
	if g.header != first.header {
		in = append(in, "header")
	}
	return in
}

// hint names the likely mistake.
func (r *report) hint() string {
	replayed := 0
	for _, g := range r.groups {
		replayed += g.replayed
		switch {
		case strings.Contains(string(g.body), replay.ProblemBase+"missing-key"):
			return "The guard finds no token: let Attack.Request set one."
		case strings.Contains(string(g.body), replay.ProblemBase+"payload-mismatch"):
			return "The guard sees different contents under one token: let Attack.Request send the same each time."
		}
	}
	first := r.groups[0]
	switch {
	case r.tokens > 1:
		return fmt.Sprintf("The requests carry %d different tokens. A page has one, however often it is submitted: "+
			"issue it once, outside of Attack.Request.", r.tokens)
	case len(r.groups) == 1 && r.effects == 0 && first.response.StatusCode >= 400:
		return "The handler refused the request; an error is no outcome, so it is run each time."
	case replayed == 0:
		return "No answer is a replay. Does the handler stand behind the guard?"
	case r.effects == 1:
		return "Headers that middleware outside the guard makes afresh can be named in Attack.Ignore; " +
			"what is inside the guard is replayed."
	}
	return ""
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
