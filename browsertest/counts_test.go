package browsertest

import (
	"fmt"
	"strings"
	"time"

	"github.com/submitonce/submitonce/token"
)

func (s *shop) until(what string, holds func() bool, state ...func() string) {
	s.t.Helper()
	deadline := time.After(patience)
	for tick := time.NewTicker(15 * time.Millisecond); ; {
		if holds() {
			tick.Stop()
			return
		}
		select {
		case <-deadline:
			tick.Stop()
			report := s.report()
			for _, f := range state {
				report += "\n" + f()
			}
			s.t.Fatalf("not in %v: %s\n%s", patience, what, report)
		case <-tick.C:
		}
	}
}

func (s *shop) waitForPosts(n int) {
	s.t.Helper()
	s.until(fmt.Sprintf("%d submits", n), func() bool { return len(s.seen()) >= n })
}

func (s *shop) waitForAnswers(n int) {
	s.t.Helper()
	s.until(fmt.Sprintf("%d answers", n), func() bool {
		answered := 0
		for _, p := range s.seen() {
			if p.status != 0 {
				answered++
			}
		}
		return answered >= n
	})
}

func (s *shop) waitForRuns(n int) {
	s.t.Helper()
	s.until(fmt.Sprintf("%d handler runs", n), func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.runs >= n
	})
}

func (s *shop) seen() []post {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]post, len(s.posts))
	for i, p := range s.posts {
		all[i] = *p
	}
	return all
}

func (s *shop) report() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "orders %q, %d runs, %d tokens drawn, %d asked about; submits:", s.orders, s.runs, s.drawn, s.asked)
	for _, p := range s.posts {
		fmt.Fprintf(&b, "\n  %s %q -> %d, replay %t", token.Redact(p.token), p.content, p.status, p.replay)
	}
	return b.String()
}

func (s *shop) wantOrders(want ...string) {
	s.t.Helper()
	s.mu.Lock()
	got := fmt.Sprintf("%q", s.orders)
	s.mu.Unlock()
	if got != fmt.Sprintf("%q", want) {
		s.t.Fatalf("want the orders %q; %s", want, s.report())
	}
}

func (s *shop) wantOneToken(n int) {
	s.t.Helper()
	all := s.seen()
	if len(all) != n {
		s.t.Fatalf("want %d submits; %s", n, s.report())
	}
	for _, p := range all {
		if p.token == "" || p.token != all[0].token {
			s.t.Fatalf("want one token; %s", s.report())
		}
	}
}
