package compat

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"testing"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	"github.com/submitonce/submitonce/replay"
)

// middleware/echo is for Echo v4, whose context is another type. These are two
// ways to the same guard in Echo v5.

// wrapped is the short one: Echo's own WrapMiddleware. Echo answers a returned
// error, and a panic that is recovered outside, only when the guard has done with
// the response; renderErrors and Recover inside give the guard something to seal.
func wrapped(s *shop) []echo.MiddlewareFunc {
	return []echo.MiddlewareFunc{
		echo.WrapMiddleware(s.once),
		renderErrors,
		middleware.RecoverWithConfig(middleware.RecoverConfig{DisablePrintStack: true}),
	}
}

// renderErrors answers an error of the handler at once. It returns the error as
// well, for middleware outside.
func renderErrors(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c *echo.Context) error {
		err := next(c)
		if err != nil {
			c.Echo().HTTPErrorHandler(c, err)
		}
		return err
	}
}

// native is middleware/echo for v5.
func native(s *shop) []echo.MiddlewareFunc {
	return []echo.MiddlewareFunc{func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) (err error) {
			s.guard.Serve(c.Response(), c.Request(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r == c.Request() { // left alone by the guard
					err = next(c)
					return
				}
				defer func(w http.ResponseWriter, r *http.Request) {
					c.SetResponse(w)
					c.SetRequest(r)
				}(c.Response(), c.Request())
				c.SetResponse(echo.NewResponse(w, c.Logger()))
				c.SetRequest(r)
				if err = next(c); err != nil {
					c.Echo().HTTPErrorHandler(c, err)
				}
			}))
			return err
		}
	}}
}

var echoWays = map[string]func(*shop) []echo.MiddlewareFunc{"WrapMiddleware": wrapped, "native": native}

func newEcho() *echo.Echo {
	e := echo.New()
	e.Logger = slog.New(slog.DiscardHandler)
	return e
}

// orderInEcho answers with what Echo knows of the request.
func (s *shop) orderInEcho(c *echo.Context) error {
	n := s.run()
	c.Response().Header().Set("Location", fmt.Sprintf("/orders/%d", n))
	return c.String(http.StatusCreated, fmt.Sprintf("order %d of cart %s: %s by %s", n, c.Param("cart"), c.FormValue("item"), c.Path()))
}

func TestEchoV5RoutesAndParamsReachTheHandler(t *testing.T) {
	mounts := map[string]func(e *echo.Echo, s *shop, once []echo.MiddlewareFunc){
		"route": func(e *echo.Echo, s *shop, once []echo.MiddlewareFunc) {
			e.POST("/carts/:cart/orders", s.orderInEcho, once...)
		},
		"group": func(e *echo.Echo, s *shop, once []echo.MiddlewareFunc) {
			e.Group("/carts/:cart", once...).POST("/orders", s.orderInEcho)
		},
		"Use": func(e *echo.Echo, s *shop, once []echo.MiddlewareFunc) {
			e.Use(once...)
			e.POST("/carts/:cart/orders", s.orderInEcho)
		},
	}
	for way, once := range echoWays {
		for name, mount := range mounts {
			t.Run(way+" "+name, func(t *testing.T) {
				s := newShop(t)
				e := newEcho()
				mount(e, s, once(s))
				s.serve(e)
				s.runsOnce(request{path: "/carts/7/orders", body: "item=tea"}, 201,
					"order %d of cart 7: tea by /carts/:cart/orders")
			})
		}
	}
}

func TestEchoV5BindAndJSON(t *testing.T) {
	for way, once := range echoWays {
		t.Run(way, func(t *testing.T) {
			s := newShop(t)
			e := newEcho()
			e.POST("/orders", func(c *echo.Context) error {
				var order struct {
					Item string `json:"item"`
				}
				if err := c.Bind(&order); err != nil {
					return err
				}
				return c.JSON(http.StatusCreated, map[string]any{"item": order.Item, "order_no": s.run()})
			}, once(s)...)
			s.serve(e)
			s.runsOnce(request{path: "/orders", kind: "application/json", body: `{"item":"tea"}`}, 201,
				`{"item":"tea","order_no":%d}`+"\n")
		})
	}
}

