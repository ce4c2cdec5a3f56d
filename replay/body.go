package replay

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
)

const (
	// smallBody is how much of a body is read before the claim. What fits is
	// hashed in one go, and a duplicate that waits for long lets the server notice
	// when its client hangs up. Larger bodies are hashed while the handler reads.
	smallBody = 64 << 10

	// maxDrain is how much of a body that the handler left unread is read for the
	// sake of the fingerprint; it is what net/http itself reads to keep a
	// connection.
	maxDrain = 256 << 10
)

// A body is a request's body that is hashed on its way to the handler.
type body struct {
	req   *http.Request
	src   io.ReadCloser
	kind  bodyType
	field string // the token's own field, left out of the fingerprint; "" if there is none
	token string // what that field has to say, if it comes after all

	room   []byte // where head may be put
	head   []byte // what has been read ahead
	whole  bool   // head is all of it
	parsed bool   // middleware outside has made a form of it; see parsed.go
	passed bool   // others have the body, until the request ends
	shown  bool   // others have head, and perhaps for longer

	// A handler may have given its body to a goroutine that is still reading
	// when the handler has returned, as http.TimeoutHandler does. That one must
	// neither disturb the guard nor, blocked on a slow client, hold it up.
	turn    sync.Mutex // held through a whole Read
	mu      sync.Mutex // guards what follows; not held while a Read waits for src
	off     int        // how much of head the handler has read
	stream  hasher     // hashes what does not fit into head; nil until it is needed
	err     error      // why src broke off
	reading bool       // somebody reads from src
	closed  bool       // the handler has returned
	shut    bool       // the handler has closed the body
	eof     bool       // src has been read to its end
	heard   bool       // the handler has got err
}

// fill reads ahead, up to limit. Only the first fill counts.
func (b *body) fill(limit int64) {
	if b.src != nil || b.whole {
		return
	}
	b.src = b.req.Body
	if b.src == nil || b.src == http.NoBody || b.parsed {
		b.whole, b.eof = true, true
		return
	}
	if b.req.ContentLength > limit {
		return
	}
	size := b.req.ContentLength
	if size < 0 {
		size = 512
	}
	buf := b.room
	if int64(cap(buf)) <= size { // one more byte, so that the last read finds the end
		buf = make([]byte, 0, size+1)
	}
	for {
		n, err := b.src.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		b.head = buf
		switch {
		case errors.Is(err, io.EOF):
			b.whole, b.eof = true, true
			return
		case err != nil:
			b.err = err
			return
		case int64(len(buf)) > limit:
			return
		case len(buf) == cap(buf):
			buf = slices.Grow(buf, len(buf))
		}
	}
}

// brokenOff reports whether the client or the network ended the body before its
// end. Other errors are those of limits that the application has set itself, which
// are its own to answer.
func (b *body) brokenOff() bool { return b.err != nil && isBreak(b.err) }

func isBreak(err error) bool {
	var network net.Error
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.Is(err, io.ErrClosedPipe),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, http.ErrBodyReadAfterClose), errors.As(err, &network):
		return true
	}
	// HTTP/2 has errors that only their text tells.
	text := err.Error()
	return text == "client disconnected" || strings.HasPrefix(text, "http2: ") || strings.HasPrefix(text, "stream error: ")
}

// Read lets the handler read the body.
func (b *body) Read(p []byte) (int, error) {
	if !b.whole || b.parsed { // else nothing waits
		b.turn.Lock()
		defer b.turn.Unlock()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed || b.shut:
		return 0, http.ErrBodyReadAfterClose
	case b.off < len(b.head):
		n := copy(p, b.head[b.off:])
		b.off += n
		if b.whole && b.off == len(b.head) && b.err == nil {
			return n, io.EOF // as net/http's own body ends that knows its length
		}
		return n, nil
	case b.err != nil:
		b.heard = true
		return 0, b.err
	case b.parsed && b.src != nil: // what is left of it
		b.mu.Unlock()
		defer b.mu.Lock()
		return b.src.Read(p)
	case b.eof:
		return 0, io.EOF
	}
	b.startStream()
	b.reading = true
	b.mu.Unlock()
	n, err := b.src.Read(p)
	b.mu.Lock()
	b.reading = false
	if b.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err = b.took(p[:n], err)
	b.heard = b.err != nil
	return n, err
}

// took hashes what came from src behind head.
func (b *body) took(p []byte, err error) (int, error) {
	_, _ = b.stream.Write(p) // never fails
	switch {
	case errors.Is(err, io.EOF):
		b.eof = true
		if conflict := b.stream.end(); conflict != nil {
			b.err = conflict
			return len(p), conflict
		}
	case err != nil:
		b.err = err
	}
	return len(p), err
}

