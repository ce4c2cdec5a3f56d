//go:build race

package main

import "time"

// soon is longer under the race detector, which slows 200 clients and two
// processes down tenfold. `make test` runs the test without it, too.
const soon = 100 * time.Millisecond
