package replay

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
)

// A capture is the response writer that the handler gets. It holds the response
// back until its outcome has been sealed, and answers each call as net/http
// would, but that a flush waits for the seal and nothing tells of a client that has
// gone. A response over the limit is sent on as it comes, except for its last
// piece: no client sees a complete response before the seal.
//
// It is no wrapper and has no Unwrap: nothing may reach the connection behind
// it. Deadlines and full duplex are passed on by name.
type capture struct {
	w     http.ResponseWriter
	limit int64
	log   *slog.Logger

	outer  http.Header // of w, as outer middleware has made it
	header http.Header // the handler's

	status  int        // 0 until WriteHeader
	ops     []headerOp // what the handler has changed, taken at WriteHeader
	length  int64      // the declared Content-Length; -1 if none
	written int64      // bytes of body that the handler wrote
	body    []byte
	failed  error
	after   []headerOp // the trailers, once the handler has returned

	shared  bool // header is outer itself, which was empty
	overrun bool // the handler tried to write more than length
	passing bool // over the limit: status and header have been sent
	flushed bool // the handler wants the client to have it soon
	done    bool // the handler has returned
}

// passTail is how much of a response over the limit is held back until the seal.
const passTail = 32 << 10

func (c *capture) init(w http.ResponseWriter, limit int64, log *slog.Logger) {
	c.w, c.limit, c.log = w, limit, log
	c.outer = w.Header()
	c.shared = len(c.outer) == 0
	c.reset()
}

// reset forgets what a handler wrote whose work was undone.
func (c *capture) reset() {
	if c.shared {
		clear(c.outer)
		c.header = c.outer
	} else {
		c.header = c.outer.Clone()
	}
	c.status, c.ops, c.length, c.written, c.overrun, c.body, c.flushed, c.done = 0, c.ops[:0], -1, 0, false, c.body[:0], false, false
}

// Header returns the header, which counts until the first write.
func (c *capture) Header() http.Header { return c.header }

// WriteHeader takes the status and the header as they are now. An informational
// status is sent at once and is not the response (RFC 9110, section 15.2).
func (c *capture) WriteHeader(status int) {
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("invalid WriteHeader code %v", status)) // as net/http does
	}
	if c.done || c.status != 0 {
		c.log.Warn("submitonce: superfluous WriteHeader call", slog.Int("status", status))
		return
	}
	if status < 200 && status != http.StatusSwitchingProtocols {
		c.informational(status)
		return
	}
	c.status = status
	if c.shared {
		c.ops = diffHeader(c.ops, nil, c.header)
	} else {
		c.ops = diffHeader(c.ops, c.outer, c.header)
	}
	if v, ok := lookup(c.ops, "Content-Length"); ok {
		if n, err := strconv.ParseInt(v, 10, 64); err == nil && n >= 0 {
			c.length = n
		}
	}
}

func (c *capture) informational(status int) {
	if c.shared {
		c.w.WriteHeader(status)
		return
	}
	before := c.outer.Clone()
	clear(c.outer)
	for k, v := range c.header {
		c.outer[k] = v
	}
	c.w.WriteHeader(status)
	clear(c.outer)
	for k, v := range before {
		c.outer[k] = v
	}
}

// Write adds to the body.
func (c *capture) Write(p []byte) (int, error) {
	if err := c.begin(len(p)); err != nil {
		return 0, err
	}
	if int64(len(c.body)+len(p)) > c.limit {
		return c.pass(p)
	}
	c.body = append(c.body, p...)
	return len(p), nil
}

// WriteString adds to the body.
func (c *capture) WriteString(s string) (int, error) {
	if int64(len(c.body)+len(s)) > c.limit {
		return c.Write([]byte(s))
	}
	if err := c.begin(len(s)); err != nil {
		return 0, err
	}
	c.body = append(c.body, s...)
	return len(s), nil
}

func (c *capture) begin(n int) error {
	if c.done {
		return errAfterHandler
	}
	if c.status == 0 {
		c.WriteHeader(http.StatusOK)
	}
	if n > 0 && !bodyAllowed(c.status) {
		return http.ErrBodyNotAllowed
	}
	if c.length >= 0 && n > 0 && (c.overrun || c.written+int64(n) > c.length) {
		c.overrun = true // what follows would not join on
		return http.ErrContentLength
	}
	c.written += int64(n)
	return nil
}

var errAfterHandler = errors.New("replay: write after the handler has returned")

// pass sends on what was held back, and holds back the end of p.
func (c *capture) pass(p []byte) (int, error) {
	if !c.passing {
		c.passing = true
		c.sendHeader()
	}
	if c.failed == nil {
		_, c.failed = c.w.Write(c.body)
	}
	cut := max(0, len(p)-passTail)
	if c.failed == nil && cut > 0 {
		_, c.failed = c.w.Write(p[:cut])
	}
	c.body = append(c.body[:0], p[cut:]...)
	// A client that has gone changes nothing about the outcome, so the handler does
	// not hear of it here either.
	return len(p), nil
}

// Flush takes the header as it is now, as net/http does, but sends nothing: the
// response is held back until the seal.
func (c *capture) Flush() { _ = c.FlushError() }

// FlushError is Flush for [http.ResponseController]. It always succeeds.
func (c *capture) FlushError() error {
	if c.done {
		return nil
	}
	c.flushed = true
	if c.status == 0 {
		c.WriteHeader(http.StatusOK)
	}
	return nil
}

// finish ends the handler's part, as the return from a handler does.
func (c *capture) finish() {
	if c.status == 0 {
		c.WriteHeader(http.StatusOK)
	}
	c.done, c.after = true, c.trailers()
}

// short reports whether the handler wrote less than it had declared, so that
// the response is a fragment.
func (c *capture) short() bool {
	return c.length >= 0 && c.written < c.length && bodyAllowed(c.status)
}

// trailers returns what the handler has put into its header for after the body.
func (c *capture) trailers() (ops []headerOp) {
	for name, values := range c.header {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			ops = append(ops, headerOp{opSet, name, values})
		}
	}
	for _, op := range c.ops {
		if op.name != "Trailer" {
			continue
		}
		for _, v := range op.values {
			for name := range strings.SplitSeq(v, ",") {
				name = http.CanonicalHeaderKey(strings.TrimSpace(name))
				if values := c.header[name]; len(values) > 0 {
					ops = append(ops, headerOp{opSet, http.TrailerPrefix + name, values})
				}
			}
		}
	}
	return ops
}

func (c *capture) sendHeader() {
	if c.shared {
		clear(c.outer)
	}
	applyHeader(c.outer, c.ops)
	c.w.WriteHeader(c.status)
}

// send gives the client what was held back.
func (c *capture) send() {
	if !c.passing {
		if c.shared {
			clear(c.outer)
		}
		applyHeader(c.outer, c.ops)
		applyHeader(c.outer, c.after)
		c.w.WriteHeader(c.status)
	} else {
		applyHeader(c.outer, c.after)
	}
	dropTrailers(c.outer, c.after)
	if len(c.body) > 0 && c.failed == nil {
		_, c.failed = c.w.Write(c.body) // nobody to tell: the client is gone
	}
	if c.flushed && c.failed == nil && canFlush(c.w) {
		_ = http.NewResponseController(c.w).Flush() // nobody to tell
	}
}

// discard takes back what the handler has set, so that another answer can be
// given. It reports false if parts of the response have been sent already.
func (c *capture) discard() bool {
	if c.shared {
		clear(c.outer)
	}
	return !c.passing
}
