package adaptertest

import (
	"bytes"
	"net/http"
	"reflect"
	"runtime"
	"strings"
	"time"

	"github.com/submitonce/submitonce/replay"
)

// nothingStays says that no goroutine works for a request any more: none of the
// server or the client, none of the guard. What a store started once and keeps,
// such as its listener, is its own; package storetest sees that Close ends it.
func (s *site) nothingStays() {
	s.Helper()
	var left []string
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		s.client.CloseIdleConnections()
		if left = ofRequests(); len(left) == 0 {
			return
		}
	}
	s.Errorf("%d goroutines stay:\n%s", len(left), strings.Join(left, "\n\n"))
}

// ofRequests returns the stacks of the goroutines that work for requests.
func ofRequests() (all []string) {
	server := reflect.TypeFor[http.Server]().PkgPath() + "."
	guard := reflect.TypeFor[replay.Guard]().PkgPath() + "."
	for i, stack := range stacks() {
		if i > 0 && (strings.Contains(stack, server) || strings.Contains(stack, guard)) { // 0 is who asks
			all = append(all, stack)
		}
	}
	return all
}

// stacks returns the stacks of all goroutines, the caller's first.
func stacks() []string {
	for buf := make([]byte, 1<<20); ; buf = make([]byte, 2*len(buf)) {
		if n := runtime.Stack(buf, true); n < len(buf) {
			return strings.Split(string(bytes.TrimSpace(buf[:n])), "\n\n")
		}
	}
}
