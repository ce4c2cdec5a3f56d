package replay

import (
	"bytes"
	"context"
	"crypto/sha256"
	"net/http"
	"time"
)

// ParseIdempotencyKey lets the tests reach the parser.
var ParseIdempotencyKey = parseIdempotencyKey

// HashParts lets the fuzz test take a multipart body apart.
func HashParts(body []byte, boundary, field string) (sum [32]byte, values []string, err error) {
	h := sha256.New()
	values, err = hashParts(h, bytes.NewReader(body), boundary, field)
	return [32]byte(h.Sum(nil)), values, err
}

// StreamParts is HashParts as a large body goes, in pieces of n bytes.
func StreamParts(body []byte, n int, boundary, field string) (sum [32]byte, ok bool) {
	s := newPartsHasher(sha256.New(), boundary, field, "")
	for len(body) > 0 {
		p := body[:min(n, len(body))]
		_, _ = s.Write(p)
		body = body[len(p):]
	}
	_ = s.end()
	fp, ok := s.sum()
	return fp, ok
}

// A StoredResponse is a response with its parts in sight.
type StoredResponse struct {
	Status   int
	Header   http.Header
	Trailers http.Header
	Body     []byte
}

// EncodeResponse and DecodeResponse are the codec of records.
func EncodeResponse(r StoredResponse) []byte {
	in := response{
		status: r.Status, headers: diffHeader(nil, nil, r.Header), trailers: diffHeader(nil, nil, r.Trailers), body: r.Body,
	}
	return in.append(nil)
}

func DecodeResponse(b []byte) (StoredResponse, error) {
	var r response
	if err := decodeResponse(b, &r); err != nil {
		return StoredResponse{}, err
	}
	out := StoredResponse{Status: r.status, Header: http.Header{}, Trailers: http.Header{}, Body: r.body}
	applyHeader(out.Header, r.headers)
	applyHeader(out.Trailers, r.trailers)
	return out, nil
}

// NewLazyContext returns the context that handlers and stores get, and what ends
// it.
func NewLazyContext(parent context.Context, deadline time.Time) (ctx context.Context, end func(cause error)) {
	c := new(lazyContext)
	c.begin(&uncancelled{parent}, deadline)
	return c, func(cause error) { c.end(endedBy(cause)) }
}
