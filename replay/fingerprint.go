package replay

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// A fingerprint is the SHA-256 over what makes two requests the same submit:
//
//	method NUL target NUL kind body
//
// The target is the path and query as the client sent them, so that path values
// count, but for the spellings that RFC 3986 (section 6.2.2) holds to be equal.
// The kind says how the body is taken: 'r' for its bytes (without the
// token's own field, if it is a form), 'm' for the parts of a multipart body,
// because a client draws a new boundary for each send. Of a body that the handler
// has left unread beyond 256 KiB nothing is known, so that the target alone is
// compared.
type fingerprint [sha256.Size]byte

const (
	rawBody       = 'r'
	multipartBody = 'm'
	unknownBody   = 'u' // left unread, or not to be taken apart
)

func appendTarget(b []byte, r *http.Request, kind byte) []byte {
	b = append(b, r.Method...)
	b = append(b, 0)
	target := r.RequestURI
	if target == "" || target[0] != '/' { // made by a test, or the absolute form of a proxy
		target = r.URL.RequestURI()
	}
	b = appendNormal(b, target)
	return append(b, 0, kind)
}

// appendNormal appends target with escapes in upper case and without those that
// unreserved characters do not need. Proxies rewrite these, so that a retry by
// another way may come in another spelling.
func appendNormal(b []byte, target string) []byte {
	for {
		i := strings.IndexByte(target, '%')
		if i < 0 || i+2 >= len(target) {
			return append(b, target...)
		}
		b = append(b, target[:i]...)
		c, err := strconv.ParseUint(target[i+1:i+3], 16, 8)
		switch {
		case err != nil: // no escape, and perhaps the start of one behind it
			b = append(b, '%')
			target = target[i+1:]
			continue
		case unreserved(byte(c)):
			b = append(b, byte(c))
		default:
			b = append(b, strings.ToUpper(target[i:i+3])...)
		}
		target = target[i+3:]
	}
}

// unreserved reports whether c is an unreserved character of RFC 3986, section 2.3.
func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// sumBytes takes the fingerprint of a request whose body is in memory. Short
// ones, as most forms and API calls are, cost no allocation.
func sumBytes(r *http.Request, kind byte, body []byte) fingerprint {
	var scratch [1024]byte
	b := appendTarget(scratch[:0], r, kind)
	if len(b)+len(body) <= len(scratch) {
		return sha256.Sum256(append(b, body...))
	}
	h := sha256.New()
	h.Write(b)
	h.Write(body)
	return fingerprint(h.Sum(nil))
}

// A bodyType is what the Content-Type says that matters here.
type bodyType struct {
	boundary   string // of a multipart body
	data       bool   // it is multipart/form-data
	urlencoded bool
}

func (t bodyType) form() bool { return t.urlencoded || t.data }

func bodyTypeOf(r *http.Request) bodyType {
	values := r.Header["Content-Type"]
	if len(values) == 0 || strings.EqualFold(values[0], "application/json") {
		return bodyType{}
	}
	ct := values[0]
	media, params, err := mime.ParseMediaType(ct)
	switch {
	case err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter): // as net/http has it
		return bodyType{}
	case media == "application/x-www-form-urlencoded":
		return bodyType{urlencoded: true}
	case strings.HasPrefix(media, "multipart/"):
		return bodyType{boundary: params["boundary"], data: media == "multipart/form-data" && params["boundary"] != ""}
	}
	return bodyType{}
}

// splitField takes the token's own field out of an urlencoded body. It returns
// the field's values and the other pairs as they were.
func splitField(body []byte, field string) (values []string, others []byte) {
	if !bytes.Contains(body, []byte(field)) && bytes.IndexByte(body, '%') < 0 && bytes.IndexByte(body, '+') < 0 {
		return nil, body // nor can its name be there in an escaped form
	}
	others = make([]byte, 0, len(body))
	for pair := range bytes.SplitSeq(body, []byte("&")) {
		name, value, _ := bytes.Cut(pair, []byte("="))
		if n, err := url.QueryUnescape(string(name)); err != nil || n != field {
			if len(others) > 0 {
				others = append(others, '&')
			}
			others = append(others, pair...)
			continue
		}
		if v, err := url.QueryUnescape(string(value)); err == nil {
			values = append(values, v)
		} else {
			values = append(values, string(value)) // malformed, and refused as such
		}
	}
	return values, others
}

// maxFieldValue is how much of the token's own field is read: more than any
// token has.
const maxFieldValue = 4 << 10

// hashParts reads a multipart body and adds its parts to h: name, file name,
// type, id and content of each, in their order. The part that is the token's own
// field is left out and its values returned.
func hashParts(h hash.Hash, body io.Reader, boundary, field string) (values []string, err error) {
	parts := multipart.NewReader(body, boundary)
	content := sha256.New()
	for {
		p, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return values, nil
		}
		if err != nil {
			return values, err
		}
		if field != "" && p.FormName() == field && p.FileName() == "" {
			v, err := io.ReadAll(io.LimitReader(p, maxFieldValue))
			if err != nil {
				return values, err
			}
			values = append(values, string(v))
			continue
		}
		content.Reset()
		if _, err := io.Copy(content, p); err != nil {
			return values, err
		}
		for _, s := range []string{
			p.FormName(), p.FileName(), p.Header.Get("Content-Type"), p.Header.Get("Content-Transfer-Encoding"),
			p.Header.Get("Content-Id"), p.Header.Get("Content-Location"), // of multipart/related (RFC 2387)
		} {
			var size [8]byte
			binary.BigEndian.PutUint64(size[:], uint64(len(s)))
			h.Write(size[:])
			_, _ = io.WriteString(h, s)
		}
		h.Write(content.Sum(nil))
	}
}
