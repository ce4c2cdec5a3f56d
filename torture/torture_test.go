package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

// torture runs one mode and returns what is wrong.
func torture(t *testing.T, s *Servers, mode Mode, length time.Duration, plant string) (*Report, []string) {
	t.Helper()
	r := &Run{Mode: mode, For: length, Plant: plant}
	rep, err := r.Execute(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return rep, rep.Wrong()
}

// TestTortureForAMinute is the short form of `make torture`.
func TestTortureForAMinute(t *testing.T) {
	s := newServers(t)
	var reports []*Report
	for _, mode := range allModes {
		rep, wrong := torture(t, s, mode, 15*time.Second, "")
		reports = append(reports, rep)
		if len(wrong) > 0 {
			t.Errorf("%s: %s", mode, strings.Join(wrong, "; "))
		}
	}
	if err := Print(os.Stdout, reports); err != nil {
		t.Error(err)
	}
}

// TestTortureFindsPlantedBugs shows that a run can fail.
func TestTortureFindsPlantedBugs(t *testing.T) {
	s := newServers(t)
	for _, tt := range []struct {
		plant string
		mode  Mode
	}{{NoFencing, Lease}, {SealAfterAnswer, Tx}} {
		t.Run(tt.plant, func(t *testing.T) {
			// Faults come at random: one run may miss what the next one finds.
			for range 6 {
				if _, wrong := torture(t, s, tt.mode, 10*time.Second, tt.plant); len(wrong) > 0 {
					t.Logf("found: %s", strings.Join(wrong, "; "))
					return
				}
			}
			t.Error("the bug was not found")
		})
	}
}
