package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/submitonce/submitonce/replay"
)

// A gate lets a test hold a handler, and see that requests have come in.
type gate struct {
	entered chan struct{} // one value for each handler that has begun
	open    chan struct{}
	over    <-chan struct{} // the test has ended, well or not
	arrived atomic.Int64    // requests before the guard
}

func newGate(s *site) *gate {
	return &gate{entered: make(chan struct{}, 100), open: make(chan struct{}), over: s.Context().Done()}
}

// hold blocks a handler until the gate is opened.
func (g *gate) hold() {
	g.entered <- struct{}{}
	select {
	case <-g.open:
	case <-g.over:
	}
}

// arrivals is middleware outside the guard that counts requests.
func (g *gate) arrivals(_ Exchange, next func() error) error {
	g.arrived.Add(1)
	return next()
}

// await waits until n requests have reached the guard.
func (g *gate) await(s *site, n int64) {
	s.Helper()
	s.until(fmt.Sprintf("%d requests at the guard", n), func() bool { return g.arrived.Load() >= n })
}

// until waits for what is going to happen, and fails if it does not.
func (s *site) until(what string, ok func() bool) {
	s.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); !ok(); <-tick.C {
		if time.Now().After(end) {
			s.Fatalf("still waiting for %s", what)
		}
	}
}

func inFlightCases() []testCase {
	return []testCase{
		{name: "C01 C06 R001 overlapping duplicates get the one outcome", run: func(s *site) {
			g := newGate(s)
			s.open(App{Outer: []Middleware{g.arrivals}, Routes: s.route(func(x Exchange) error {
				g.hold()
				return x.JSON(201, map[string]int{"order_no": 1})
			})}, replay.Config{})
			r := request{token: s.token(), body: "x"}
			owner := s.sent(r)
			<-g.entered
			var waiting []<-chan result
			for range 10 {
				waiting = append(waiting, s.sent(r))
			}
			g.await(s, 11)
			close(g.open)
			first := <-owner
			ended := time.Now()
			for _, w := range waiting {
				again := <-w
				if again.err != nil {
					s.Fatal(again.err)
				}
				s.replays(first.answer, again.answer)
			}
			if late := time.Since(ended); late > time.Second {
				s.Errorf("last duplicate was answered %v after the first, want at once", late)
			}
			s.ran(1)
		}},
		{name: "C01 1000 duplicates while the handler runs", alone: true, run: thousand},
		{name: "C04 C70 R003 R057 hang-up does not lose the outcome", run: func(s *site) {
			g := newGate(s)
			cancelled := make(chan error, 1)
			s.orders(func(x Exchange) error {
				g.hold()
				cancelled <- x.Request().Context().Err()
				return x.Text(201, "ordered")
			}, replay.Config{})
			ctx, hangUp := context.WithCancel(s.Context())
			r := request{token: s.token(), body: "x"}
			gone := r
			gone.ctx = ctx
			owner := s.sent(gone)
			<-g.entered
			hangUp()
			if res := <-owner; !errors.Is(res.err, context.Canceled) {
				s.Fatalf("first client: %v, want its own hang-up", res.err)
			}
			second := s.sent(r)
			close(g.open)
			if err := <-cancelled; err != nil {
				s.Errorf("handler's context: %v, want none", err)
			}
			again := <-second
			if again.err != nil || again.status != 201 || string(again.body) != "ordered" {
				s.Errorf("second click: %d %q (%v), want the order's page", again.status, again.body, again.err)
			}
			s.ran(1)
		}},
		{name: "KeepClientCancel hands the hang-up on", run: func(s *site) {
			entered, done := make(chan struct{}), make(chan struct{})
			s.orders(func(x Exchange) error {
				close(entered)
				<-x.Request().Context().Done()
				close(done)
				return x.Text(500, "gave up")
			}, replay.Config{KeepClientCancel: true})
			ctx, hangUp := context.WithCancel(s.Context())
			owner := s.sent(request{token: s.token(), ctx: ctx})
			<-entered
			hangUp()
			<-done
			<-owner
		}},
		{name: "C06 R005 wait has a bound", run: func(s *site) {
			g := newGate(s)
			s.orders(func(x Exchange) error {
				g.hold()
				return x.Text(201, "ordered")
			}, replay.Config{Wait: 20 * time.Millisecond})
			r := request{token: s.token(), body: "x"}
			owner := s.sent(r)
			<-g.entered
			a := s.send(r)
			s.problem(a, 409, "in-progress")
			if n, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || n < 1 || n > 30 {
				s.Errorf("Retry-After = %q, want 1 to 30", a.header.Get("Retry-After"))
			}
			close(g.open)
			first := <-owner
			s.replays(first.answer, s.send(r))
			s.ran(1)
		}},
		{name: "R006 waiter takes over from an owner that gave up", run: func(s *site) {
			g := newGate(s)
			s.open(App{Outer: []Middleware{g.arrivals}, Routes: s.route(func(x Exchange) error {
				if s.runs.Load() == 1 {
					g.hold()
					return x.Text(503, "not now")
				}
				return x.Text(201, "ordered")
			})}, replay.Config{})
			r := request{token: s.token(), body: "x"}
			owner := s.sent(r)
			<-g.entered
			ctx, hangUp := context.WithCancel(s.Context())
			leaving := r
			leaving.ctx = ctx
			b, c, d := s.sent(r), s.sent(leaving), s.sent(r)
			g.await(s, 4)
			hangUp()
			if res := <-c; !errors.Is(res.err, context.Canceled) {
				s.Errorf("leaving client: %v, want its own hang-up", res.err)
			}
			close(g.open)
			if res := <-owner; res.status != 503 {
				s.Errorf("owner gets %d, want its own 503", res.status)
			}
			for _, w := range []<-chan result{b, d} {
				if res := <-w; res.err != nil || res.status != 201 {
					s.Errorf("waiter gets %d (%v), want 201", res.status, res.err)
				}
			}
			s.ran(2)
		}},
		{name: "R014 two clicks after a validation error", run: func(s *site) {
			s.orders(func(x Exchange) error {
				if x.Form("quantity") == "0" {
					return x.JSON(422, map[string]string{"quantity": "at least 1"})
				}
				return x.JSON(201, map[string]string{"quantity": x.Form("quantity")})
			}, replay.Config{})
			form := request{token: s.token(), kind: "application/x-www-form-urlencoded", body: "quantity=0"}
			if a := s.send(form); a.status != 422 {
				s.Fatalf("empty order answers %d, want 422", a.status)
			}
			form.body = "quantity=2"
			one, two := s.sent(form), s.sent(form)
			a, b := <-one, <-two
			s.same("second click", a.answer, b.answer)
			if a.status != 201 {
				s.Errorf("corrected form answers %d, want 201", a.status)
			}
			s.ran(2)
		}},
		{name: "R098 R102 many submits at once keep their own answers", run: func(s *site) {
			s.orders(func(x Exchange) error {
				b, err := io.ReadAll(x.Request().Body)
				if err != nil {
					return err
				}
				return x.JSON(201, map[string]string{"echo": string(b)})
			}, replay.Config{})
			var wg sync.WaitGroup
			for i := range 40 {
				wg.Go(func() {
					text := strings.Repeat(fmt.Sprintf("%02d", i), 500*(1+i%7*i%7))
					r := request{token: s.token(), body: text}
					for range 3 {
						a, err := s.try(r)
						if want := `{"echo":"` + text + `"}`; err != nil || strings.TrimSpace(string(a.body)) != want {
							s.Errorf("submit %d: %d with %d bytes (%v), want its own %d", i, a.status, len(a.body), err, len(want))
						}
					}
				})
			}
			wg.Wait()
			s.ran(40)
		}},
		{name: "R073 R096 instance two waits for instance one", run: func(s *site) {
			g := newGate(s)
			app := App{Routes: s.route(func(x Exchange) error {
				g.hold()
				return x.Text(201, "ordered")
			})}
			s.open(app, replay.Config{})
			r := request{token: s.token(), body: "x"}
			owner := s.sent(r)
			<-g.entered
			calls := s.store.calls.Load()
			s.open(app, replay.Config{})
			waiting := s.sent(r)
			s.until("the second instance at the store", func() bool { return s.store.calls.Load() >= calls+2 })
			close(g.open)
			first, again := <-owner, <-waiting
			s.replays(first.answer, again.answer)
			s.ran(1)
		}},
	}
}

