package adaptertest

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/submitonce/submitonce/replay"
)

func timeoutCases() []testCase {
	return []testCase{
		{name: "C49 R055 http.TimeoutHandler outside", run: func(s *site) {
			g := newGate(s)
			app := App{Guards: []*replay.Guard{s.guard(replay.Config{})}, Routes: s.route(func(x Exchange) error {
				g.hold()
				x.SetHeader("X-Order", "1")
				return x.Text(201, "ordered")
			})}
			h := s.framework.Build(app)
			s.serve(http.TimeoutHandler(h, 50*time.Millisecond, "late"))
			r := request{token: s.token(), body: "x"}
			if a := s.send(r); a.status != 503 || string(a.body) != "late" {
				s.Errorf("slow handler answers %d %q, want 503 late", a.status, a.body)
			}
			close(g.open)
			s.until("the seal", func() bool { return s.store.seals.Load() == 1 })
			again := s.send(r)
			if again.status != 201 || again.header.Get("X-Order") != "1" ||
				again.header.Get(replay.DefaultReplayedHeader) != "true" {
				s.Errorf("retry answers %d %v, want a replay of the 201", again.status, again.header)
			}
			s.ran(1)
		}},
		{name: "C49 http.TimeoutHandler inside", run: func(s *site) {
			var slow sync.WaitGroup
			s.orders(func(x Exchange) error {
				first := s.runs.Load() == 1
				if first {
					slow.Add(1)
				}
				http.TimeoutHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if first {
						defer slow.Done()
						<-r.Context().Done()
						_, _ = io.Copy(io.Discard, r.Body) // it still reads when the answer has been given
					}
					w.Header().Set("X-Order", "1")
					w.WriteHeader(201)
					_, _ = io.WriteString(w, "ordered")
				}), 20*time.Millisecond, "late").ServeHTTP(x.Writer(), x.Request())
				return nil
			}, replay.Config{})
			r := request{token: s.token(), body: strings.Repeat("x", 200_000)}
			if a := s.send(r); a.status != 503 || string(a.body) != "late" {
				s.Errorf("slow handler answers %d %q, want 503 late", a.status, a.body)
			}
			slow.Wait()
			first := s.send(r)
			if first.status != 201 || first.header.Get("X-Order") != "1" {
				s.Errorf("second run answers %d %v, want 201", first.status, first.header)
			}
			s.replays(first, s.send(r))
			s.ran(2)
		}},
		{name: "HandlerTimeout ends the handler's context", run: func(s *site) {
			s.orders(func(x Exchange) error {
				<-x.Request().Context().Done()
				return x.Text(504, "took too long")
			}, replay.Config{HandlerTimeout: 20 * time.Millisecond})
			if a := s.send(request{token: s.token()}); a.status != 504 {
				s.Errorf("answer is %d, want the handler's 504", a.status)
			}
		}},
	}
}
