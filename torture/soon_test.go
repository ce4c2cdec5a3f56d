//go:build !race

package main

import "time"

// soon is when a waiter of another process has to have its answer.
const soon = 10 * time.Millisecond
