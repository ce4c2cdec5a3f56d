package compat

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestPatternsAndPathValuesReachTheHandler(t *testing.T) {
	const pattern = "POST /carts/{cart}/items/{path...}"
	mounts := map[string]func(s *shop, h http.Handler) http.Handler{
		"on the route": func(s *shop, h http.Handler) http.Handler {
			app := http.NewServeMux()
			app.Handle(pattern, s.once(h))
			return app
		},
		"around the mux": func(s *shop, h http.Handler) http.Handler {
			app := http.NewServeMux()
			app.Handle(pattern, h)
			return s.once(app)
		},
		"between two muxes": func(s *shop, h http.Handler) http.Handler {
			inner := http.NewServeMux()
			inner.Handle(pattern, h)
			app := http.NewServeMux()
			app.Handle("/shop/", http.StripPrefix("/shop", s.once(inner)))
			app.Handle("/", s.once(inner))
			return app
		},
	}
	for name, mount := range mounts {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			var seen locked
			app := mount(s, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n := s.run()
				w.Header().Set("Location", fmt.Sprintf("/orders/%d", n))
				http.SetCookie(w, &http.Cookie{Name: "last", Value: fmt.Sprint(n)})
				w.WriteHeader(http.StatusCreated)
				fmt.Fprintf(w, "order %d of cart %s: %s by %s", n, r.PathValue("cart"), r.PathValue("path"), r.Pattern)
			}))
			s.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				app.ServeHTTP(w, r)
				fmt.Fprintln(&seen, r.Pattern)
			}))
			r := request{path: "/carts/7/items/tea/green%20tea"}
			s.runsOnce(r, 201, "order %d of cart 7: tea/green tea by "+pattern)
			if name == "between two muxes" {
				r.path = "/shop" + r.path
				s.runsOnce(r, 201, "order %d of cart 7: tea/green tea by "+pattern)
			} else if n := strings.Count(seen.String(), pattern+"\n"); name == "on the route" && n != 6 || n < 2 {
				t.Errorf("outside, the pattern was seen %d times, want once for each run at least", n)
			}
		})
	}
}

func TestOtherMethodsGoPastTheGuard(t *testing.T) {
	s := newShop(t)
	app := http.NewServeMux()
	app.Handle("POST /orders", s.once(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "order %d", s.run())
	})))
	app.Handle("GET /orders", s.once(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "all orders")
	})))
	s.serve(app)
	r := request{method: "GET", path: "/orders", token: s.token()}
	s.answers(r, 200, "all orders")
	r.method = "PUT"
	if a := s.answers(r, 405, "Method Not Allowed\n"); a.header.Get("Allow") != "GET, HEAD, POST" {
		t.Errorf("Allow is %q", a.header.Get("Allow"))
	}
	r.method = "POST"
	s.answers(r, 200, "order 1")
}

// The client is told that it took too long, and its retry gets the outcome.
func TestTimeoutHandlerOutsideLeavesTheHandlerAlone(t *testing.T) {
	s := newShop(t)
	goOn := make(chan struct{})
	app := http.NewServeMux()
	app.Handle("POST /carts/{cart}/orders", s.once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := s.run()
		<-goOn
		fmt.Fprintf(w, "order %d of cart %s", n, r.PathValue("cart"))
	})))
	s.serve(http.TimeoutHandler(app, 50*time.Millisecond, "late"))
	r := request{path: "/carts/7/orders", token: s.token()}
	for i, a := range s.together(r, 2) {
		if a.status != 503 || a.body != "late" {
			t.Errorf("answer %d: %d %q, want TimeoutHandler's 503", i, a.status, a.body)
		}
	}
	close(goOn)
	s.until("the outcome", func() bool { return s.send(r).status == 200 })
	if a := s.answers(r, 200, "order 1 of cart 7"); !a.replayed() {
		t.Error("the retry is not marked as a replay")
	}
	s.ran(1)
}

// Inside, TimeoutHandler's 503 is the handler's answer, which is no outcome: the
// retry runs. What the first run still does is nobody's answer any more.
func TestTimeoutHandlerInsideReleasesTheToken(t *testing.T) {
	s := newShop(t)
	ended := make(chan struct{})
	app := http.NewServeMux()
	app.Handle("POST /carts/{cart}/orders", s.once(http.TimeoutHandler(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			n := s.run()
			if n == 1 {
				<-r.Context().Done()
				defer close(ended)
			}
			w.Header().Set("X-Order", fmt.Sprint(n))
			fmt.Fprintf(w, "order %d of cart %s", n, r.PathValue("cart"))
		}), 100*time.Millisecond, "late")))
	s.serve(app)
	r := request{path: "/carts/7/orders", token: s.token()}
	s.answers(r, 503, "late")
	<-ended
	s.answers(r, 200, "order 2 of cart 7")
	if a := s.answers(r, 200, "order 2 of cart 7"); !a.replayed() || a.header.Get("X-Order") != "2" {
		t.Errorf("the duplicate's header is %v, want a replay of order 2", a.header)
	}
	s.runsOnce(request{path: "/carts/8/orders"}, 200, "order %d of cart 8")
}

// The handler hears of the limit as it would without a guard, and nothing that it
// answers to half a request is an outcome, not even a 200.
func TestMaxBytesHandlerOutsideIsHeardByTheHandler(t *testing.T) {
	s := newShop(t)
	app := http.NewServeMux()
	app.Handle("POST /orders", s.once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := s.run()
		var limit *http.MaxBytesError
		if err := r.ParseForm(); errors.As(err, &limit) {
			fmt.Fprintf(w, "more than %d bytes", limit.Limit)
			return
		}
		fmt.Fprintf(w, "order %d: %s", n, r.PostFormValue("item"))
	})))
	s.serve(http.MaxBytesHandler(app, 1000))
	r := request{path: "/orders", token: s.token(), body: "item=" + strings.Repeat("x", 2000)}
	s.answers(r, 200, "more than 1000 bytes")
	r.body = "item=tea"
	s.answers(r, 200, "order 2: tea")
	if a := s.answers(r, 200, "order 2: tea"); !a.replayed() {
		t.Error("the duplicate is not marked as a replay")
	}
}

func TestCrossOriginProtectionOutside(t *testing.T) {
	s := newShop(t)
	app := http.NewServeMux()
	app.Handle("POST /orders", s.once(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "order %d", s.run())
	})))
	s.serve(http.NewCrossOriginProtection().Handler(app))
	r := request{path: "/orders", token: s.token(), header: http.Header{"Sec-Fetch-Site": {"cross-site"}}}
	if a := s.send(r); a.status != 403 {
		t.Errorf("another site is answered with %d, want 403", a.status)
	}
	s.ran(0)
	r.header = http.Header{"Sec-Fetch-Site": {"same-origin"}}
	s.answers(r, 200, "order 1")
	if a := s.answers(r, 200, "order 1"); !a.replayed() {
		t.Error("the duplicate is not marked as a replay")
	}
}
