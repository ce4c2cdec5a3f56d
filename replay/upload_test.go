package replay_test

import (
	"errors"
	"fmt"
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

// io.Copy takes another way through a large body than a handler that reads it.
func TestLargeBodiesAreCopiedWhole(t *testing.T) {
	sent := strings.Repeat("0123456789", 50_000)
	errFull := errors.New("the disk is full")
	s := serveHTTP(t, replay.Config{}, func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(&bounded{max: 200_000, err: errFull}, r.Body)
		var rest strings.Builder
		more, restErr := io.Copy(&rest, r.Body)
		_, _ = fmt.Fprint(w, n, " ", errors.Is(err, errFull), " ", restErr, " ", n+more <= int64(len(sent)) && strings.HasSuffix(sent, rest.String()))
	})
	tok := freshToken(t)
	for _, replayed := range []string{"", "true"} {
		resp, body := post(t, s, tok, "application/octet-stream", io.MultiReader(strings.NewReader(sent))) // chunked
		if want := "200000 true <nil> true"; resp.StatusCode != http.StatusOK || body != want || resp.Header.Get("Idempotent-Replayed") != replayed {
			t.Errorf("got %d %q, replayed %q; want 200 %q, %q", resp.StatusCode, body, resp.Header.Get("Idempotent-Replayed"), want, replayed)
		}
	}
	if resp, _ := post(t, s, tok, "application/octet-stream", io.MultiReader(strings.NewReader(sent[1:]))); resp.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("another content got %d, want 422", resp.StatusCode)
	}
}

// A bounded writer takes so much and no more.
type bounded struct {
	max int
	err error
}

func (b *bounded) Write(p []byte) (int, error) {
	if len(p) > b.max {
		n := b.max
		b.max = 0
		return n, b.err
	}
	b.max -= len(p)
	return len(p), nil
}
