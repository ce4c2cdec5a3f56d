package compat

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
)

// orderInChi answers with what chi knows of the request.
func (s *shop) orderInChi(w http.ResponseWriter, r *http.Request) {
	n := s.run()
	w.Header().Set("Location", fmt.Sprintf("/carts/%s/orders/%d", chi.URLParam(r, "cart"), n))
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, "order %d of cart %s: %s by %s", n, chi.URLParam(r, "cart"), r.PostFormValue("item"),
		chi.RouteContext(r.Context()).RoutePattern())
}

func TestChiRoutesAndParamsReachTheHandler(t *testing.T) {
	const pattern = "/carts/{cart:[0-9]+}/orders"
	mounts := map[string]func(r chi.Router, s *shop){
		"router.Use": func(r chi.Router, s *shop) {
			r.Use(s.once)
			r.Post(pattern, s.orderInChi)
		},
		"With": func(r chi.Router, s *shop) { r.With(s.once).Post(pattern, s.orderInChi) },
		"Group": func(r chi.Router, s *shop) {
			r.Group(func(r chi.Router) {
				r.Use(s.once)
				r.Post(pattern, s.orderInChi)
			})
		},
		"Group and With, twice the same guard": func(r chi.Router, s *shop) {
			r.Group(func(r chi.Router) {
				r.Use(s.once)
				r.With(s.once).Post(pattern, s.orderInChi)
			})
		},
		"Route": func(r chi.Router, s *shop) {
			r.Route("/carts/{cart:[0-9]+}", func(r chi.Router) {
				r.Use(s.once)
				r.Post("/orders", s.orderInChi)
			})
		},
		"around a mounted router": func(r chi.Router, s *shop) {
			carts := chi.NewRouter()
			carts.Post("/{cart:[0-9]+}/orders", s.orderInChi)
			r.With(s.once).Mount("/carts", carts)
		},
	}
	for name, mount := range mounts {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			router := chi.NewRouter()
			mount(router, s)
			s.serve(router)
			want := "order %d of cart 7: tea by " + pattern
			if name == "around a mounted router" {
				want = "order %d of cart 7: tea by /carts/{cart:[0-9]+}/orders"
			}
			s.runsOnce(request{path: "/carts/7/orders", body: "item=tea"}, 201, want)
		})
	}
}

func TestChiAnswersForItself(t *testing.T) {
	s := newShop(t)
	router := chi.NewRouter()
	router.Use(s.once)
	router.Post("/orders", s.orderInChi)
	router.Get("/orders", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "all orders") })
	s.serve(router)

	s.answers(request{method: "GET", path: "/orders"}, 200, "all orders")
	r := request{path: "/nowhere", token: s.token(), body: "item=tea"}
	s.answers(r, 404, "404 page not found\n")
	r.method, r.path = "DELETE", "/orders"
	if a := s.answers(r, 405, ""); len(a.header.Values("Allow")) == 0 {
		t.Error("chi's Allow header is missing")
	}
	r.method = "POST" // neither was an outcome
	s.answers(r, 201, "order 1 of cart : tea by /orders")
}

func TestChiMiddlewareOutside(t *testing.T) {
	s := newShop(t)
	var logs locked
	var patterns locked
	router := chi.NewRouter()
	router.Use(
		middleware.RequestID,
		func(next http.Handler) http.Handler { // as many do, for what a proxy logs
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Request-Id", middleware.GetReqID(r.Context()))
				next.ServeHTTP(w, r)
				fmt.Fprintln(&patterns, chi.RouteContext(r.Context()).RoutePattern())
			})
		},
		middleware.RequestLogger(newFormatter(&logs)),
		middleware.Recoverer,
		middleware.Timeout(time.Minute),
		middleware.Compress(5),
	)
	router.With(s.once).Post("/orders/{kind}", func(w http.ResponseWriter, r *http.Request) {
		n := s.run()
		if chi.URLParam(r, "kind") == "broken" && n == 1 {
			panic("a bug")
		}
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "order %d: %s", n, strings.Repeat("tea ", 500))
	})
	s.serve(router)

	r := request{path: "/orders/broken", token: s.token()}
	s.answers(r, 500, "")
	zipped := r
	zipped.header = http.Header{"Accept-Encoding": {"gzip"}}
	want := "order 2: " + strings.Repeat("tea ", 500)

	// The same outcome, for each in the encoding that it accepts.
	first, again, plain := s.send(zipped), s.send(zipped), s.answers(r, 201, want)
	for i, a := range []answer{first, again} {
		if a.status != 201 || a.header.Get("Content-Encoding") != "gzip" || gunzip(t, a.body) != want {
			t.Errorf("answer %d: %d %v, want a zipped 201", i, a.status, a.header)
		}
		if a.replayed() != (i == 1) {
			t.Errorf("answer %d: replayed is %v", i, a.replayed())
		}
	}
	if enc := plain.header.Get("Content-Encoding"); enc != "" {
		t.Errorf("answer to a client without gzip is in %q", enc)
	}
	if a, b := first.header.Get("X-Request-Id"), again.header.Get("X-Request-Id"); a == "" || a == b {
		t.Errorf("request ids %q and %q: want one for each request", a, b)
	}
	s.ran(2)
	s.until("four lines", func() bool { return strings.Count(patterns.String(), "\n") == 4 })
	if got, want := patterns.String(), strings.Repeat("/orders/{kind}\n", 4); got != want {
		t.Errorf("middleware outside saw the patterns %q, want %q", got, want)
	}
	for status, want := range map[string]int{" - 500 ": 1, " - 201 ": 3} {
		if n := strings.Count(logs.String(), status); n != want {
			t.Errorf("log has %d lines with%s, want %d:\n%s", n, status, want, logs.String())
		}
	}
	if e := s.errors.String(); e != "" {
		t.Errorf("the server complains: %s", e)
	}
}

