package adaptertest

import (
	"fmt"
	"net/http"
	"runtime"
	"sync/atomic"

	"github.com/submitonce/submitonce/replay"
)

func panicCases() []testCase {
	var cases []testCase
	for _, tt := range []struct {
		name            string
		outside, inside bool
	}{
		{"with recovery outside", true, false},
		{"with recovery inside", false, true},
		{"with recovery on both sides", true, true},
	} {
		cases = append(cases, testCase{name: "C03 C07 R060 panic frees the key, " + tt.name, run: func(s *site) {
			s.open(App{RecoverOutside: tt.outside, RecoverInside: tt.inside, Routes: s.route(func(x Exchange) error {
				if s.runs.Load() == 1 {
					x.SetHeader("X-Half", "1")
					panic("a bug")
				}
				return x.Text(201, "ordered")
			})}, replay.Config{})
			r := request{token: s.token(), body: "x"}
			if a := s.send(r); a.status != 500 {
				s.Errorf("panic answers %d, want 500", a.status)
			}
			first := s.send(r)
			if first.status != 201 || string(first.body) != "ordered" {
				s.Errorf("retry answers %d %q, want 201 ordered", first.status, first.body)
			}
			s.replays(first, s.send(r))
			s.ran(2)
		}})
	}
	return append(cases,
		testCase{name: "R060 the panic's own value reaches the outside", run: func(s *site) {
			type bug struct{ n int }
			value := &bug{7}
			var got atomic.Value
			app := App{Guards: []*replay.Guard{s.guard(replay.Config{})}, Routes: s.route(func(Exchange) error {
				panic(value)
			})}
			h := s.framework.Build(app)
			s.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer func() {
					got.Store(recover())
					w.WriteHeader(500)
				}()
				h.ServeHTTP(w, r)
			}))
			r := request{token: s.token()}
			for range 2 { // at once, without waiting for a lease
				if a := s.send(r); a.status != 500 {
					s.Errorf("panic answers %d, want 500", a.status)
				}
				if got.Load() != value {
					s.Errorf("recovered %v, want the handler's value", got.Load())
				}
			}
			s.ran(2)
		}},
		testCase{name: "R059 http.ErrAbortHandler cuts the connection", run: func(s *site) {
			s.open(App{RecoverOutside: s.framework.Name != "gin", Routes: s.route(func(x Exchange) error {
				if s.runs.Load() == 1 {
					_, _ = x.Writer().Write([]byte("ten bytes!"))
					panic(http.ErrAbortHandler)
				}
				return x.Text(201, "ordered")
			})}, replay.Config{})
			r := request{token: s.token(), body: "x"}
			if a, err := s.try(r); err == nil {
				s.Errorf("aborted handler answers %d %q, want a cut connection", a.status, a.body)
			}
			s.replays(s.send(r), s.send(r))
			s.ran(2)
		}},
		testCase{name: "C03 panic after writing leaves nothing of the answer", run: func(s *site) {
			s.open(App{RecoverOutside: true, Routes: s.route(func(x Exchange) error {
				_ = x.Text(201, "half an answ")
				panic("a bug")
			})}, replay.Config{})
			if a := s.send(request{token: s.token()}); a.status != 500 || string(a.body) == "half an answ" {
				s.Errorf("panic answers %d %q, want a 500", a.status, a.body)
			}
			if n := s.store.seals.Load(); n != 0 {
				s.Errorf("%d outcomes were stored, want 0", n)
			}
		}},
		testCase{name: "panic wakes the waiters", run: func(s *site) {
			g := newGate(s)
			s.open(App{Outer: []Middleware{g.arrivals}, RecoverOutside: true, Routes: s.route(func(x Exchange) error {
				if s.runs.Load() == 1 {
					g.hold()
					panic("a bug")
				}
				return x.Text(201, "ordered")
			})}, replay.Config{})
			r := request{token: s.token()}
			owner := s.sent(r)
			<-g.entered
			b, c := s.sent(r), s.sent(r)
			g.await(s, 3)
			close(g.open)
			if res := <-owner; res.status != 500 {
				s.Errorf("owner gets %d, want 500", res.status)
			}
			s.same("the other waiter's answer", (<-b).answer, (<-c).answer)
			s.ran(2)
		}},
		testCase{name: "runtime.Goexit frees the key", run: func(s *site) {
			app := App{Guards: []*replay.Guard{s.guard(replay.Config{})}, Routes: s.route(func(x Exchange) error {
				if s.runs.Load() == 1 {
					runtime.Goexit()
				}
				return x.Text(201, "ordered")
			})}
			h := s.framework.Build(app)
			s.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				done := make(chan bool, 1)
				go func() {
					ended := false
					defer func() { done <- ended }()
					h.ServeHTTP(w, r)
					ended = true
				}()
				if !<-done {
					w.WriteHeader(500)
					_, _ = fmt.Fprint(w, "gone")
				}
			}))
			r := request{token: s.token()}
			if a := s.send(r); a.status != 500 || string(a.body) != "gone" {
				s.Errorf("ended goroutine answers %d %q, want 500 gone", a.status, a.body)
			}
			s.replays(s.send(r), s.send(r))
			s.ran(2)
		}},
	)
}
