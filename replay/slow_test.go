package replay_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/submitonce/submitonce/replay"
)

// A slowReader gives its text after a pause.
type slowReader struct {
	pause time.Duration
	text  io.Reader
}

func (s *slowReader) Read(p []byte) (int, error) {
	time.Sleep(s.pause)
	s.pause = 0
	return s.text.Read(p)
}

// A client on a bad line sends its body for longer than a store may take for its
// answer, and longer than a duplicate may wait. Neither begins before the body is
// there.
func TestASlowBodyIsNoSlowStore(t *testing.T) {
	for _, pause := range []time.Duration{2 * replay.DefaultStoreTimeout, 2 * replay.DefaultWait, 2 * replay.DefaultHandlerTimeout} {
		synctest.Test(t, func(t *testing.T) {
			g := newGuard(t, newMemstore(t), replay.Config{})
			tok := freshToken(t)
			submit := func() *httptest.ResponseRecorder {
				r := httptest.NewRequest(http.MethodPost, "/orders", &slowReader{pause, strings.NewReader("a book")})
				r.Header.Set("Content-Type", "text/plain")
				r.Header.Set("X-Submit-Token", tok)
				w := httptest.NewRecorder()
				g.Serve(w, r, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if err := r.Context().Err(); err != nil {
						t.Errorf("a body that came in for %v: the handler's context: %v", pause, err)
					}
					w.WriteHeader(http.StatusCreated)
					_, _ = io.Copy(w, r.Body)
				}))
				return w
			}
			answer(t, "first", submit(), http.StatusCreated, "a book", false)
			answer(t, "duplicate", submit(), http.StatusCreated, "a book", true)
		})
	}
}
