package replay_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/submitonce/submitonce/replay"
)

// Requests work in memory that others have worked in before. Handlers that leave a
// reader of their body behind, requests that are refused, and replays must not see
// anything of each other.
func TestWhatIsLentFromRequestToRequestStaysApart(t *testing.T) {
	g := newGuard(t, newMemstore(t), replay.Config{OnError: func(w http.ResponseWriter, r *http.Request, err error) {
		b, _ := io.ReadAll(r.Body) // as one that shows the form again
		w.WriteHeader(replay.ProblemOf(err).Status)
		_, _ = w.Write(b)
	}})
	var behind sync.WaitGroup
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.Header.Get("X-Name")
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("%s: body: %v", name, err)
		}
		w.Header().Set("X-Name", name)
		w.Header().Set("Location", "/"+name)
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(b)
		if len(b)%3 == 0 {
			behind.Go(func() {
				for {
					if _, err := r.Body.Read(make([]byte, 1)); errors.Is(err, http.ErrBodyReadAfterClose) {
						return
					}
				}
			})
		}
	})
	submit := func(name, tok, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Submit-Token", tok)
		r.Header.Set("X-Name", name)
		w := httptest.NewRecorder()
		g.Serve(w, r, handler)
		return w
	}
	var clients sync.WaitGroup
	for c := range 8 {
		clients.Go(func() {
			for i := range 200 {
				name := fmt.Sprintf("%d-%d", c, i)
				body := strings.Repeat(name+" ", 1+i*i%700)
				tok := freshToken(t)
				for n, want := range []int{http.StatusCreated, http.StatusCreated, http.StatusUnprocessableEntity, http.StatusCreated} {
					sent := body
					if want == http.StatusUnprocessableEntity {
						sent = "not " + body
					}
					w := submit(name, tok, sent)
					if w.Code != want || w.Body.String() != sent {
						t.Errorf("%s, submit %d: %d and %d bytes, want %d and its own %d", name, n+1, w.Code, w.Body.Len(), want, len(sent))
					}
					if want == http.StatusCreated && (w.Header().Get("X-Name") != name || w.Header().Get("Location") != "/"+name) {
						t.Errorf("%s, submit %d: header %v", name, n+1, w.Header())
					}
				}
			}
		})
	}
	clients.Wait()
	behind.Wait()
}
