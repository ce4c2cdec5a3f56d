package replay

import (
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// An opKind says what a headerOp does to the header that outer middleware has
// made for this request.
type opKind byte

const (
	opSet    opKind = iota // replace the values; none means "send no such header"
	opAdd                  // append to what outer middleware has set
	opDelete               // remove what outer middleware has set
)

// A headerOp is one change that the handler, or middleware inside the guard,
// has made to the header. Changes are stored instead of the header, so that a
// replay keeps what outer middleware says afresh, such as a request id, and one
// cookie of its own beside the handler's.
type headerOp struct {
	kind   opKind
	name   string
	values []string
}

// diffHeader appends to ops what turns outer into inner. Values are shared, not
// copied, and cut to their length.
func diffHeader(ops []headerOp, outer, inner http.Header) []headerOp {
	for name, values := range inner {
		before, ok := outer[name]
		switch {
		case !ok && isList(name):
			ops = append(ops, headerOp{opAdd, name, slices.Clip(values)})
		case !ok:
			ops = append(ops, headerOp{opSet, name, slices.Clip(values)})
		case slices.Equal(before, values):
		case len(before) > 0 && len(values) > len(before) && slices.Equal(before, values[:len(before)]):
			ops = append(ops, headerOp{opAdd, name, slices.Clip(values[len(before):])})
		default:
			ops = append(ops, headerOp{opSet, name, slices.Clip(values)})
		}
	}
	for name := range outer {
		if _, ok := inner[name]; !ok {
			ops = append(ops, headerOp{kind: opDelete, name: name})
		}
	}
	return ops
}

// isList reports whether each value of a header says something of its own, so
// that one which outer middleware sets for the replay stands beside the first
// response's: a fresh session's cookie, say, beside the order's.
func isList(name string) bool {
	switch name {
	case "Set-Cookie", "Vary", "Link":
		return true
	}
	return false
}

func applyHeader(h http.Header, ops []headerOp) {
	for _, op := range ops {
		switch op.kind {
		case opAdd:
			h[op.name] = append(slices.Clip(h[op.name]), op.values...)
		case opDelete:
			delete(h, op.name)
		default:
			h[op.name] = op.values
		}
	}
}

// notKept names the headers that describe one connection or one moment, or
// challenge one client, and so have no place in a record (RFC 9110, section
// 7.6.1).
func notKept(name string) bool {
	switch len(name) { // most names are told from all of these by their length
	case 2:
		return strings.EqualFold(name, "TE")
	case 4:
		return strings.EqualFold(name, "Date")
	case 7:
		return strings.EqualFold(name, "Upgrade")
	case 10:
		return strings.EqualFold(name, "Connection") || strings.EqualFold(name, "Keep-Alive")
	case 16:
		return strings.EqualFold(name, "Proxy-Connection") || strings.EqualFold(name, "WWW-Authenticate")
	case 17:
		return strings.EqualFold(name, "Transfer-Encoding")
	case 18:
		return strings.EqualFold(name, "Proxy-Authenticate")
	case 19:
		return strings.EqualFold(name, "Proxy-Authorization")
	}
	return false
}

// kept returns the ops that belong into a record: not those of notKept, of drop,
// and of what a Connection header names. A handler that writes into the map itself
// may spell a name in any way, and a trailer counts as the header that it is.
func kept(ops []headerOp, drop map[string]bool) []headerOp {
	var hops []string
	for _, op := range ops {
		if strings.EqualFold(op.name, "Connection") {
			for _, v := range op.values {
				for name := range strings.SplitSeq(v, ",") {
					hops = append(hops, textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)))
				}
			}
		}
	}
	leave := func(op headerOp) bool {
		name := strings.TrimPrefix(op.name, http.TrailerPrefix)
		if len(drop) > 0 || len(hops) > 0 {
			canonical := textproto.CanonicalMIMEHeaderKey(name)
			if drop[canonical] || slices.Contains(hops, canonical) {
				return true
			}
		}
		return notKept(name)
	}
	if !slices.ContainsFunc(ops, leave) {
		return ops
	}
	return slices.DeleteFunc(slices.Clone(ops), leave)
}

// dropTrailers takes the plain names of the trailers out of a header that has been
// sent: net/http would send what it finds under a declared name a second time.
func dropTrailers(h http.Header, trailers []headerOp) {
	for _, op := range trailers {
		delete(h, strings.TrimPrefix(op.name, http.TrailerPrefix))
	}
}

func lookup(ops []headerOp, name string) (string, bool) {
	for _, op := range ops {
		if op.name == name && len(op.values) > 0 {
			return op.values[0], true
		}
	}
	return "", false
}
