package submitecho5

import (
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/submitonce/submitonce/replay"
)

// Middleware returns guard as Echo middleware, for an Echo, a group or a single
// route. It decides nothing: see [replay.Guard.Serve] for what happens to a
// request. The same guard may stand in a chain twice; the inner one passes on.
// It is safe for concurrent use, and panics of handlers pass through it.
func Middleware(guard *replay.Guard) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			x := &call{echo: c, next: next}
			guard.Serve(sender{c.Response()}, c.Request(), x)
			return x.err
		}
	}
}

// A call is one passage of a request through the middleware, and the handler
// that the guard runs.
type call struct {
	echo *echo.Context
	next echo.HandlerFunc
	err  error
}

// ServeHTTP runs the rest of the chain. The guard calls it more than once only
// if it runs work again whose transaction could not commit.
func (x *call) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := x.echo
	if r == c.Request() { // left alone by the guard, so by us
		x.err = x.next(c)
		return
	}
	defer func(w http.ResponseWriter, r *http.Request) {
		c.SetResponse(w)
		c.SetRequest(r)
	}(c.Response(), c.Request())

	// A Response of its own, so that the hooks of middleware outside run when the
	// answer is sent, and not when it is captured.
	inner := echo.NewResponse(w, c.Logger())
	if outer, err := echo.UnwrapResponse(c.Response()); err == nil {
		inner.Status = outer.Status // 200, unless somebody outside has chosen another
	}
	c.SetResponse(inner)
	c.SetRequest(r)
	if x.err = x.next(c); x.err != nil {
		c.Echo().HTTPErrorHandler(c, x.err)
		if !inner.Committed {
			replay.Release(r.Context()) // an error that nobody answers is no outcome
		}
	}
}

// A sender is the guard's view of what middleware outside has made of Echo's
// Response. It sends an informational status, where Response would take it for
// the final one.
type sender struct{ http.ResponseWriter }

func (s sender) WriteHeader(code int) {
	if code < 200 && code != http.StatusSwitchingProtocols {
		if r, err := echo.UnwrapResponse(s.ResponseWriter); err == nil {
			r.ResponseWriter.WriteHeader(code)
			return
		}
	}
	s.ResponseWriter.WriteHeader(code)
}

// Unwrap is for [http.ResponseController].
func (s sender) Unwrap() http.ResponseWriter { return s.ResponseWriter }
