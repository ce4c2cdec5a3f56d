package main

import (
	"context"
	"fmt"
	"slices"
)

// A Fact is a figure that is measured in a way of its own.
type Fact struct {
	What, Value string
	Goal        string // "" if there is none
	Missed      bool
}

// A scale says how long the measurements take.
type scale struct {
	rounds int
	quick  bool
}

// of returns n, or few in a quick run.
func (s scale) of(n, few int) int {
	if s.quick {
		return few
	}
	return n
}

// A special is a measurement that no workload can express.
type special struct {
	Name string
	Note string
	Run  func(ctx context.Context, sc scale) ([]Fact, error)
}

func (s *servers) specials() []special {
	return []special{
		{"duplicates at once", "1,000 at once with one token, of a handler that takes 50 ms, in memory. Until the last is answered.", duplicatesAtOnce},
		{"scaling", "Operations a second with GOMAXPROCS=2 and two goroutines, over those with GOMAXPROCS=1 and one; one guard and one store. " +
			"What the machine can do at that moment is the same for a loop of SHA-256, in the same rounds.", scaling},
		{"uploads", "Bodies that the handler reads to the end, beside the handler alone and one pass of SHA-256 over the same bytes. " +
			"Against the pass: what the guard adds to the handler, over what the pass takes beyond reading.", uploads},
		{"large upload", "A server in a process of its own takes 1 GiB with a token in the header, and its duplicate. The peak is VmHWM of the whole process.", largeUpload},
		{"whole server", "Fresh submits over loopback, each server in a process of its own, and the client on the same cores. " +
			"Latencies of all rounds.", wholeServers},
		{"memory per record", "With a 300-byte response. Go: growth of the live heap after a collection. Redis: growth of used_memory.", s.memoryPerRecord},
		{"WAL", "Difference of pg_current_wal_lsn over 5,000 submits.", s.walPerSubmit},
		{"round trips", "Counted by a proxy between client and server, over 200 operations after a warm-up.", s.roundTrips},
		{"smallest program", "net/http with a guard over a memory store, and the same without. Started until its first answer in the process.", smallestProgram},
	}
}

// span tells a spread in a unit.
func span(s Spread, format func(float64) string) string {
	return fmt.Sprintf("%s (%s to %s)", format(s.Median), format(s.Low), format(s.High))
}

// percentile returns the p-th of sorted values.
func percentile[T any](sorted []T, p int) T { return sorted[min(len(sorted)*p/100, len(sorted)-1)] }

// turns calls each f once in each of n rounds, in an order that rotates.
func turns(ctx context.Context, n int, fs ...func() error) error {
	for round := range n {
		if err := ctx.Err(); err != nil {
			return err
		}
		for i := range fs {
			if err := fs[(i+round)%len(fs)](); err != nil {
				return err
			}
		}
	}
	return nil
}

// quotients divides value by value.
func quotients(a, b []float64) []float64 {
	q := slices.Clone(a)
	for i := range q {
		q[i] /= b[i]
	}
	return q
}
