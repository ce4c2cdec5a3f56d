package replay

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// readableBy reports a NotKeptError if this client cannot be given the response:
// its body was not kept, or is encoded in a way that the client does not accept
// (RFC 9110, section 12.5.3). A gzip body is decoded for it.
func (r *response) readableBy(req *http.Request) error {
	location, _ := lookup(r.headers, "Location")
	if r.flags&bodyLeftOut != 0 {
		return &NotKeptError{Status: r.status, Location: location}
	}
	coding, _ := lookup(r.headers, "Content-Encoding")
	if coding == "" || strings.EqualFold(coding, "identity") || len(r.body) == 0 || accepts(req.Header.Values("Accept-Encoding"), coding) {
		return nil
	}
	if !strings.EqualFold(coding, "gzip") && !strings.EqualFold(coding, "x-gzip") {
		return &NotKeptError{Status: r.status, Location: location}
	}
	plain, err := gunzip(r.body)
	if err != nil {
		return &NotKeptError{Status: r.status, Location: location}
	}
	r.body = plain
	headers := r.headers[:0]
	for _, op := range r.headers {
		switch op.name {
		case "Content-Encoding":
			continue
		case "Content-Length":
			op.values = []string{strconv.Itoa(len(plain))}
		case "Etag":
			continue // a strong validator is of the encoded bytes
		}
		headers = append(headers, op)
	}
	r.headers = headers
	return nil
}

// maxPlain bounds what a stored body may grow to for a client that does not take
// gzip.
const maxPlain = 32 << 20

func gunzip(b []byte) ([]byte, error) {
	zr, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(zr, maxPlain+1))
	if err == nil && len(plain) > maxPlain {
		err = errTooLong
	}
	return plain, err
}

var errTooLong = errors.New("replay: too long when decoded")

// accepts reports whether a client that sent these Accept-Encoding values takes
// the coding. One that sent none takes only what is not encoded, to be safe.
func accepts(values []string, coding string) bool {
	star := false
	for _, v := range values {
		for item := range strings.SplitSeq(v, ",") {
			name, params, _ := strings.Cut(item, ";")
			name = strings.TrimSpace(name)
			weight, hasWeight := strings.CutPrefix(strings.ToLower(strings.ReplaceAll(params, " ", "")), "q=")
			q, err := strconv.ParseFloat(weight, 64)
			taken := !hasWeight || err != nil || q > 0
			if strings.EqualFold(name, coding) {
				return taken
			}
			if name == "*" {
				star = taken
			}
		}
	}
	return star
}

// send writes the response to a client, as a replay, with the header that marks
// it as one.
func (r *response) send(w http.ResponseWriter, marker string) {
	h := w.Header()
	applyHeader(h, r.headers)
	applyHeader(h, r.trailers)
	h[marker] = append(r.spare, "true")
	w.WriteHeader(r.status)
	dropTrailers(h, r.trailers)
	if len(r.body) > 0 {
		_, _ = w.Write(r.body) // nobody to tell: the client is gone
	}
}
