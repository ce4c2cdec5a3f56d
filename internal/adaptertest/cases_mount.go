package adaptertest

import (
	"net/http"

	"github.com/submitonce/submitonce/replay"
)

func mountCases() []testCase {
	var cases []testCase
	for _, tt := range []struct {
		name  string
		mount Mount
	}{{"route", OnRoute}, {"group", OnGroup}, {"engine", OnEngine}} {
		cases = append(cases, testCase{name: "C22 guard on a " + tt.name + " leaves path values alone", run: func(s *site) {
			s.open(App{Mount: tt.mount, Routes: []Route{{"PUT", "/tickets/{id}/seats/{seat}", s.count(func(x Exchange) error {
				return x.JSON(200, []string{x.Param("id"), x.Param("seat")})
			})}}}, replay.Config{})
			for _, path := range []string{"/tickets/1/seats/a", "/tickets/2/seats/b%20c"} {
				r := request{token: s.token(), method: "PUT", path: path}
				first := s.send(r)
				if first.status != 200 {
					s.Errorf("%s answers %d %q, want 200", path, first.status, first.body)
				}
				s.replays(first, s.send(r))
			}
			s.ran(2)
		}})
		cases = append(cases, testCase{name: "R065 guard twice in a chain, on a " + tt.name, run: func(s *site) {
			g := s.guard(replay.Config{})
			s.open(App{Mount: tt.mount, Guards: []*replay.Guard{g, g}, Routes: s.route(func(x Exchange) error {
				return x.Text(201, x.Form("item"))
			})}, replay.Config{})
			r := request{token: s.token(), kind: formType, body: "item=tea"}
			first := s.send(r)
			if first.status != 201 || string(first.body) != "tea" {
				s.Errorf("answer is %d %q, want 201 tea", first.status, first.body)
			}
			s.replays(first, s.send(r))
			s.ran(1)
			if n := s.store.seals.Load(); n != 1 {
				s.Errorf("%d outcomes were stored, want 1", n)
			}
		}})
	}
	return append(cases,
		testCase{name: "C50 R063 R070 outer middleware sees what was sent", run: func(s *site) {
			states := make(chan State, 1)
			s.open(App{
				Outer: []Middleware{func(x Exchange, next func() error) error {
					err := next()
					states <- x.State()
					return err
				}},
				Routes: s.route(func(x Exchange) error {
					switch x.Request().Header.Get("X-Want") {
					case "error":
						replay.Seal(x.Request().Context())
						return x.Refuse(409, "taken")
					case "plain error":
						return http.ErrServerClosed
					}
					return x.Text(201, "ordered")
				}),
			}, replay.Config{})
			for _, tt := range []struct {
				name, want string
				status     int
				runs       int64
			}{{"an answer", "", 201, 1}, {"a returned error", "error", 409, 2}} {
				r := request{token: s.token(), header: http.Header{"X-Want": {tt.want}}}
				for _, which := range []string{"first", "replay"} {
					a := s.send(r)
					got, want := <-states, State{tt.status, int64(len(a.body)), true}
					if got != want || a.status != tt.status {
						s.Errorf("%s of %s: answer %d, state %+v, want %+v", which, tt.name, a.status, got, want)
					}
				}
				s.ran(tt.runs)
			}
			a := s.send(request{}) // no token
			if got, want := <-states, (State{400, int64(len(a.body)), true}); got != want {
				s.Errorf("refusal: state %+v, want %+v", got, want)
			}
			r := request{token: s.token(), header: http.Header{"X-Want": {"plain error"}}}
			if a := s.send(r); a.status != 500 {
				s.Errorf("plain error answers %d, want 500", a.status)
			}
			if got := <-states; got.Status != 500 {
				s.Errorf("plain error: state %+v, want status 500", got)
			}
		}},
		testCase{name: "R063 middleware outside goes on after its next", run: func(s *site) {
			after := make(chan int, 4)
			s.open(App{
				Outer: []Middleware{func(_ Exchange, next func() error) error {
					err := next()
					after <- 1
					return err
				}},
				Inner: []Middleware{func(_ Exchange, next func() error) error {
					err := next()
					after <- 2
					return err
				}},
				Routes: s.route(func(x Exchange) error { return x.Text(201, "ordered") }),
			}, replay.Config{})
			r := request{token: s.token()}
			s.replays(s.send(r), s.send(r))
			s.send(request{})
			for i, want := range []int{2, 1, 1, 1} {
				if got := <-after; got != want {
					s.Errorf("after-code %d is of middleware %d, want %d", i, got, want)
				}
			}
			s.ran(1)
		}},
		testCase{name: "framework's request is its own again outside", run: func(s *site) {
			same := make(chan bool, 1)
			s.open(App{
				Outer: []Middleware{func(x Exchange, next func() error) error {
					r, w := x.Request(), x.Writer()
					defer func() {
						recovered := recover()
						same <- x.Request() == r && x.Writer() == w
						if recovered != nil {
							x.Writer().WriteHeader(500)
						}
					}()
					return next()
				}},
				Routes: s.route(func(x Exchange) error {
					switch x.Request().Header.Get("X-Want") {
					case "panic":
						panic("a bug")
					case "error":
						return x.Refuse(400, "no")
					}
					return x.Text(201, "ordered")
				}),
			}, replay.Config{})
			for _, want := range []string{"", "error", "panic"} {
				s.send(request{token: s.token(), header: http.Header{"X-Want": {want}}})
				if !<-same {
					s.Errorf("%q: request and writer are not those of before", want)
				}
			}
		}},
	)
}
