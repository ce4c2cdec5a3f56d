package replay_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/replay/memstore"
)

// A nullWriter is a response writer that costs nothing, so that what is measured
// is the guard.
type nullWriter struct{ h http.Header }

func (w *nullWriter) Header() http.Header         { return w.h }
func (w *nullWriter) WriteHeader(int)             {}
func (w *nullWriter) Write(p []byte) (int, error) { return len(p), nil }

var (
	benchIn  = `{"item":"book","quantity":1,"note":"` + strings.Repeat("n", 160) + `"}`
	benchOut = []byte(strings.Repeat("o", 300))
)

func benchHandler(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Location", "/orders/1")
	h.Set("Etag", `"1"`)
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(benchOut)
}

func benchRequest(tok string) (*http.Request, *strings.Reader) {
	body := strings.NewReader(benchIn)
	r, _ := http.NewRequest(http.MethodPost, "/orders", body)
	r.RequestURI = "/orders"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Submit-Token", tok)
	return r, body
}

func BenchmarkBareHandler(b *testing.B) {
	r, body := benchRequest("")
	w := &nullWriter{http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		body.Reset(benchIn)
		clear(w.h)
		benchHandler(w, r)
	}
}

func BenchmarkFirstSubmit(b *testing.B) {
	store, err := memstore.New(memstore.Config{MaxEntries: 1 << 24, MaxBytes: 8 << 30}) // no submit may be refused
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	g := newGuard(b, store, replay.Config{})
	tokens := newTokens(b)
	r, body := benchRequest("")
	src := r.Body
	w := &nullWriter{http.Header{}}
	b.ReportAllocs()
	next := http.HandlerFunc(benchHandler)
	toks := make([]string, 100_000)
	for i := range toks {
		toks[i] = tokens.Issue("", "").Value
	}
	slot := r.Header["X-Submit-Token"]
	i := 0
	for b.Loop() {
		if i == len(toks) {
			b.StopTimer()
			for i := range toks {
				toks[i] = tokens.Issue("", "").Value
			}
			i = 0
			b.StartTimer()
		}
		slot[0] = toks[i]
		i++
		body.Reset(benchIn)
		r.Body = src
		clear(w.h)
		g.Serve(w, r, next)
	}
}

func BenchmarkReplay(b *testing.B) {
	g := newGuard(b, newMemstore(b), replay.Config{})
	r, body := benchRequest(freshToken(b))
	src := r.Body
	w := &nullWriter{http.Header{}}
	b.ReportAllocs()
	next := http.HandlerFunc(benchHandler)
	for b.Loop() {
		body.Reset(benchIn)
		r.Body = src
		clear(w.h)
		g.Serve(w, r, next)
	}
}
