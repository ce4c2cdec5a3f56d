package adaptertest

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/submitonce/submitonce/replay"
)

var errAway = errors.New("connection refused")

func storeCases() []testCase {
	return []testCase{
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
