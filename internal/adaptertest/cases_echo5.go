package adaptertest

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	submitecho5 "github.com/submitonce/submitonce/middleware/echo5"
	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/token"
)

func inEcho5(h echo.HandlerFunc) Handler {
	return func(x Exchange) error { return h(x.Native().(*echo.Context)) }
}

func echo5Cases() []testCase {
	cases := []testCase{
		{name: "Echo v5: hooks of outer middleware run for each answer, those of the handler with it", run: func(s *site) {
			var outer, inner atomic.Int64
			s.open(App{
				Outer: []Middleware{func(x Exchange, next func() error) error {
					c := x.Native().(*echo.Context)
					res, err := echo.UnwrapResponse(c.Response())
					if err != nil {
						return err
					}
					res.Before(func() { res.Header().Set("X-Before", fmt.Sprint(outer.Add(1), " ", res.Status)) })
					return next()
				}},
				Routes: s.route(inEcho5(func(c *echo.Context) error {
					res, err := echo.UnwrapResponse(c.Response())
					if err != nil {
						return err
					}
					if res.Status != 200 || res.Committed {
						return fmt.Errorf("fresh response: %d %v", res.Status, res.Committed)
					}
					res.Before(func() { res.Header().Set("X-Inner", fmt.Sprint(inner.Add(1))) })
					return c.String(201, "ordered")
				})),
			}, replay.Config{})
			r := request{token: s.token()}
			for i := range 2 {
				a := s.send(r)
				if got, want := a.header.Get("X-Before"), fmt.Sprint(i+1, " 201"); got != want {
					s.Errorf("answer %d: X-Before = %q, want %q", i+1, got, want)
				}
				if got := a.header.Get("X-Inner"); got != "1" {
					s.Errorf("answer %d: X-Inner = %q, want 1", i+1, got)
				}
			}
			s.ran(1)
		}},
		{name: "Echo v5: C50 R067 custom error handler runs inside, once for what is sent", run: func(s *site) {
			e := quietEcho5()
			var errs []error
			e.HTTPErrorHandler = func(c *echo.Context, err error) {
				if r, _ := echo.UnwrapResponse(c.Response()); r != nil && r.Committed {
					return
				}
				errs = append(errs, err)
				_ = c.JSON(418, map[string]string{"error": err.Error()})
			}
			var outer error
			e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
				return func(c *echo.Context) error {
					outer = next(c)
					return outer
				}
			})
			failure := errors.New("out of tea")
			e.POST("/orders", func(c *echo.Context) error {
				s.runs.Add(1)
				replay.Seal(c.Request().Context())
				return failure
			}, submitecho5.Middleware(s.guard(replay.Config{})))
			s.serve(e)
			r := request{token: s.token()}
			first := s.send(r)
			if first.status != 418 || !errors.Is(outer, failure) {
				s.Errorf("answer is %d, outer middleware sees %v; want 418 and the error", first.status, outer)
			}
			s.replays(first, s.send(r))
			if outer != nil || !slices.Equal(errs, []error{failure}) {
				s.Errorf("replay: outer middleware sees %v, error handler saw %v; want none, and the one error", outer, errs)
			}
			s.ran(1)
		}},
		{name: "Echo v5: compression outside, by Echo's own middleware", run: func(s *site) {
			e := quietEcho5()
			e.Use(middleware.Gzip())
			text := strings.Repeat("ordered ", 1000)
			e.POST("/orders", func(c *echo.Context) error {
				s.runs.Add(1)
				if r, _ := echo.UnwrapResponse(c.Response()); r == nil || r.Status != 200 {
					return errors.New("no fresh response")
				}
				return c.String(201, text)
			}, submitecho5.Middleware(s.guard(replay.Config{})))
			e.POST("/errors", func(*echo.Context) error { return echo.NewHTTPError(422, "no tea left") },
				submitecho5.Middleware(s.guard(replay.Config{})))
			s.serve(e)
			r := request{token: s.token()} // the client asks for gzip by itself, and unpacks it
			first := s.send(r)
			if first.status != 201 || string(first.body) != text {
				s.Errorf("answer is %d with %d bytes, want 201 with %d", first.status, len(first.body), len(text))
			}
			s.replays(first, s.send(r))
			if a := s.send(request{token: s.token(), path: "/errors"}); a.status != 422 || !strings.Contains(string(a.body), "no tea left") {
				s.Errorf("error is answered with %d %q, want 422 no tea left", a.status, a.body)
			}
			s.ran(1)
		}},
		{name: "Echo v5: R069 Flush over a writer that cannot", run: func(s *site) {
			app := App{Guards: []*replay.Guard{s.guard(replay.Config{})}, Routes: s.route(inEcho5(func(c *echo.Context) error {
				res, err := echo.UnwrapResponse(c.Response())
				if err != nil {
					return err
				}
				res.WriteHeader(200)
				res.Flush()
				_, err = res.Write([]byte("line\n"))
				res.Flush()
				return err
			}))}
			h := plainWriter(s.framework.Build(app))
			tok := s.token()
			for range 2 {
				w := httptest.NewRecorder()
				r := httptest.NewRequestWithContext(s.Context(), "POST", "/orders", nil)
				r.Header.Set(token.HeaderName, tok)
				h.ServeHTTP(w, r)
				if w.Code != 200 || w.Body.String() != "line\n" {
					s.Errorf("answer is %d %q, want 200 with the line", w.Code, w.Body)
				}
			}
			s.ran(1)
		}},
		{name: "Echo v5: the route and its parameters are seen inside", run: func(s *site) {
			s.open(App{Mount: OnEngine, Routes: []Route{{"PUT", "/tickets/{id}", s.count(inEcho5(func(c *echo.Context) error {
				return c.String(200, c.Path()+" "+c.Param("id"))
			}))}}}, replay.Config{})
			r := request{token: s.token(), method: "PUT", path: "/tickets/7"}
			first := s.send(r)
			if string(first.body) != "/tickets/:id 7" {
				s.Errorf("handler sees %q", first.body)
			}
			s.replays(first, s.send(r))
		}},
	}
	for i := range cases {
		cases[i].only = "echo5"
	}
	return cases
}

func quietEcho5() *echo.Echo {
	e := echo.New()
	e.Logger = slog.New(slog.DiscardHandler)
	return e
}
