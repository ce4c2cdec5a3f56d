package submitgin

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"
)

const unwritten = -1

// A writer is Gin's view of the guard's writer. It keeps the books that Gin's
// own writer keeps: WriteHeader only chooses a status, and the first Write or
// WriteHeaderNow sends it.
type writer struct {
	http.ResponseWriter // the guard's

	ctx    context.Context // the handler's
	chosen bool            // the handler has named a status, or written
	status int
	size   int
}

var _ gin.ResponseWriter = (*writer)(nil)

// Unwrap lets an http.ResponseController reach the guard's writer.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *writer) WriteHeader(code int) {
	if code > 0 && !w.Written() {
		w.chosen, w.status = true, code
	}
}

func (w *writer) WriteHeaderNow() {
	if !w.Written() {
		w.chosen, w.size = true, 0
		w.ResponseWriter.WriteHeader(w.Status())
	}
}

func (w *writer) Write(b []byte) (int, error) {
	w.WriteHeaderNow()
	n, err := w.ResponseWriter.Write(b)
	w.size += n
	return n, err
}

func (w *writer) WriteString(s string) (int, error) {
	w.WriteHeaderNow()
	n, err := io.WriteString(w.ResponseWriter, s)
	w.size += n
	return n, err
}

func (w *writer) Status() int {
	if w.status == 0 {
		return http.StatusOK
	}
	return w.status
}

func (w *writer) Size() int { return w.size }

func (w *writer) Written() bool { return w.size != unwritten }

// Flush sends the header to the guard, which holds everything back until the
// seal.
func (w *writer) Flush() {
	w.WriteHeaderNow()
	_ = http.NewResponseController(w.ResponseWriter).Flush() // nothing to flush is no error here
}

// Hijack is refused, because a response that goes round the guard could not be
// replayed. The handler may still answer.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, http.ErrNotSupported
}

// CloseNotify receives a value when the handler's context ends. The client's
// hang-up ends it only where the guard is configured so.
func (w *writer) CloseNotify() <-chan bool {
	gone := make(chan bool, 1)
	context.AfterFunc(w.ctx, func() { gone <- true })
	return gone
}

// Pusher returns nil, as Gin's own writer does where there is no HTTP/2 push.
func (w *writer) Pusher() http.Pusher {
	p, _ := w.ResponseWriter.(http.Pusher)
	return p
}

// A sender is the guard's view of Gin's writer. It sends an informational
// status, where Gin's would take it for the one to come.
type sender struct{ gin.ResponseWriter }

// Unwrap lets an http.ResponseController reach the connection.
func (s *sender) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (s *sender) WriteHeader(code int) {
	u, ok := s.ResponseWriter.(interface{ Unwrap() http.ResponseWriter })
	if ok && code < 200 && code != http.StatusSwitchingProtocols {
		u.Unwrap().WriteHeader(code)
		return
	}
	s.ResponseWriter.WriteHeader(code)
}
