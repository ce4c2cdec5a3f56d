package submitgin

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"reflect"
	"sync/atomic"

	"github.com/gin-gonic/gin"

	"github.com/submitonce/submitonce/replay"
)

// Middleware returns guard as Gin middleware, for an engine, a group or a single
// route. It decides nothing: see [replay.Guard.Serve] for what happens to a
// request. The same guard may stand in a chain twice; the inner one passes on.
// It is safe for concurrent use, and panics of handlers pass through it.
func Middleware(guard *replay.Guard) gin.HandlerFunc {
	return func(c *gin.Context) {
		if outer, ok := c.Request.Context().Value(callKey{}).(*call); ok && outer.entered(c) {
			outer.again(c)
			return
		}
		x := &call{gin: c, sender: sender{c.Writer}}
		if kept := readOutside(c); kept != nil {
			r := c.Request
			x.spent, r.Body = r.Body, kept
			defer func() { r.Body = x.spent }()
		}
		guard.Serve(&x.sender, c.Request, x)
		if !x.ran {
			c.Abort()
		}
		if x.sent { // so nobody outside takes it for unwritten
			c.Writer.WriteHeaderNow()
		}
	}
}

// A call is one passage of a request through the middleware. It is the handler
// that the guard runs, and the context of the request that this handler sees.
type call struct {
	context.Context // the guard's

	gin     *gin.Context
	spent   io.ReadCloser // the body, if middleware outside has read and kept it
	ran     bool
	running atomic.Bool // gin is the handler's; afterwards Gin gives it to another request
	sent    bool        // the header is final, although there may be no body
	before  gin.Context // as it was before the first run
	writer  writer      // what the chain answers through
	sender  sender      // what the guard answers through
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
	body := r.Body
	if x.spent != nil {
		r.Body = x.spent
	}
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
	x.running.Store(true)
	defer func(w gin.ResponseWriter, r *http.Request) {
		c.Writer, c.Request = w, r
		x.running.Store(false)
	}(c.Writer, c.Request)

	x.Context = r.Context()
	x.writer = writer{ResponseWriter: w, ctx: x.Context, status: c.Writer.Status(), size: unwritten}
	*r = *r.WithContext(x) // in place, because the guard removes the files of r's form
	c.Writer, c.Request = &x.writer, r
	c.Next()
	if x.spent != nil {
		_, _ = io.Copy(io.Discard, body) // the handler has had it already; the guard takes its sum
	}
	x.settle()
}

// settle does inside the guard what Gin, or middleware outside, would do to an
// unwritten response later.
func (x *call) settle() {
	switch c, w := x.gin, &x.writer; {
	case w.Written():
		x.sent = true
	case isEngines(c.Writer):
		// HandleContext led past the guard. What was sent is not to be had, but a
		// duplicate must not run for want of it.
		w.WriteHeader(c.Writer.Status())
	case len(c.Errors) <= len(x.before.Errors):
	case !w.chosen || w.Status() < 300:
		// Whoever answers for errors stands outside. If a success was chosen, then
		// for a body that could not be rendered.
		replay.Release(x)
	case w.Status() < 400: // a redirect, which needs no body
		x.sent = true
	}
	x.writer.WriteHeaderNow() // of no outcome, too: outside, it is a status to go on from
}

// entered reports whether c is in the hands of x's handler, which has entered a
// chain by HandleContext. A sub-request has a gin.Context of its own, although
// its request's context may be that of the handler.
func (x *call) entered(c *gin.Context) bool {
	return x.running.Load() && x.gin == c && isEngines(c.Writer)
}

// again runs the chain that the handler has entered by HandleContext. This
// has put the engine's writer back into c, and the engine sends that writer's
// header as soon as the chain has run; so it must be the right one.
func (x *call) again(c *gin.Context) {
	engines := c.Writer
	c.Writer = &x.writer
	if c.FullPath() == "" { // no route has matched, and the engine has chosen 404 or 405
		x.writer.WriteHeader(engines.Status())
	}
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

// readOutside returns the body again if middleware outside has read it by
// c.ShouldBindBodyWith, which leaves nothing of it in c.Request.
func readOutside(c *gin.Context) io.ReadCloser {
	kept, _ := c.Get(gin.BodyBytesKey)
	b, _ := kept.([]byte)
	body := c.Request.Body
	if len(b) == 0 || body == nil {
		return nil
	}
	var next [1]byte
	n, err := body.Read(next[:])
	if n > 0 || err == nil { // somebody has put it back, or something in its place
		c.Request.Body = readCloser{io.MultiReader(bytes.NewReader(next[:n]), body), body}
		return nil
	}
	return io.NopCloser(bytes.NewReader(b))
}

type readCloser struct {
	io.Reader
	io.Closer
}

// assign copies a context with its place in the chain, which gin.Context.Copy
// leaves out. Nobody else uses either of them at that moment.
func assign[T any](to, from *T) { *to = *from }
