package adaptertest

import (
	"io"
	"net/http"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	submitecho "github.com/submitonce/submitonce/middleware/echo"
)

// Echo builds apps on echo.Echo.
func Echo() Framework { return Framework{Name: "echo", Build: buildEcho} }

func buildEcho(a App) http.Handler {
	e := quietEcho()
	recovery := middleware.RecoverWithConfig(middleware.RecoverConfig{DisablePrintStack: true})
	for _, m := range a.Outer {
		e.Use(echoMiddleware(m))
	}
	if a.RecoverOutside {
		e.Use(recovery)
	}
	var guards, inner []echo.MiddlewareFunc
	for _, g := range a.Guards {
		guards = append(guards, submitecho.Middleware(g))
	}
	if a.RecoverInside {
		inner = append(inner, recovery)
	}
	for _, m := range a.Inner {
		inner = append(inner, echoMiddleware(m))
	}
	add := e.Add
	switch a.Mount {
	case OnEngine:
		e.Use(guards...)
		guards = nil
	case OnGroup:
		add = e.Group("", guards...).Add
		guards = nil
	}
	for _, r := range a.Routes {
		chain := append(append([]echo.MiddlewareFunc{}, guards...), inner...)
		add(r.Method, colons(r.Path), func(c echo.Context) error {
			return r.Handler(&echoExchange{c})
		}, chain...)
	}
	return e
}

func echoMiddleware(m Middleware) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			return m(&echoExchange{c}, func() error { return next(c) })
		}
	}
}

type echoExchange struct{ c echo.Context }

func (x *echoExchange) Native() any                         { return x.c }
func (x *echoExchange) Request() *http.Request              { return x.c.Request() }
func (x *echoExchange) Writer() http.ResponseWriter         { return x.c.Response() }
func (x *echoExchange) SetHeader(name, value string)        { x.c.Response().Header().Set(name, value) }
func (x *echoExchange) Param(name string) string            { return x.c.Param(name) }
func (x *echoExchange) Form(name string) string             { return x.c.FormValue(name) }
func (x *echoExchange) Bind(v any) error                    { return x.c.Bind(v) }
func (x *echoExchange) JSON(status int, v any) error        { return x.c.JSON(status, v) }
func (x *echoExchange) Text(status int, s string) error     { return x.c.String(status, s) }
func (x *echoExchange) ServeFile(path string) error         { return x.c.File(path) }
func (x *echoExchange) NoContent(status int) error          { return x.c.NoContent(status) }
func (x *echoExchange) Redirect(status int, l string) error { return x.c.Redirect(status, l) }
func (x *echoExchange) Refuse(status int, m string) error   { return echo.NewHTTPError(status, m) }

func (x *echoExchange) State() State {
	r := x.c.Response()
	return State{Status: r.Status, Size: r.Size, Committed: r.Committed}
}

func (x *echoExchange) File(name string) (fileName, content string, err error) {
	h, err := x.c.FormFile(name)
	if err != nil {
		return "", "", err
	}
	f, err := h.Open()
	if err != nil {
		return "", "", err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	return h.Filename, string(b), err
}

func (x *echoExchange) Blob(status int, contentType string, b []byte) error {
	return x.c.Blob(status, contentType, b)
}

func (x *echoExchange) Reader(status int, contentType string, r io.Reader) error {
	return x.c.Stream(status, contentType, r)
}
