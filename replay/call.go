package replay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// A call is one request on its way through a guard, and the task that its key's
// owner runs.
type call struct {
	g    *Guard
	w    http.ResponseWriter
	r    *http.Request
	next http.Handler
	key  string
	body body
	ran  bool // next has been run under a claim
	back bool // the handler's form has been handed back
	cap  capture

	lent *loan // what is held in memory
}

// readAhead reads a small body whole, before anything is claimed: a body that
// breaks off then leaves no trace.
func (c *call) readAhead() error {
	c.body.fill(smallBody)
	if c.body.brokenOff() {
		return fmt.Errorf("%w: %w", ErrIncompleteBody, c.body.err)
	}
	return nil
}

// run lets the handler work, and says what came of it.
func (c *call) run(ctx *runContext) result {
	if c.ran {
		c.cap.reset()
	} else {
		c.ran = true
		c.cap.body, c.cap.ops = c.lent.body, c.lent.ops
		c.cap.init(c.w, c.g.c.ResponseLimit, c.g.engine.log)
	}
	r := c.r.WithContext(ctx)
	if r.Body != http.NoBody {
		r.Body = c.body.handlers()
	}
	returned := false
	defer func() {
		if !returned {
			c.cap.discard() // a panic: what it wrote is no answer
			c.handBack(r)
		}
	}()
	if c.g.c.KeepClientCancel {
		outer := c.r.Context()
		stop := context.AfterFunc(outer, func() {
			if !errors.Is(outer.Err(), context.DeadlineExceeded) { // which is ctx's own, too: see until
				ctx.end(endedBy(context.Cause(outer)))
			}
		})
		defer stop()
	}
	c.next.ServeHTTP(&c.cap, r)
	c.body.leave()
	c.cap.finish()
	returned = true
	c.handBack(r)

	res := result{status: c.cap.status, seal: c.outcome(ctx)}
	if res.seal {
		res.response = c.record()
	}
	if errors.Is(c.body.err, ErrConflictingKeys) { // it was in what the handler has left
		return result{status: c.cap.status}
	}
	return res
}

// handBack gives to the server's own request what the handler's copy of it has
// gathered: temporary files to remove, and the pattern for outer middleware to
// log.
func (c *call) handBack(r *http.Request) {
	if c.r.MultipartForm == nil && r.MultipartForm != nil {
		c.r.MultipartForm, c.back = r.MultipartForm, true
	}
	if c.r.Pattern == "" {
		c.r.Pattern = r.Pattern
	}
}

// outcome reports whether what the handler has answered is to be sealed.
func (c *call) outcome(ctx *runContext) bool {
	if c.cap.short() {
		return false // half a response is none
	}
	switch verdict(ctx.verdict.Load()) {
	case sealVerdict:
		return true
	case releaseVerdict:
		return false
	}
	return !c.body.heard && !c.body.brokenOff() && c.g.c.Classify(c.cap.status)
}

// until returns when the handler has to end for the sake of this request.
func (c *call) until() time.Time {
	if !c.g.c.KeepClientCancel {
		return time.Time{}
	}
	end, _ := c.r.Context().Deadline()
	return end
}

// record returns the response in its stored form.
func (c *call) record() []byte {
	resp := response{
		status:   c.cap.status,
		headers:  kept(c.cap.ops, c.g.drop),
		trailers: kept(c.cap.after, c.g.drop),
		body:     c.cap.body,
	}
	known := false
	if !c.body.unread() {
		if resp.fingerprint, known = c.body.sum(maxDrain); known {
			c.g.recent.warn(c, resp.fingerprint)
		}
	}
	if !known {
		resp.flags |= bodyUnknown
		resp.fingerprint = sumBytes(c.r, unknownBody, nil)
	}
	if c.cap.passing {
		resp.flags |= bodyLeftOut
		resp.body = nil
	}
	b := resp.append(c.lent.record[:0])
	c.lent.record = b
	if c.g.crypt != nil {
		b = c.g.crypt.encrypt(c.key, b)
	}
	return b
}

// compare reports ErrMismatch if this request is not the one that resp answers.
func (c *call) compare(resp *response) error {
	if resp.flags&bodyUnknown != 0 { // at least it goes to the same place
		if sumBytes(c.r, unknownBody, nil) != resp.fingerprint {
			return ErrMismatch
		}
		return nil
	}
	fp, ok := c.body.sum(-1)
	switch {
	case errors.Is(c.body.err, ErrConflictingKeys):
		return c.body.err
	case c.body.brokenOff():
		return fmt.Errorf("%w: %w", ErrIncompleteBody, c.body.err)
	case !ok || fp != resp.fingerprint:
		return ErrMismatch
	}
	return nil
}

// answer gives the client what its own handler run has answered.
func (c *call) answer() {
	if errors.Is(c.body.err, ErrConflictingKeys) && c.retract() {
		c.g.refuse(c, c.body.err)
		return
	}
	c.cap.send()
}

// retract takes back what the handler has answered, if it has run. It reports
// false if a part of that is on its way to the client.
func (c *call) retract() bool { return !c.ran || c.cap.discard() }

func (c *call) rewind() bool {
	if c.back { // the next run reads the body anew
		_ = c.r.MultipartForm.RemoveAll() // as the server would
		c.r.MultipartForm, c.back = nil, false
	}
	return c.body.rewind() && !c.cap.passing
}

func (c *call) event(e *Event) { e.Request = c.r }

// close ends what belongs to this request.
func (c *call) close() {
	c.body.finish()
	c.cap.done = true
	if c.ran {
		c.lent.body, c.lent.ops = c.cap.body, c.cap.ops
		c.cap.body, c.cap.ops = nil, nil
	}
	if c.body.shown {
		c.lent.head = nil // somebody may read it yet
	} else if c.body.head != nil {
		c.lent.head = c.body.head
	}
	g := c.g
	g.loans.put(c.lent)
	if !c.ran && !c.body.passed && !c.body.shown { // nobody else knows it
		*c = call{}
		g.calls.Put(c)
	}
}
