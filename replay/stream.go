package replay

import (
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"net/http"
)

// A hasher takes the fingerprint of a body that streams by.
type hasher interface {
	io.Writer // never fails

	// end says that the body is over. It returns ErrConflictingKeys if the body
	// holds another token than the header.
	end() error

	// sum returns the fingerprint; it is called after end.
	sum() (fingerprint, bool)

	// abort frees what end would have freed.
	abort()
}

// handlers returns the body that the handler gets.
func (b *body) handlers() io.ReadCloser {
	if b.whole {
		return b
	}
	return largeBody{b}
}

// A largeBody is a body that is worth a larger piece of memory to be copied by:
// [io.Copy] takes 8 or 32 KiB at a time.
type largeBody struct{ *body }

// WriteTo copies the body.
func (b largeBody) WriteTo(w io.Writer) (n int64, err error) {
	buf := make([]byte, 128<<10)
	for {
		got, err := b.Read(buf)
		put, werr := w.Write(buf[:got])
		n += int64(put)
		switch {
		case werr != nil:
			return n, werr
		case put < got:
			return n, io.ErrShortWrite
		case errors.Is(err, io.EOF):
			return n, nil
		case err != nil:
			return n, err
		}
	}
}

// startStream begins to hash what does not fit into head.
func (b *body) startStream() {
	if b.stream != nil {
		return
	}
	if b.kind.boundary != "" {
		b.stream = newPartsHasher(newTargetHash(b.req, multipartBody), b.kind.boundary, b.field, b.token)
	} else {
		b.stream = &rawHasher{h: newTargetHash(b.req, rawBody)}
	}
	_, _ = b.stream.Write(b.head)
}

func newTargetHash(r *http.Request, kind byte) hash.Hash {
	h := sha256.New()
	var scratch [512]byte
	h.Write(appendTarget(scratch[:0], r, kind))
	return h
}

// A rawHasher hashes bytes.
type rawHasher struct{ h hash.Hash }

func (s *rawHasher) Write(p []byte) (int, error) { return s.h.Write(p) }
func (s *rawHasher) end() error                  { return nil }
func (s *rawHasher) sum() (fingerprint, bool)    { return fingerprint(s.h.Sum(nil)), true }
func (s *rawHasher) abort()                      {}

// A partsHasher takes a multipart body apart on a goroutine of its own, which
// end or abort ends: mime/multipart wants to pull, and the handler pulls too.
type partsHasher struct {
	token string
	in    *io.PipeWriter
	done  chan struct{}

	// Written before done is closed.
	fp     fingerprint
	values []string
	err    error
}

func newPartsHasher(h hash.Hash, boundary, field, token string) *partsHasher {
	out, in := io.Pipe()
	s := &partsHasher{token: token, in: in, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		s.values, s.err = hashParts(h, out, boundary, field)
		s.fp = fingerprint(h.Sum(nil))
		_, _ = io.Copy(io.Discard, out) // an epilogue, or the rest of what cannot be parsed
	}()
	return s
}

func (s *partsHasher) Write(p []byte) (int, error) {
	_, _ = s.in.Write(p) // fails only after end or abort
	return len(p), nil
}

func (s *partsHasher) end() error {
	_ = s.in.Close()
	<-s.done
	for _, v := range s.values {
		if v != "" && s.token != "" && v != s.token {
			return ErrConflictingKeys
		}
	}
	return nil
}

func (s *partsHasher) sum() (fingerprint, bool) { return s.fp, s.err == nil }

func (s *partsHasher) abort() {
	_ = s.in.CloseWithError(http.ErrBodyReadAfterClose)
	<-s.done
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
