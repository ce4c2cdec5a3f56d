package adaptertest

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"

	"github.com/labstack/echo/v4"
	"github.com/labstack/gommon/log"

	submitecho "github.com/submitonce/submitonce/middleware/echo"
	"github.com/submitonce/submitonce/replay"
	"github.com/submitonce/submitonce/token"
)

func inEcho(h echo.HandlerFunc) Handler {
	return func(x Exchange) error { return h(x.Native().(echo.Context)) }
}

func echoCases() []testCase {
	cases := []testCase{
		{name: "Echo: hooks of outer middleware run for each answer", run: func(s *site) {
			var before, after, status atomic.Int64
			s.open(App{
				Outer: []Middleware{func(x Exchange, next func() error) error {
					res := x.Native().(echo.Context).Response()
					res.Before(func() {
						res.Header().Set("X-Before", fmt.Sprint(before.Add(1)))
						status.Store(int64(res.Status))
					})
					res.After(func() { after.Add(1) })
					return next()
				}},
				Routes: s.route(func(x Exchange) error { return x.Text(201, "ordered") }),
			}, replay.Config{})
			r := request{token: s.token()}
			for i := range int64(2) {
				a := s.send(r)
				if got, want := a.header.Get("X-Before"), fmt.Sprint(i+1); got != want {
					s.Errorf("answer %d: X-Before = %q, want %q", i+1, got, want)
				}
				if before.Load() != i+1 || after.Load() != i+1 || status.Load() != 201 {
					s.Errorf("answer %d: %d Before, %d After, status %d; want one each, 201",
						i+1, before.Load(), after.Load(), status.Load())
				}
			}
			s.ran(1)
		}},
		{name: "Echo: hooks of the handler run with it", run: func(s *site) {
			var before, after atomic.Int64
			s.orders(inEcho(func(c echo.Context) error {
				c.Response().Before(func() {
					before.Add(1)
					c.Response().Header().Set("X-Inner", "1")
				})
				c.Response().After(func() { after.Add(1) })
				if c.Response().Status != 200 || c.Response().Committed {
					return fmt.Errorf("fresh response: %d %v", c.Response().Status, c.Response().Committed)
				}
				return c.String(201, "ordered")
			}), replay.Config{})
			r := request{token: s.token()}
			first, again := s.send(r), s.send(r)
			s.replays(first, again)
			if again.header.Get("X-Inner") != "1" || before.Load() != 1 || after.Load() != 1 {
				s.Errorf("X-Inner %q, %d Before, %d After; want one each",
					again.header.Get("X-Inner"), before.Load(), after.Load())
			}
		}},
		{name: "Echo: C50 R067 custom error handler runs inside, once for what is sent", run: func(s *site) {
			e := quietEcho()
			var errs []error
			e.HTTPErrorHandler = func(err error, c echo.Context) {
				if c.Response().Committed {
					return
				}
				errs = append(errs, err)
				_ = c.JSON(418, map[string]string{"error": err.Error()})
			}
			var outer error
			e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
				return func(c echo.Context) error {
					outer = next(c)
					return outer
				}
			})
			failure := errors.New("out of tea")
			e.POST("/orders", func(c echo.Context) error {
				s.runs.Add(1)
				replay.Seal(c.Request().Context())
				return failure
			}, submitecho.Middleware(s.guard(replay.Config{})))
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
		{name: "Echo: error after an answer changes nothing", run: func(s *site) {
			s.answersAlike(201, true, inEcho(func(c echo.Context) error {
				if err := c.String(201, "ordered"); err != nil {
					return err
				}
				return errors.New("the mail did not go out")
			}))
		}},
		{name: "Echo: R070 outer middleware that returns an error of its own", run: func(s *site) {
			s.open(App{
				Outer: []Middleware{func(_ Exchange, next func() error) error {
					return errors.Join(next(), errors.New("audit log away"))
				}},
				Routes: s.route(func(x Exchange) error { return x.Text(201, "ordered") }),
			}, replay.Config{})
			r := request{token: s.token()}
			first := s.send(r)
			if first.status != 201 || string(first.body) != "ordered" {
				s.Errorf("answer is %d %q, want 201 ordered", first.status, first.body)
			}
			s.replays(first, s.send(r))
		}},
		{name: "Echo: R069 Flush over a writer that cannot", run: func(s *site) {
			app := App{Guards: []*replay.Guard{s.guard(replay.Config{})}, Routes: s.route(inEcho(func(c echo.Context) error {
				c.Response().WriteHeader(200)
				c.Response().Flush()
				_, err := c.Response().Write([]byte("line\n"))
				c.Response().Flush()
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
		{name: "Echo: GET's error is rendered where it always is", run: func(s *site) {
			e := quietEcho()
			e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
				return func(c echo.Context) error {
					if err := next(c); err != nil {
						return c.String(418, err.Error())
					}
					return nil
				}
			}, submitecho.Middleware(s.guard(replay.Config{})))
			e.GET("/orders", func(echo.Context) error { return errors.New("as ever") })
			s.serve(e)
			if a := s.send(request{method: http.MethodGet}); a.status != 418 || string(a.body) != "as ever" {
				s.Errorf("answer is %d %q, want that of the middleware outside", a.status, a.body)
			}
		}},
		{name: "Echo: c.Path and c.Param inside", run: func(s *site) {
			s.open(App{Mount: OnEngine, Routes: []Route{{"PUT", "/tickets/{id}", s.count(inEcho(func(c echo.Context) error {
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
		cases[i].only = "echo"
	}
	return cases
}

func quietEcho() *echo.Echo {
	e := echo.New()
	e.Logger.SetLevel(log.OFF)
	return e
}
