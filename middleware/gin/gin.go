package submitgin

import (
	"context"
	"maps"
	"net/http"
	"reflect"

	"github.com/gin-gonic/gin"

	"github.com/submitonce/submitonce/replay"
)

// Middleware returns guard as Gin middleware, for an engine, a group or a single
// route. It decides nothing: see [replay.Guard.Serve] for what happens to a
// request. The same guard may stand in a chain twice; the inner one passes on.
// It is safe for concurrent use, and panics of handlers pass through it.
func Middleware(guard *replay.Guard) gin.HandlerFunc {
	return func(c *gin.Context) {
		if outer, ok := c.Request.Context().Value(callKey{}).(*call); ok && isEngines(c.Writer) {
			outer.again(c)
			return
		}
		x := &call{gin: c, sender: sender{c.Writer}}
		guard.Serve(&x.sender, c.Request, x)
		if !x.ran {
			c.Abort()
		}
	}
}

// A call is one passage of a request through the middleware. It is the handler
// that the guard runs, and the context of the request that this handler sees.
type call struct {
	context.Context // the guard's

	gin    *gin.Context
	ran    bool
	before gin.Context // as it was before the first run
	writer writer      // what the chain answers through
	sender sender      // what the guard answers through
}

type callKey struct{}

// Value returns the call itself for its key, so that a chain that is entered
// again finds it.
func (x *call) Value(key any) any {
	if key == (callKey{}) {
		return x
	}
	return x.Context.Value(key)
}

// ServeHTTP runs the rest of the chain. The guard calls it more than once only
// if it runs work again whose transaction could not commit.
func (x *call) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := x.gin
	if r == c.Request { // left alone by the guard, so by us
		x.ran = true
		c.Next()
		return
	}
	if x.ran {
		assign(c, &x.before) // c.Next goes through a chain only once
	} else {
		assign(&x.before, c)
	}
	x.ran = true
	defer func(w gin.ResponseWriter, r *http.Request) {
		c.Writer, c.Request = w, r
	}(c.Writer, c.Request)

	x.Context = r.Context()
	x.writer = writer{ResponseWriter: w, ctx: x.Context, size: unwritten}
	*r = *r.WithContext(x) // in place, because the guard removes the files of r's form
	c.Writer, c.Request = &x.writer, r
	c.Next()
	x.settle()
}

// settle does inside the guard what Gin, or middleware outside, would do to an
// unwritten response later.
func (x *call) settle() {
	switch c := x.gin; {
	case isEngines(c.Writer) && !x.writer.Written():
		// HandleContext led past the guard. What was sent is not to be had, but a
		// duplicate must not run for want of it.
		x.writer.WriteHeader(c.Writer.Status())
	case !x.writer.chosen && len(c.Errors) > len(x.before.Errors):
		replay.Release(x)
		return
	}
	x.writer.WriteHeaderNow()
}

// again runs a chain that a guarded handler has entered by HandleContext. This
// has put the engine's writer back into c, and the engine sends that writer's
// header as soon as the chain has run; so it must be the right one.
func (x *call) again(c *gin.Context) {
	engines := c.Writer
	c.Writer = &x.writer
	c.Next()
	x.writer.WriteHeaderNow()
	header := x.writer.Header().Clone()
	clear(engines.Header())
	maps.Copy(engines.Header(), header)
	engines.WriteHeader(x.writer.Status())
}

var enginesWriter = reflect.TypeOf(new(gin.Context).Copy().Writer)

// isEngines reports whether w is the writer that an engine starts with.
func isEngines(w gin.ResponseWriter) bool { return reflect.TypeOf(w) == enginesWriter }

// assign copies a context with its place in the chain, which gin.Context.Copy
// leaves out. Nobody else uses either of them at that moment.
func assign[T any](to, from *T) { *to = *from }
