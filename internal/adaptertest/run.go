package adaptertest

import (
	"slices"
	"testing"

	"github.com/submitonce/submitonce/replay"
)

// Stores says over which stores the cases run.
type Stores struct {
	// New opens an empty store for one case, and closes it by t.Cleanup.
	New func(t *testing.T) replay.Store

	// Lends says that a claim lives in a transaction, and so has no lease that
	// could run out while its owner lives. Cases about that are left out.
	Lends bool
}

// Run runs every case over the framework and the stores.
func Run(t *testing.T, f Framework, s Stores) {
	for _, c := range slices.Concat(
		answerCases(), headerCases(), inFlightCases(), leaseCases(), keyCases(), idempotencyKeyCases(), bodyCases(),
		parsingCases(), connectionCases(), timeoutCases(), encodingCases(), panicCases(), storeCases(), mountCases(), ginCases(), echoCases(), echo5Cases(),
	) {
		if c.only != "" && c.only != f.Name || c.leases && s.Lends {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			if !c.alone {
				t.Parallel()
			}
			c.run(newSite(t, f, s.New(t)))
		})
	}
}

// A testCase is one promise. Its name begins with the numbers of the public
// cases that it comes from, where it comes from one.
type testCase struct {
	name   string
	run    func(s *site)
	only   string // the framework that it is about; "" for all
	leases bool   // needs leases that run out
	alone  bool   // looks at all goroutines or sets the environment, so runs by itself
}