// Close ends the handler's reading. What is left of src is still to be hashed,
// so finish closes that.
func (b *body) Close() error {
	b.mu.Lock()
	b.shut = true
	b.mu.Unlock()
	return nil
}

// fields returns the values of the token's own field. It needs the body whole.
func (b *body) fields() []string {
	switch {
	case !b.whole || b.field == "":
		return nil
	case b.parsed:
		return b.req.PostForm[b.field]
	case b.kind.urlencoded:
		values, _ := splitField(b.head, b.field)
		return values
	case b.kind.boundary != "":
		values, _ := hashParts(sha256.New(), bytes.NewReader(b.head), b.kind.boundary, b.field)
		return values
	}
	return nil
}

// sum returns the fingerprint. It reads at most drain bytes more of the body,
// all of it if drain is negative, and reports false if that did not reach its
// end or the body cannot be taken apart: then nothing can be said.
func (b *body) sum(drain int64) (fingerprint, bool) {
	if b.whole {
		return b.sumHead()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reading { // a goroutine that the handler has left behind has the rest
		return fingerprint{}, false
	}
	b.startStream()
	if !b.eof && b.err == nil {
		var rest io.Reader = readerFunc(func(p []byte) (int, error) {
			n, err := b.src.Read(p)
			return b.took(p[:n], err)
		})
		if drain >= 0 {
			rest = io.LimitReader(rest, drain)
		}
		_, _ = io.Copy(io.Discard, rest) // b.err keeps what went wrong
	}
	if !b.eof || b.err != nil {
		return fingerprint{}, false
	}
	return b.stream.sum()
}

func (b *body) sumHead() (fingerprint, bool) {
	switch {
	case b.parsed:
		return b.sumParsed()
	case b.kind.boundary != "" && bytes.Contains(b.head, []byte("--"+b.kind.boundary)): // else it is none, whatever its type says
		h := newTargetHash(b.req, multipartBody)
		if _, err := hashParts(h, bytes.NewReader(b.head), b.kind.boundary, b.field); err == nil {
			return fingerprint(h.Sum(nil)), true
		}
	case b.kind.urlencoded && b.field != "":
		_, others := splitField(b.head, b.field)
		return sumBytes(b.req, rawBody, others), true
	}
	return sumBytes(b.req, rawBody, b.head), true
}

// unread reports whether the client may still hold the body back, waiting for a
// "100 Continue" that only reading it would send.
func (b *body) unread() bool {
	if b.whole {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stream == nil && len(b.head) == 0 && b.req.Header.Get("Expect") != ""
}

// rewind lets the body be read again from its start, if it is in memory.
func (b *body) rewind() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.off = 0
	b.closed, b.shut = false, false
	return b.whole
}

// passOn gives the body to somebody who is not this guard's to watch. It can be
// read from its start, unless a part of it has gone that was not kept.
func (b *body) passOn(r *http.Request) {
	if b.src == nil {
		return // untouched
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.whole || b.stream == nil {
		b.off = 0
		b.closed, b.shut = false, false
	}
	b.passed = true
	r.Body = b
}

// lend is passOn for somebody who keeps nothing of it.
func (b *body) lend(r *http.Request) {
	r.Body = b
}

// takeBack ends lend. It reports false if a part has been read that can't be read
// again, and has not become a form either.
func (b *body) takeBack(r *http.Request) bool {
	if r.Body == b && b.off == 0 && b.stream == nil && !b.shut {
		r.Body = b.src // nobody has touched it
		return true
	}
	b.passOn(r)
	return b.whole || b.stream == nil || r.PostForm != nil || r.MultipartForm != nil
}

// show gives the body to who answers in the handler's place.
func (b *body) show(r *http.Request) {
	if b.src != nil && b.whole && !b.parsed {
		b.shown = true
		r.Body = io.NopCloser(bytes.NewReader(b.head)) // apart from what a handler may still read
		return
	}
	b.passOn(r)
}

// leave says that the handler has returned. What it has left behind reading gets
// an error from now on, and changes nothing any more.
func (b *body) leave() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
}

// finish ends the hashing, and closes what the handler has closed.
func (b *body) finish() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	if b.stream != nil {
		b.stream.abort()
	}
	if b.shut && b.src != nil && !b.reading {
		_ = b.src.Close() // it has been read for as far as anybody wants
	}
}
