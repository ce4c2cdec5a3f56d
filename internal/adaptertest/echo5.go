package adaptertest

import (
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"

	submitecho5 "github.com/submitonce/submitonce/middleware/echo5"
)

// Echo5 builds apps on Echo v5.
func Echo5() Framework { return Framework{Name: "echo5", Build: buildEcho5} }

func buildEcho5(a App) http.Handler {
	e := quietEcho5()
	recovery := middleware.RecoverWithConfig(middleware.RecoverConfig{DisablePrintStack: true})
	for _, m := range a.Outer {
		e.Use(echo5Middleware(m))
	}
	if a.RecoverOutside {
		e.Use(recovery)
	}
	var guards, inner []echo.MiddlewareFunc
	for _, g := range a.Guards {
		guards = append(guards, submitecho5.Middleware(g))
	}
	if a.RecoverInside {
		inner = append(inner, recovery)
	}
	for _, m := range a.Inner {
		inner = append(inner, echo5Middleware(m))
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
		add(r.Method, colons(r.Path), func(c *echo.Context) error {
			return r.Handler(&echo5Exchange{c})
		}, chain...)
	}
	return e
}

func echo5Middleware(m Middleware) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			return m(&echo5Exchange{c}, func() error { return next(c) })
		}
	}
}

type echo5Exchange struct{ c *echo.Context }

func (x *echo5Exchange) Native() any                         { return x.c }
func (x *echo5Exchange) Request() *http.Request              { return x.c.Request() }
func (x *echo5Exchange) Writer() http.ResponseWriter         { return x.c.Response() }
func (x *echo5Exchange) SetHeader(name, value string)        { x.c.Response().Header().Set(name, value) }
func (x *echo5Exchange) Param(name string) string            { return x.c.Param(name) }
func (x *echo5Exchange) Form(name string) string             { return x.c.FormValue(name) }
func (x *echo5Exchange) Bind(v any) error                    { return x.c.Bind(v) }
func (x *echo5Exchange) JSON(status int, v any) error        { return x.c.JSON(status, v) }
func (x *echo5Exchange) Text(status int, s string) error     { return x.c.String(status, s) }
func (x *echo5Exchange) NoContent(status int) error          { return x.c.NoContent(status) }
func (x *echo5Exchange) Redirect(status int, l string) error { return x.c.Redirect(status, l) }
func (x *echo5Exchange) Refuse(status int, m string) error   { return echo.NewHTTPError(status, m) }

func (x *echo5Exchange) ServeFile(path string) error {
	return x.c.FileFS(filepath.Base(path), os.DirFS(filepath.Dir(path)))
}

func (x *echo5Exchange) State() State {
	r, err := echo.UnwrapResponse(x.c.Response())
	if err != nil {
		return State{}
	}
	return State{Status: r.Status, Size: r.Size, Committed: r.Committed}
}

func (x *echo5Exchange) File(name string) (fileName, content string, err error) {
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

func (x *echo5Exchange) Blob(status int, contentType string, b []byte) error {
	return x.c.Blob(status, contentType, b)
}

func (x *echo5Exchange) Reader(status int, contentType string, r io.Reader) error {
	return x.c.Stream(status, contentType, r)
}
