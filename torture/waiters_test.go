package main

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestWaitersInAnotherProcessAreAnsweredAtOnce sends 200 duplicates to two
// processes. All machines' clocks are one here, so that what the owner's history
// says of its seal can be compared with when the other's clients were answered.
func TestWaitersInAnotherProcessAreAnsweredAtOnce(t *testing.T) {
	const duplicates, takes = 200, 300 * time.Millisecond
	servers := newServers(t)
	for _, mode := range []Mode{Redis, Lease, Tx, Tiered, TieredTx, SQLite} {
		t.Run(string(mode), func(t *testing.T) {
			dir := t.TempDir()
			apps := make([]*Process, 2)
			for i := range apps {
				c := servers.app(mode)
				c.Lease, c.Takes = 30*time.Second, takes
				c.SQLite = filepath.Join(dir, "shop.db")
				c.History = filepath.Join(dir, []string{"a", "b"}[i])
				apps[i] = newProcess(t, c)
			}
			best := time.Hour
			for range 5 { // the machine may be busy: the time is that of the best round
				delays := oneRound(t, servers, apps, duplicates)
				slices.Sort(delays)
				best = min(best, delays[len(delays)/2])
				if best < soon {
					break
				}
			}
			t.Logf("median from the seal to the answer, in the other process: %v", best)
			if best >= soon {
				t.Errorf("waiters of the other process were answered %v after the seal (median), want less than %v", best, soon)
			}
		})
	}
}

// oneRound submits one token many times, and returns how long after the seal the
// clients of the process that did not own it had their answers.
func oneRound(t *testing.T, s *Servers, apps []*Process, n int) []time.Duration {
	t.Helper()
	tokens, err := newTokens()
	if err != nil {
		t.Fatal(err)
	}
	tok := tokens.Issue("", "").Value
	client := newClient()
	defer client.CloseIdleConnections()
	type got struct {
		answer string
		at     time.Time
		app    int
	}
	answers := make([]got, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			app := i % len(apps)
			answer, final := try(t.Context(), client, apps[app].config.Addr, tok, false)
			if !final {
				t.Errorf("duplicate %d got no final answer", i)
			}
			answers[i] = got{answer, time.Now(), app}
		})
	}
	wg.Wait()
	for _, a := range answers {
		if a.answer != answers[0].answer {
			t.Errorf("answers %q and %q to one token", a.answer, answers[0].answer)
		}
	}
	check(t, s, tok, answers[0].answer, crashed{attempts: []int{1}, runs: 1})

	sealed, owner := sealOf(t, apps)
	var delays []time.Duration
	for _, a := range answers {
		if a.app != owner {
			delays = append(delays, a.at.Sub(sealed))
		}
	}
	return delays
}

// sealOf returns when the last seal returned, and which process made it.
func sealOf(t *testing.T, apps []*Process) (at time.Time, owner int) {
	t.Helper()
	for i, p := range apps {
		f, err := os.Open(p.config.History)
		if err != nil {
			t.Fatal(err)
		}
		steps, err := readHistory(f)
		_ = f.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, st := range steps {
			if when := time.Unix(0, st.At); st.Return && st.Op == "seal" && st.Result == "ok" && when.After(at) {
				at, owner = when, i
			}
		}
	}
	return at, owner
}
