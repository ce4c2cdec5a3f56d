package adaptertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/submitonce/submitonce/replay"
)

var errAway = errors.New("connection refused")

func storeCases() []testCase {
	return []testCase{
		{name: "handler whose transaction was undone runs again from the start", run: func(s *site) {
			var inner atomic.Int64
			s.store.undone.Store(2)
			s.open(App{
				Outer: []Middleware{fromOutside()},
				Inner: []Middleware{func(_ Exchange, next func() error) error {
					inner.Add(1)
					return next()
				}},
				Routes: s.route(func(x Exchange) error {
					n := s.runs.Load()
					x.SetHeader(fmt.Sprint("X-Run-", n), "1")
					return x.Text(200+int(n), fmt.Sprint("run ", n, " of ", x.Form("item")))
				}),
			}, replay.Config{Reruns: 2})
			r := request{token: s.token(), kind: formType, body: "item=tea"}
			first := s.send(r)
			if first.status != 203 || string(first.body) != "run 3 of tea" || first.header.Get("X-Run-3") != "1" {
				s.Errorf("answer is %d %q, want 203 of the third run", first.status, first.body)
			}
			for _, name := range []string{"X-Run-1", "X-Run-2"} {
				if first.header.Get(name) != "" {
					s.Errorf("header %s of an undone run was sent", name)
				}
			}
			again := s.send(r)
			if again.status != 203 || string(again.body) != string(first.body) {
				s.Errorf("replay is %d %q, want the first answer", again.status, again.body)
			}
			s.ran(3)
			if n := inner.Load(); n != 3 {
				s.Errorf("inner middleware ran %d times, want 3", n)
			}
		}},
		{name: "work undone for good answers 503, whatever the handler said", run: func(s *site) {
			s.store.undone.Store(1)
			s.orders(func(x Exchange) error {
				x.SetHeader("Location", "/orders/1")
				return x.Text(201, "ordered")
			}, replay.Config{})
			r := request{token: s.token()}
			a := s.send(r)
			s.problem(a, 503, "store-unavailable")
			if a.header.Get("Location") != "" {
				s.Errorf("problem has the handler's Location %q", a.header.Get("Location"))
			}
			if a := s.send(r); a.status != 201 {
				s.Errorf("retry answers %d, want 201", a.status)
			}
			s.ran(2)
		}},
		{name: "R122 store away answers 503 and runs nothing", run: func(s *site) {
			s.store.claim = func(context.Context) error { return errAway }
			s.orders(func(x Exchange) error { return x.Text(201, "ordered") }, replay.Config{})
			r := request{token: s.token()}
			s.problem(s.send(r), 503, "store-unavailable")
			s.problem(s.send(r), 503, "store-unavailable")
			s.ran(0)
		}},
		{name: "R122 fail open only where it is asked for", run: func(s *site) {
			var opened atomic.Int64
			s.store.claim = func(context.Context) error { return errAway }
			s.orders(func(x Exchange) error { return x.Text(201, x.Form("item")) }, replay.Config{
				DangerouslyFailOpen: true,
				Observe: func(_ context.Context, e replay.Event) {
					if e.Kind == replay.FailedOpen {
						opened.Add(1)
					}
				},
			})
			r := request{token: s.token(), kind: formType, body: "item=tea"}
			for range 2 {
				if a := s.send(r); a.status != 201 || string(a.body) != "tea" {
					s.Errorf("answer is %d %q, want the handler's 201 tea", a.status, a.body)
				}
			}
			s.ran(2)
			if n := opened.Load(); n != 2 {
				s.Errorf("%d events say so, want 2", n)
			}
		}},
		{name: "R124 store that hangs", run: func(s *site) {
			s.store.claim = func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			}
			s.orders(func(x Exchange) error { return x.Text(201, "ordered") }, replay.Config{
				StoreTimeout: 20 * time.Millisecond,
			})
			began := time.Now()
			s.problem(s.send(request{token: s.token()}), 503, "store-unavailable")
			if took := time.Since(began); took > 5*time.Second {
				s.Errorf("answer took %v, want about 20ms", took)
			}
			s.ran(0)
		}},
		{name: "C05 seal that fails is tried again", leases: true, run: func(s *site) {
			var tries atomic.Int64
			s.store.seal = func() error {
				if tries.Add(1) < 3 {
					return errAway
				}
				return nil
			}
			s.orders(func(x Exchange) error { return x.Text(201, "ordered") }, replay.Config{})
			r := request{token: s.token()}
			s.replays(s.send(r), s.send(r))
			s.ran(1)
		}},
		{name: "C05 seal that stays lost is logged, and the client answered", leases: true, run: func(s *site) {
			s.store.seal = func() error { return errAway }
			var log lockedBuffer
			var lost atomic.Int64
			s.orders(func(x Exchange) error { return x.Text(201, "ordered") }, replay.Config{
				SealTimeout: 50 * time.Millisecond, Wait: -1,
				Logger: slog.New(slog.NewTextHandler(&log, nil)),
				Observe: func(_ context.Context, e replay.Event) {
					if e.Kind == replay.SealLost {
						lost.Add(1)
					}
				},
			})
			tok := s.token()
			if a := s.send(request{token: tok}); a.status != 201 || string(a.body) != "ordered" {
				s.Errorf("answer is %d %q, want the handler's", a.status, a.body)
			}
			if n := lost.Load(); n != 1 {
				s.Errorf("%d events tell of the loss, want 1", n)
			}
			if !bytes.Contains([]byte(log.String()), []byte("level=ERROR")) {
				s.Errorf("log is %q, want an error", log.String())
			}
			if bytes.Contains([]byte(log.String()), []byte(tok)) {
				s.Errorf("log holds the token: %q", log.String())
			}
			// The claim stands until its lease ends, so nothing runs meanwhile.
			s.problem(s.send(request{token: tok}), 409, "in-progress")
			s.ran(1)
		}},
	}
}
