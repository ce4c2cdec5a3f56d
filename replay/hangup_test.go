package replay_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/submitonce/submitonce/replay"
)

// A goneWriter is the way to a client that has hung up.
type goneWriter struct{ nullWriter }

func (goneWriter) Write([]byte) (int, error) { return 0, errors.New("write: broken pipe") }

// The effect has happened, whether or not the client is there for all of the
// answer.
func TestAClientThatHangsUpInALargeResponseDoesNotUndoTheEffect(t *testing.T) {
	large := make([]byte, 3<<20)
	for name, handler := range map[string]http.HandlerFunc{
		"declares its length": func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "invoice.pdf", time.Time{}, bytes.NewReader(large))
		},
		"stops at an error": func(w http.ResponseWriter, _ *http.Request) {
			for range 30 {
				if _, err := w.Write(large[:100<<10]); err != nil {
					panic(http.ErrAbortHandler)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuard(t, newMemstore(t), replay.Config{})
			tok, runs := freshToken(t), 0
			submit := func(w http.ResponseWriter) {
				r := httptest.NewRequest(http.MethodPost, "/invoices", nil)
				r.Header.Set("X-Submit-Token", tok)
				g.Serve(w, r, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					runs++
					handler(w, r)
				}))
			}
			submit(&goneWriter{nullWriter{http.Header{}}})
			w := httptest.NewRecorder()
			submit(w)
			if runs != 1 || w.Code != http.StatusConflict {
				t.Errorf("%d runs, the retry got %d; want one run, and 409 for a response that was not kept", runs, w.Code)
			}
		})
	}
}

func TestKeepClientCancelKeepsTheDeadlineOutside(t *testing.T) {
	for name, keep := range map[string]bool{"as without a guard": true, "by default": false} {
		t.Run(name, func(t *testing.T) {
			g := newGuard(t, newMemstore(t), replay.Config{KeepClientCancel: keep})
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			defer cancel()
			var err error
			var near bool
			serve(g, ctx, freshToken(t), "{}", func(_ http.ResponseWriter, r *http.Request) {
				end, ok := r.Context().Deadline()
				near = ok && time.Until(end) < time.Second
				select {
				case <-r.Context().Done():
					err = r.Context().Err()
				case <-time.After(200 * time.Millisecond):
				}
			})
			if near != keep || errors.Is(err, context.DeadlineExceeded) != keep {
				t.Errorf("the deadline outside is the handler's: %v, its error %v; want %v", near, err, keep)
			}
		})
	}
}

// A flushRecorder notes how much had come when it was flushed.
type flushRecorder struct {
	*httptest.ResponseRecorder
	at []int
}

func (f *flushRecorder) Flush() { f.at = append(f.at, f.Body.Len()) }

func TestAFlushReachesTheClientAtTheSeal(t *testing.T) {
	g := newGuard(t, newMemstore(t), replay.Config{})
	for flush, want := range map[bool]int{false: 0, true: 1} {
		r := httptest.NewRequest(http.MethodPost, "/orders", nil)
		r.Header.Set("X-Submit-Token", freshToken(t))
		w := &flushRecorder{ResponseRecorder: httptest.NewRecorder()}
		g.Serve(w, r, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "done")
			if flush {
				w.(http.Flusher).Flush()
			}
		}))
		if len(w.at) != want || want == 1 && w.at[0] != len("done") {
			t.Errorf("flushed by the handler: %v; flushed to the client at %v, want %d time behind the whole body", flush, w.at, want)
		}
	}
}
