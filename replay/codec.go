package replay

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/http"
)

// What the first byte of a sealed response says. A store never looks.
const (
	httpRecord      = 1 // an HTTP response, below
	jobRecord       = 2 // the value of a Once follows
	encryptedRecord = 3 // see crypt.go
)

// Flags of an HTTP record.
const (
	bodyUnknown = 1 << iota // the fingerprint is of the target alone
	bodyLeftOut             // the body was larger than what is kept
)

// A response is the stored form of an HTTP response:
//
//	1 byte    httpRecord
//	1 byte    flags
//	32 bytes  fingerprint
//	uvarint   status
//	uvarint   length of headers and trailers
//	headers   uvarint count, then each: op byte, name, uvarint count, values
//	trailers  likewise
//	rest      body
//
// Names and values are a uvarint length and bytes.
type response struct {
	flags       byte
	fingerprint fingerprint
	status      int
	headers     []headerOp
	trailers    []headerOp
	body        []byte

	spare []string // empty, with room for one more value: see decodeResponse
}

func (r *response) append(b []byte) []byte {
	b = append(b, httpRecord, r.flags)
	b = append(b, r.fingerprint[:]...)
	b = binary.AppendUvarint(b, uint64(r.status))
	b = binary.AppendUvarint(b, uint64(opsSize(r.headers)+opsSize(r.trailers)))
	b = appendOps(b, r.headers)
	b = appendOps(b, r.trailers)
	return append(b, r.body...)
}

// opsSize returns how much appendOps appends.
func opsSize(ops []headerOp) int {
	n := uvarintSize(len(ops))
	for _, op := range ops {
		n += 1 + uvarintSize(len(op.name)) + len(op.name) + uvarintSize(len(op.values))
		for _, v := range op.values {
			n += uvarintSize(len(v)) + len(v)
		}
	}
	return n
}

func uvarintSize(n int) int { return (bits.Len(uint(n)|1) + 6) / 7 }

func appendOps(b []byte, ops []headerOp) []byte {
	b = binary.AppendUvarint(b, uint64(len(ops)))
	for _, op := range ops {
		b = append(b, byte(op.kind))
		b = appendString(b, op.name)
		b = binary.AppendUvarint(b, uint64(len(op.values)))
		for _, v := range op.values {
			b = appendString(b, v)
		}
	}
	return b
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// decodeResponse reads what append wrote. The body is a part of b, not a copy.
func decodeResponse(b []byte, r *response) error {
	d := decoder{rest: b}
	if d.byte() != httpRecord {
		return fmt.Errorf("%w: not the record of a response", ErrUnreadable)
	}
	r.flags = d.byte()
	copy(r.fingerprint[:], d.bytes(len(r.fingerprint)))
	r.status = int(d.uvarint(999))
	head := decoder{rest: d.bytes(int(d.uvarint(uint64(len(d.rest)))))}
	head.text = string(head.rest)
	r.headers = head.ops(r.headers[:0])
	r.trailers = head.ops(nil)
	r.spare = head.spare()
	r.body = d.rest
	d.bad = d.bad || head.bad || len(head.rest) > 0
	if d.bad || r.status < 200 {
		return fmt.Errorf("%w: damaged", ErrUnreadable)
	}
	return nil
}

// A decoder reads from rest. It never reads past the end: it sets bad instead.
type decoder struct {
	rest []byte
	bad  bool

	// All that is to be decoded as one string, which names and values are cut
	// from, so that a replay allocates it once and not each of them.
	text string

	values []string
}

func (d *decoder) byte() byte {
	if b := d.bytes(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (d *decoder) bytes(n int) []byte {
	if n < 0 || n > len(d.rest) {
		d.bad = true
		d.rest = nil
		return nil
	}
	b := d.rest[:n:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) uvarint(limit uint64) uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 || v > limit {
		d.bad = true
		d.rest = nil
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) string() string {
	n := int(d.uvarint(uint64(len(d.rest))))
	from := len(d.text) - len(d.rest)
	d.bytes(n)
	if d.bad {
		return ""
	}
	return d.text[from : from+n]
}

// strings reads n strings. All values of a record are cut from one slice where
// they fit: most headers have one.
func (d *decoder) strings(n int) []string {
	if n == 0 {
		return nil
	}
	if n > cap(d.values)-len(d.values) {
		d.values = make([]string, 0, max(n+1, 8))
	}
	from := len(d.values)
	d.values = d.values[:from+n]
	values := d.values[from : from+n : from+n]
	for i := range values {
		values[i] = d.string()
	}
	return values
}

// spare returns room for one value beside those that have been read.
func (d *decoder) spare() []string {
	n := len(d.values)
	return d.values[n:n:min(n+1, cap(d.values))]
}

func (d *decoder) ops(into []headerOp) []headerOp {
	for range d.uvarint(uint64(len(d.rest))) {
		op := headerOp{kind: opKind(d.byte()), name: d.string()}
		if op.kind > opDelete {
			d.bad = true
		}
		op.values = d.strings(int(d.uvarint(uint64(len(d.rest)))))
		if d.bad {
			return nil
		}
		into = append(into, op)
	}
	return into
}

// bodyAllowed reports whether a response of this status may have a body
// (RFC 9110, sections 15.2, 15.3.5 and 15.4.5).
func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}