func TestEchoV5ReturnedErrorsReleaseAndPanicsToo(t *testing.T) {
	tests := map[string]struct {
		fail   func() error
		status int
		body   string
	}{
		"HTTPError":   {func() error { return echo.NewHTTPError(422, "no tea left") }, 422, `{"message":"no tea left"}` + "\n"},
		"plain error": {func() error { return errors.New("a bug") }, 500, `{"message":"Internal Server Error"}` + "\n"},
		"panic":       {func() error { panic("a bug") }, 500, `{"message":"Internal Server Error"}` + "\n"},
	}
	for way, once := range echoWays {
		for name, tt := range tests {
			t.Run(way+" "+name, func(t *testing.T) {
				s := newShop(t)
				var outside locked
				e := newEcho()
				e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
					return func(c *echo.Context) error {
						err := next(c)
						if res, unwrapped := echo.UnwrapResponse(c.Response()); unwrapped == nil {
							fmt.Fprintln(&outside, res.Status, res.Committed, err != nil)
						}
						return err
					}
				}, middleware.RecoverWithConfig(middleware.RecoverConfig{DisablePrintStack: true}))
				e.POST("/orders", func(c *echo.Context) error {
					n := s.run()
					if n == 1 {
						return tt.fail()
					}
					return c.String(http.StatusCreated, fmt.Sprint("order ", n))
				}, once(s)...)
				s.serve(e)
				r := request{path: "/orders", token: s.token()}
				s.answers(r, tt.status, tt.body)
				s.answers(r, 201, "order 2")
				if a := s.answers(r, 201, "order 2"); !a.replayed() {
					t.Error("the duplicate is not marked as a replay")
				}
				s.until("three lines", func() bool { return len(outside.String()) > 30 })
				want := fmt.Sprintf("%d true true\n201 true false\n201 true false\n", tt.status)
				if way == "native" && name == "panic" { // Echo answers it further out
					want = "200 false true\n201 true false\n201 true false\n"
				}
				if got := outside.String(); got != want {
					t.Errorf("middleware outside saw %q, want %q", got, want)
				}
			})
		}
	}
}

func TestEchoV5ReturnedErrorCanBeSealed(t *testing.T) {
	for way, once := range echoWays {
		t.Run(way, func(t *testing.T) {
			s := newShop(t)
			e := newEcho()
			e.POST("/orders", func(c *echo.Context) error {
				s.run()
				replay.Seal(c.Request().Context())
				return echo.NewHTTPError(409, "the slot is taken")
			}, once(s)...)
			s.serve(e)
			s.runsOnce(request{path: "/orders"}, 409, `{"message":"the slot is taken"}`+"\n")
		})
	}
}

// WrapMiddleware alone is not enough: the guard sees a handler that has answered
// nothing, which is an empty 200, before Echo answers the error. If this test
// fails, Echo has changed, and renderErrors may have become needless.
func TestEchoV5WrapMiddlewareAloneLosesReturnedErrors(t *testing.T) {
	s := newShop(t)
	e := newEcho()
	e.POST("/orders", func(*echo.Context) error {
		s.run()
		return echo.NewHTTPError(422, "no tea left")
	}, echo.WrapMiddleware(s.once))
	s.serve(e)
	s.runsOnce(request{path: "/orders"}, 200, "")
}

func TestEchoV5WrapHandlerServesTheTokenEndpoint(t *testing.T) {
	s := newShop(t)
	e := newEcho()
	e.GET("/submit-token", echo.WrapHandler(s.tokens.Handler()))
	e.GET("/submit-token/status", echo.WrapHandler(s.guard.Status()))
	e.POST("/orders/:cart", s.orderInEcho, wrapped(s)...)
	s.serve(e)
	page := s.send(request{method: "GET", path: "/submit-token"})
	r := request{path: "/orders/7", body: "item=tea", token: page.header.Get("X-Submit-Token")}
	if page.status != 200 || r.token == "" {
		t.Fatalf("token endpoint answers %d %v", page.status, page.header)
	}
	status := request{method: "GET", path: "/submit-token/status", token: r.token}
	s.answers(status, 200, `{"state":"free"}`+"\n")
	s.answers(r, 201, "order 1 of cart 7: tea by /orders/:cart")
	s.answers(status, 200, `{"state":"done"}`+"\n")
}

func TestEchoV5FlushAndReaders(t *testing.T) {
	for way, once := range echoWays {
		t.Run(way, func(t *testing.T) {
			s := newShop(t)
			e := newEcho()
			e.POST("/orders", func(c *echo.Context) error {
				n := s.run()
				c.Response().WriteHeader(http.StatusCreated)
				c.Response().(http.Flusher).Flush()
				_, err := io.WriteString(c.Response(), fmt.Sprint("order ", n))
				return err
			}, once(s)...)
			s.serve(e)
			s.runsOnce(request{path: "/orders"}, 201, "order %d")
		})
	}
}