// thousand is the promise of the front page: one run, a thousand equal answers,
// no 409, nothing left behind.
func thousand(s *site) {
	const n = 1000
	before := goroutines()
	g := newGate(s)
	s.open(App{Outer: []Middleware{g.arrivals}, Routes: s.route(func(x Exchange) error {
		g.hold()
		x.SetHeader("Location", "/orders/1")
		return x.JSON(201, map[string]int{"order_no": 1})
	})}, replay.Config{})
	r := request{token: s.token(), kind: "application/json", body: `{"item":"tea"}`}
	answers := make([]result, n)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() { answers[i].answer, answers[i].err = s.try(r) })
	}
	g.await(s, n)
	close(g.open)
	wg.Wait()
	replays := 0
	for _, a := range answers {
		if a.err != nil {
			s.Fatal(a.err)
		}
		if a.status != http.StatusCreated || a.header.Get("Location") != "/orders/1" {
			s.Fatalf("an answer is %d with %v, want 201 with the Location", a.status, a.header)
		}
		s.same("one of a thousand", answers[0].answer, a.answer)
		if a.header.Get(replay.DefaultReplayedHeader) == "true" {
			replays++
		}
		if s.Failed() {
			return
		}
	}
	if replays != n-1 {
		s.Errorf("%d answers are replays, want %d", replays, n-1)
	}
	s.ran(1)
	s.server.Close()
	s.endsAll(before)
}
