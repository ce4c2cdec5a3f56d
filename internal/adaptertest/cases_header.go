package adaptertest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/submitonce/submitonce/replay"
)

// fromOutside is middleware outside the guard, as CORS, request ids and CSRF
// cookies are.
func fromOutside() Middleware {
	var n atomic.Int64
	return func(x Exchange, next func() error) error {
		h := x.Writer().Header()
		h.Set("X-Request-Id", fmt.Sprint(n.Add(1)))
		h.Set("Access-Control-Allow-Origin", x.Request().Header.Get("Origin"))
		h.Add("Vary", "Origin")
		http.SetCookie(x.Writer(), &http.Cookie{Name: "csrf", Value: fmt.Sprint(n.Load())})
		return next()
	}
}

func headerCases() []testCase {
	return []testCase{
		{name: "C42 R035 outer middleware's headers are fresh", run: func(s *site) {
			s.open(App{Outer: []Middleware{fromOutside()}, Routes: s.route(func(x Exchange) error {
				h := x.Writer().Header()
				h.Add("Vary", "Accept-Language")
				http.SetCookie(x.Writer(), &http.Cookie{Name: "cart", Value: "empty"})
				h.Set("X-Order", "1")
				return x.Text(201, "ordered")
			})}, replay.Config{})
			tok := s.token()
			for i, origin := range []string{"https://a.example", "https://b.example"} {
				a := s.send(request{token: tok, header: http.Header{"Origin": {origin}}})
				want := http.Header{
					"X-Request-Id":                {fmt.Sprint(i + 1)},
					"Access-Control-Allow-Origin": {origin},
					"Vary":                        {"Origin", "Accept-Language"},
					"Set-Cookie":                  {fmt.Sprintf("csrf=%d", i+1), "cart=empty"},
					"X-Order":                     {"1"},
				}
				for name, values := range want {
					if got := a.header[name]; !slices.Equal(got, values) {
						s.Errorf("request %d: %s = %q, want %q", i+1, name, got, values)
					}
				}
			}
			s.ran(1)
		}},
		{name: "C42 handler may change and remove outer headers", run: func(s *site) {
			s.open(App{Outer: []Middleware{fromOutside()}, Routes: s.route(func(x Exchange) error {
				h := x.Writer().Header()
				h.Del("X-Request-Id")
				h.Set("Access-Control-Allow-Origin", "*")
				return x.NoContent(204)
			})}, replay.Config{})
			r := request{token: s.token()}
			for range 2 {
				a := s.send(r)
				if got := a.header.Values("X-Request-Id"); got != nil {
					s.Errorf("X-Request-Id = %q, want none", got)
				}
				if got := a.header["Access-Control-Allow-Origin"]; !slices.Equal(got, []string{"*"}) {
					s.Errorf("Access-Control-Allow-Origin = %q, want *", got)
				}
			}
		}},
		{name: "C42 header that outer middleware sets after the answer is its own", run: func(s *site) {
			s.open(App{
				Outer: []Middleware{func(x Exchange, next func() error) error {
					err := next()
					x.SetHeader("X-After", "1") // too late, the answer has been given
					return err
				}},
				Routes: s.route(func(x Exchange) error { return x.Text(200, "done") }),
			}, replay.Config{})
			r := request{token: s.token()}
			first, again := s.send(r), s.send(r)
			s.replays(first, again)
			if got := again.header.Values("X-After"); got != nil {
				s.Errorf("X-After = %q, want none", got)
			}
		}},
		{name: "R033 challenges are never kept, and a filter drops more", run: func(s *site) {
			s.orders(func(x Exchange) error {
				replay.Seal(x.Request().Context())
				x.SetHeader("WWW-Authenticate", `Basic realm="a"`)
				x.SetHeader("X-Kept", "1")
				http.SetCookie(x.Writer(), &http.Cookie{Name: "session", Value: "secret"})
				return x.Text(401, "who are you?")
			}, replay.Config{DropHeaders: []string{"set-cookie"}})
			r := request{token: s.token()}
			first, again := s.send(r), s.send(r)
			for _, name := range []string{"Www-Authenticate", "Set-Cookie"} {
				if first.header.Get(name) == "" || again.header.Get(name) != "" {
					s.Errorf("%s: first %q, replay %q, want it in the first alone",
						name, first.header.Get(name), again.header.Get(name))
				}
			}
			if got := again.header.Get("X-Kept"); got != "1" || again.status != 401 {
				s.Errorf("replay is %d with X-Kept %q, want 401 with 1", again.status, got)
			}
			s.ran(1)
		}},
		{name: "C42 what inner middleware adds is part of the answer", run: func(s *site) {
			var n atomic.Int64
			s.open(App{
				Inner: []Middleware{func(x Exchange, next func() error) error {
					x.SetHeader("X-Inner", fmt.Sprint(n.Add(1)))
					return next()
				}},
				Routes: s.route(func(x Exchange) error { return x.Text(200, "done") }),
			}, replay.Config{})
			r := request{token: s.token()}
			first, again := s.send(r), s.send(r)
			s.replays(first, again)
			if got := again.header.Get("X-Inner"); got != "1" {
				s.Errorf("X-Inner = %q, want that of the first answer, 1", got)
			}
		}},
		{name: "C50 inner middleware that answers itself", run: func(s *site) {
			var status atomic.Int64
			s.open(App{
				Inner: []Middleware{func(x Exchange, next func() error) error {
					if status.Load() == 403 {
						return x.Refuse(403, "not you")
					}
					return next()
				}},
				Routes: s.route(func(x Exchange) error { return x.Text(200, "done") }),
			}, replay.Config{})
			r := request{token: s.token()}
			status.Store(403)
			for range 2 {
				if a := s.send(r); a.status != 403 || !strings.Contains(string(a.body), "not you") {
					s.Errorf("answer is %d %q, want 403 with the reason", a.status, a.body)
				}
			}
			status.Store(200)
			s.replays(s.send(r), s.send(r))
			s.ran(1)
		}},
	}
}
