package replay

import "sync"

// A loan is memory that requests use one after the other.
type loan struct {
	head   []byte // of the request's body
	body   []byte // of the handler's response
	record []byte // what is stored of it
	ops    []headerOp
}

type loans struct{ pool sync.Pool }

// maxLent keeps one large body from staying in memory for good.
const (
	maxLent    = 64 << 10
	maxLentOps = 64
)

func (l *loans) get() *loan {
	if m, ok := l.pool.Get().(*loan); ok {
		return m
	}
	return &loan{head: make([]byte, 0, 1024), body: make([]byte, 0, 1024), record: make([]byte, 0, 1024), ops: make([]headerOp, 0, 8)}
}

func (l *loans) put(m *loan) {
	for _, b := range []*[]byte{&m.head, &m.body, &m.record} {
		if *b = (*b)[:0]; cap(*b) > maxLent {
			*b = nil
		}
	}
	clear(m.ops[:cap(m.ops)]) // the strings are other people's
	if m.ops = m.ops[:0]; cap(m.ops) > maxLentOps {
		m.ops = nil
	}
	l.pool.Put(m)
}
