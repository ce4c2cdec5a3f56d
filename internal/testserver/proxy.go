package testserver

import (
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A Proxy stands between a client and a server, counts round trips, and can
// delay, hold back and cut what passes.
type Proxy struct {
	// Addr is where it listens.
	Addr string

	target   string
	listener net.Listener
	trips    atomic.Int64
	delay    atomic.Int64 // nanoseconds, each way
	hole     atomic.Bool

	mu     sync.Mutex
	conns  map[net.Conn]bool // guarded by mu
	closed bool              // guarded by mu
	done   sync.WaitGroup
}

// NewProxy starts a proxy in front of the server at target.
func NewProxy(target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return NewProxyOn(l, target), nil
}

// NewProxyOn is NewProxy with a listener, which the proxy closes.
func NewProxyOn(l net.Listener, target string) *Proxy {
	p := &Proxy{Addr: l.Addr().String(), target: target, listener: l, conns: make(map[net.Conn]bool)}
	p.done.Go(p.accept)
	return p
}

// Wait waits until the listener is closed.
func (p *Proxy) Wait() { p.done.Wait() }

// Trips returns how many round trips there have been: how often a client has
// sent after the server had answered.
func (p *Proxy) Trips() int64 { return p.trips.Load() }

// Delay makes everything take d longer, each way.
func (p *Proxy) Delay(d time.Duration) { p.delay.Store(int64(d)) }

// Blackhole swallows everything, without closing a connection, or lets it pass
// again. What was swallowed stays lost.
func (p *Proxy) Blackhole(on bool) { p.hole.Store(on) }

// Cut closes all connections that stand. New ones are accepted.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

// Close ends the proxy and its connections.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.listener.Close()
	p.Cut()
	p.done.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil || !p.keep(client, server) {
			_ = client.Close()
			continue
		}
		var turn atomic.Int32 // 1: the client has sent since the server did
		p.done.Go(func() {
			p.pipe(server, client, func() {
				if turn.Swap(1) == 0 {
					p.trips.Add(1)
				}
			})
		})
		p.done.Go(func() { p.pipe(client, server, func() { turn.Store(0) }) })
	}
}

func (p *Proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.closed {
			_ = c.Close()
			continue
		}
		p.conns[c] = true
	}
	return !p.closed
}

// A parcel is what was read at once, and when it may be passed on.
type parcel struct {
	bytes []byte
	due   time.Time
}

// pipe passes from src to dst. Reading and writing are apart, so that a delay
// adds to the latency and does not limit the throughput.
func (p *Proxy) pipe(dst, src net.Conn, seen func()) {
	parcels := make(chan parcel, 1024)
	p.done.Go(func() {
		defer p.drop(dst)
		locked := false
		for parcel := range parcels {
			if !locked && p.delay.Load() > 0 {
				runtime.LockOSThread() // pause sets the thread's timer; it ends with the goroutine
				locked = true
			}
			pause(time.Until(parcel.due))
			if _, err := dst.Write(parcel.bytes); err != nil {
				p.drop(src)
				for range parcels { // until the reader has ended
				}
				return
			}
		}
	})
	defer close(parcels)
	defer p.drop(src)
	buf := make([]byte, 64<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 && !p.hole.Load() {
			seen()
			parcels <- parcel{append([]byte(nil), buf[:n]...), time.Now().Add(time.Duration(p.delay.Load()))}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				p.drop(dst)
			}
			return
		}
	}
}

func (p *Proxy) drop(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// StartProxy starts a proxy for one test.
func StartProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	p, err := NewProxy(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}
