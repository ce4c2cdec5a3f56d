package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"time"
)

// roleFar, followed by an address, is a proxy that delays what passes. It has a
// process of its own, so that its threads don't compete with the client's
// goroutines for one scheduler.
const roleFar = "far:"

// serveFar makes everything to and from target take eachWay longer.
func serveFar(role string, l net.Listener) error {
	target := strings.TrimPrefix(role, roleFar)
	for {
		client, err := l.Accept()
		if err != nil {
			return err
		}
		server, err := net.Dial("tcp", target)
		if err != nil {
			_ = client.Close()
			fmt.Fprintln(os.Stderr, "bench: proxy:", err)
			continue
		}
		go delay(server, client)
		go delay(client, server)
	}
}

// A parcel is what was read at once, and when it may be passed on.
type parcel struct {
	bytes []byte
	due   time.Time
}

// delay passes from src to dst. Reading and writing are apart, so that the delay
// adds to the latency and does not limit the throughput.
func delay(dst, src net.Conn) {
	parcels := make(chan parcel, 1024)
	go func() {
		runtime.LockOSThread() // pause sets the thread's timer
		defer func() { _ = dst.Close(); _ = src.Close() }()
		for p := range parcels {
			pause(time.Until(p.due))
			if _, err := dst.Write(p.bytes); err != nil {
				_ = src.Close()
				for range parcels { // until the reader has ended
				}
				return
			}
		}
	}()
	defer close(parcels)
	buf := make([]byte, 64<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			parcels <- parcel{append([]byte(nil), buf[:n]...), time.Now().Add(eachWay)}
		}
		if err != nil {
			if err != io.EOF {
				_ = dst.Close()
			}
			return
		}
	}
}