func TestChiMiddlewareInside(t *testing.T) {
	s := newShop(t)
	var logs locked
	router := chi.NewRouter()
	router.Use(s.once)
	router.Use(
		middleware.RequestLogger(newFormatter(&logs)),
		middleware.Recoverer,
		middleware.Timeout(time.Minute),
	)
	router.Post("/orders", func(w http.ResponseWriter, _ *http.Request) {
		n := s.run()
		if n == 1 {
			panic("a bug")
		}
		w.(http.Flusher).Flush()
		fmt.Fprintf(w, "order %d", n)
	})
	s.serve(router)

	r := request{path: "/orders", token: s.token()}
	s.answers(r, 500, "") // by Recoverer: no outcome
	s.answers(r, 200, "order 2")
	if a := s.answers(r, 200, "order 2"); !a.replayed() {
		t.Error("the duplicate is not marked as a replay")
	}
	s.runsOnce(request{path: "/orders"}, 200, "order %d")
	if n := strings.Count(logs.String(), "\n"); n < 4 {
		t.Errorf("log has %d lines, want one for each run at least:\n%s", n, logs.String())
	}
	if n := strings.Count(logs.String(), " - 200 "); n != 3 {
		t.Errorf("log has %d lines with 200, want one for each run that answered it:\n%s", n, logs.String())
	}
}

// Compression belongs outside. Inside, the outcome is kept as the first client
// wanted it, and unzipped for those that want it plain.
func TestChiCompressInsideServesPlainClientsToo(t *testing.T) {
	s := newShop(t)
	router := chi.NewRouter()
	router.With(s.once, middleware.Compress(5)).Post("/orders", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprintf(w, "order %d: %s", s.run(), strings.Repeat("tea ", 500))
	})
	s.serve(router)
	r := request{path: "/orders", token: s.token(), header: http.Header{"Accept-Encoding": {"gzip"}}}
	want := "order 1: " + strings.Repeat("tea ", 500)
	for range 2 {
		if a := s.send(r); a.status != 200 || a.header.Get("Content-Encoding") != "gzip" || gunzip(t, a.body) != want {
			t.Errorf("answer is %d %v, want a zipped 200", a.status, a.header)
		}
	}
	r.header = nil
	s.answers(r, 200, want)
	s.ran(1)
}

func TestChiTimeoutInsideReleasesTheToken(t *testing.T) {
	s := newShop(t)
	router := chi.NewRouter()
	router.With(s.once, middleware.Timeout(20*time.Millisecond)).Post("/orders", func(w http.ResponseWriter, r *http.Request) {
		n := s.run()
		if n == 1 {
			<-r.Context().Done()
			return
		}
		fmt.Fprintf(w, "order %d", n)
	})
	s.serve(router)
	r := request{path: "/orders", token: s.token()}
	s.answers(r, 504, "")
	s.answers(r, 200, "order 2")
	if a := s.answers(r, 200, "order 2"); !a.replayed() {
		t.Error("the duplicate is not marked as a replay")
	}
}

// Outside, chi's Timeout ends the wait of duplicates but not the handler, which
// has its time from Config.HandlerTimeout: its effect may have happened.
func TestChiTimeoutOutsideLeavesTheHandlerAlone(t *testing.T) {
	s := newShop(t)
	goOn := make(chan struct{})
	router := chi.NewRouter()
	router.Use(middleware.Timeout(50 * time.Millisecond))
	router.With(s.once).Post("/orders", func(w http.ResponseWriter, r *http.Request) {
		n := s.run()
		<-goOn
		if err := r.Context().Err(); err != nil {
			t.Errorf("the handler's context has ended: %v", err)
		}
		fmt.Fprintf(w, "order %d", n)
	})
	s.serve(router)

	r := request{path: "/orders", token: s.token()}
	first := make(chan answer, 1)
	go func() { first <- s.send(r) }()
	s.until("the first run", func() bool { return s.runs.Load() == 1 })
	if a := s.send(r); a.status != 409 || a.header.Get("Retry-After") == "" {
		t.Errorf("duplicate beyond chi's timeout: %d %v, want 409 with Retry-After", a.status, a.header)
	}
	close(goOn)
	if a := <-first; a.status != 200 || a.body != "order 1" {
		t.Errorf("first answer is %d %q, want the handler's", a.status, a.body)
	}
	if a := s.answers(r, 200, "order 1"); !a.replayed() {
		t.Error("the retry is not marked as a replay")
	}
	s.ran(1)
}

// newFormatter returns chi's own one, without its stack traces on standard error.
func newFormatter(w io.Writer) middleware.LogFormatter {
	return formatter{&middleware.DefaultLogFormatter{Logger: log.New(w, "", 0), NoColor: true}}
}

type formatter struct{ middleware.LogFormatter }

func (f formatter) NewLogEntry(r *http.Request) middleware.LogEntry {
	return entry{f.LogFormatter.NewLogEntry(r)}
}

type entry struct{ middleware.LogEntry }

func (entry) Panic(any, []byte) {}

func gunzip(t *testing.T, s string) string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader([]byte(s)))
	if err != nil {
		t.Errorf("not in gzip: %v", err)
		return ""
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Errorf("not in gzip: %v", err)
	}
	return string(b)
}
