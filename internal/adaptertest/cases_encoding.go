package adaptertest

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"

	"github.com/submitonce/submitonce/replay"
)

func encodingCases() []testCase {
	return []testCase{
		{name: "C44 R051 gzip outside", run: func(s *site) {
			app := App{Guards: []*replay.Guard{s.guard(replay.Config{})}, Routes: s.route(func(x Exchange) error {
				return x.Text(200, strings.Repeat("readable ", 1000))
			})}
			h := s.framework.Build(app)
			s.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { zipped(w, r, h) }))
			s.readableForAll(request{token: s.token(), body: "x"})
		}},
		{name: "C44 R051 gzip inside", run: func(s *site) {
			s.orders(func(x Exchange) error {
				zipped(x.Writer(), x.Request(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "text/plain; charset=utf-8")
					_, _ = io.WriteString(w, strings.Repeat("readable ", 1000))
				}))
				return nil
			}, replay.Config{})
			s.readableForAll(request{token: s.token(), body: "x"})
		}},
		{name: "C44 unknown coding inside is not sent to a client that cannot read it", run: func(s *site) {
			s.orders(func(x Exchange) error {
				x.SetHeader("Content-Encoding", "br")
				return x.Blob(200, "text/plain", []byte("not really brotli"))
			}, replay.Config{})
			r := request{token: s.token(), header: http.Header{"Accept-Encoding": {"br"}}}
			first := s.send(r)
			s.replays(first, s.send(r))
			r.header = http.Header{"Accept-Encoding": {"gzip"}}
			s.problem(s.send(r), 409, "response-not-kept")
			s.ran(1)
		}},
	}
}

// readableForAll sends r from a client that reads gzip, and then from one that
// does not.
func (s *site) readableForAll(r request) {
	s.Helper()
	want := strings.Repeat("readable ", 1000)
	for _, accepted := range []string{"gzip", "gzip", "identity"} {
		r.header = http.Header{"Accept-Encoding": {accepted}}
		a := s.send(r)
		body := string(a.body)
		if coding := a.header.Get("Content-Encoding"); coding != "" {
			zr, err := gzip.NewReader(strings.NewReader(body))
			if coding != accepted || err != nil {
				s.Fatalf("client that accepts %s gets %s (%v)", accepted, coding, err)
			}
			b, err := io.ReadAll(zr)
			if err != nil {
				s.Fatal(err)
			}
			body = string(b)
		}
		if body != want || a.header.Get("Vary") != "Accept-Encoding" {
			s.Errorf("client that accepts %s gets %d bytes with Vary %q, want the %d readable ones",
				accepted, len(body), a.header.Get("Vary"), len(want))
		}
		if a.length >= 0 && a.length != int64(len(a.body)) {
			s.Errorf("Content-Length is %d for %d bytes", a.length, len(a.body))
		}
	}
	s.ran(1)
}

// zipped is a small compression middleware.
func zipped(w http.ResponseWriter, r *http.Request, next http.Handler) {
	w.Header().Add("Vary", "Accept-Encoding")
	if r.Header.Get("Accept-Encoding") != "gzip" {
		next.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	zw := gzip.NewWriter(w)
	defer zw.Close()
	next.ServeHTTP(zipWriter{w, zw}, r)
}

type zipWriter struct {
	http.ResponseWriter
	zw *gzip.Writer
}

func (w zipWriter) WriteHeader(status int) {
	w.Header().Del("Content-Length") // no longer true
	w.ResponseWriter.WriteHeader(status)
}

func (w zipWriter) Write(b []byte) (int, error) { return w.zw.Write(b) }
