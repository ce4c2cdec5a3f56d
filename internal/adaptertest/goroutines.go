package adaptertest

import (
	"bytes"
	"runtime"
	"slices"
	"strings"
)

// goroutines returns the stacks of all goroutines but the caller's, by number.
func goroutines() map[string]string {
	for buf := make([]byte, 1<<20); ; buf = make([]byte, 2*len(buf)) {
		n := runtime.Stack(buf, true)
		if n == len(buf) {
			continue // there may be more
		}
		all := make(map[string]string)
		for i, stack := range strings.Split(string(bytes.TrimSpace(buf[:n])), "\n\n") {
			if i > 0 { // 0 is the caller
				number, _, _ := strings.Cut(strings.TrimPrefix(stack, "goroutine "), " ")
				all[number] = stack
			}
		}
		return all
	}
}

// endsAll waits until no goroutine runs that did not run before, but those that
// the store made for itself and keeps, such as its listener; package storetest
// sees that Close ends them.
func (s *site) endsAll(before map[string]string) {
	s.Helper()
	var left []string
	defer func() {
		if s.Failed() {
			s.Logf("these run still:\n%s", strings.Join(left, "\n\n"))
		}
	}()
	s.until("the new goroutines to end", func() bool {
		s.client.CloseIdleConnections()
		left = left[:0]
		for number, stack := range goroutines() {
			if _, old := before[number]; !old && !isStores(stack) {
				left = append(left, stack)
			}
		}
		return len(left) == 0
	})
}

// isStores reports whether a goroutine works for a store or its driver, and not
// for a request that is just there.
func isStores(stack string) bool {
	has := func(pkg string) bool { return strings.Contains(stack, pkg) }
	return !has("net/http.") && !has("/submitonce/replay.") && slices.ContainsFunc([]string{
		"/replay/pgstore.", "/replay/redisstore.", "/replay/sqlitestore.", "/replay/tieredstore.",
		"github.com/jackc/", "github.com/redis/", "database/sql.",
	}, has)
}
