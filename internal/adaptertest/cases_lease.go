package adaptertest

import (
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/submitonce/submitonce/replay"
)

func leaseCases() []testCase {
	return []testCase{
		{name: "R007 lease outlives itself while the handler runs", leases: true, run: func(s *site) {
			g := newGate(s)
			var extended atomic.Int64
			s.store.extend = func() error {
				extended.Add(1)
				return nil
			}
			app := App{Routes: s.route(func(x Exchange) error {
				g.hold()
				return x.Text(201, "ordered")
			})}
			c := replay.Config{Lease: 600 * time.Millisecond}
			s.open(app, c)
			r := request{token: s.token(), body: "x"}
			owner := s.sent(r)
			<-g.entered
			s.open(app, c) // another instance, which has only the store to go by
			waiting := s.sent(r)
			s.until("two leases to pass", func() bool { return extended.Load() >= 6 })
			close(g.open)
			first, again := <-owner, <-waiting
			s.replays(first.answer, again.answer)
			s.ran(1)
		}},
		{name: "R009 Retry-After tells the rest of a dead owner's lease", leases: true, run: func(s *site) {
			s.store.extend = func() error { return errors.New("dead") }
			g := newGate(s)
			app := App{Routes: s.route(func(x Exchange) error {
				g.hold()
				return x.Text(201, "ordered")
			})}
			c := replay.Config{Lease: 3 * time.Second, Wait: -1}
			s.open(app, c)
			r := request{token: s.token(), body: "x"}
			owner := s.sent(r)
			<-g.entered
			s.open(app, c)
			a := s.send(r)
			s.problem(a, 409, "in-progress")
			if n, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || n < 1 || n > 3 {
				s.Errorf("Retry-After = %q, want 1 to 3", a.header.Get("Retry-After"))
			}
			close(g.open)
			<-owner
			s.ran(1)
		}},
		{name: "C02 C09 R011 late owner gets the outcome that stands", leases: true, run: func(s *site) {
			s.store.extend = func() error { return errors.New("no heartbeat today") }
			g := newGate(s)
			app := App{Routes: s.route(func(x Exchange) error {
				attempt := replay.Attempt(x.Request().Context())
				if attempt == 1 {
					g.hold()
				}
				x.SetHeader("X-Attempt", strconv.Itoa(attempt))
				return x.Text(201, fmt.Sprintf("attempt %d", attempt))
			})}
			c := replay.Config{Lease: 150 * time.Millisecond}
			s.open(app, c)
			r := request{token: s.token(), body: "x"}
			owner := s.sent(r)
			<-g.entered
			s.open(app, c)
			second := s.send(r)
			if string(second.body) != "attempt 2" {
				s.Fatalf("second instance answers %d %q, want attempt 2", second.status, second.body)
			}
			close(g.open)
			late := <-owner
			s.replays(second, late.answer)
			s.replays(second, s.send(r))
			s.ran(2)
		}},
	}
}
