package main

import (
	"net"
	"strings"

	"github.com/submitonce/submitonce/internal/testserver"
)

// roleFar, followed by an address, is a proxy that delays what passes. It has a
// process of its own, so that its threads don't compete with the client's
// goroutines for one scheduler.
const roleFar = "far:"

// serveFar makes everything to and from target take eachWay longer.
func serveFar(role string, l net.Listener) {
	p := testserver.NewProxyOn(l, strings.TrimPrefix(role, roleFar))
	p.Delay(eachWay)
	p.Wait()
}
