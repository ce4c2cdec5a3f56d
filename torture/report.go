package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/anishathalye/porcupine"
)

// A Report is what a run came to.
type Report struct {
	Mode       Mode
	Submits    int
	Duplicates int
	Faults     map[string]int

	DoubleEffects int // effects beyond the first of their token
	BeyondRuns    int // effects beyond the runs of their token's handler
	LostEffects   int // tokens that were answered with success and have no effect
	Differing     int // answers that differ from the first of their token
	Orphans       int // answers that name an effect that does not exist
	Unanswered    int // clients that never got a final answer
	Calls         int // of stores, in the history
	History       porcupine.CheckResult
}

func (r *Run) report(ctx context.Context) (*Report, error) {
	rep := &Report{Mode: r.Mode, Faults: r.Faults, Submits: len(r.submits)}
	type counts struct {
		effects, runs int
		names         map[string]bool
	}
	byKey := make(map[string]*counts)
	of := func(key string) *counts {
		if byKey[key] == nil {
			byKey[key] = &counts{names: make(map[string]bool)}
		}
		return byKey[key]
	}
	for query, count := range map[string]func(key, name string){
		"SELECT key, name FROM effects": func(key, name string) { of(key).effects++; of(key).names[name] = true },
		"SELECT key, '' FROM runs":      func(key, _ string) { of(key).runs++ },
	} {
		rows, err := r.servers.pool.Query(ctx, query)
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			var key, name string
			if err := rows.Scan(&key, &name); err != nil {
				return nil, err
			}
			count(key, name)
		}
		if err := rows.Err(); err != nil {
			return nil, err
		}
	}
	for _, c := range byKey {
		rep.DoubleEffects += max(0, c.effects-1)
		rep.BeyondRuns += max(0, c.effects-c.runs)
	}

	tokens, err := newTokens()
	if err != nil {
		return nil, err
	}
	for _, s := range r.submits {
		claims, err := tokens.Verify(s.Token, "", "")
		if err != nil {
			return nil, err
		}
		prefix := "t" + string(claims.ID.AppendKey(nil)) + "."
		var mine *counts
		for key, c := range byKey {
			if strings.HasPrefix(key, prefix) {
				mine = c
			}
		}
		rep.Unanswered += s.lost
		total, most := 0, 0
		for answer, n := range s.answers {
			total += n
			most = max(most, n)
			name := strings.Fields(answer + " - -")[3]
			if mine == nil || mine.effects == 0 {
				rep.LostEffects++
			} else if !mine.names[name] {
				rep.Orphans++
			}
		}
		rep.Duplicates += max(0, total-1)
		rep.Differing += total - most
	}

	steps, err := r.histories()
	if err != nil {
		return nil, err
	}
	rep.History, rep.Calls = judge(steps, time.Minute)
	return rep, nil
}

func (r *Run) histories() ([]Step, error) {
	files, err := filepath.Glob(filepath.Join(r.dir, "app*"))
	if err != nil {
		return nil, err
	}
	var all []Step
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		steps, err := readHistory(f)
		_ = f.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, steps...)
	}
	return all, nil
}

// Wrong says what must not be.
func (r *Report) Wrong() []string {
	var wrong []string
	check := func(n int, what string) {
		if n > 0 {
			wrong = append(wrong, fmt.Sprintf("%d %s", n, what))
		}
	}
	if r.Mode.transactional() {
		check(r.DoubleEffects, "double effects")
	}
	check(r.BeyondRuns, "effects beyond the handler's runs")
	check(r.LostEffects, "lost effects")
	check(r.Orphans, "answers that name no effect")
	check(r.Differing, "differing responses")
	check(r.Unanswered, "clients without an answer")
	if r.History != porcupine.Ok {
		wrong = append(wrong, fmt.Sprintf("history of the stores: %s", r.History))
	}
	if r.Submits == 0 || r.Duplicates == 0 || len(r.Faults) == 0 {
		wrong = append(wrong, "nothing was tried")
	}
	return wrong
}

// Print writes reports as a table, and the faults of all together.
func Print(w io.Writer, reports []*Report) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(t, "mode\tsubmits\tduplicates\tfaults\tdouble effects\tlost effects\tdiffering\tunanswered\tstore calls\thistory\t")
	faults := make(map[string]int)
	for _, r := range reports {
		total := 0
		for name, n := range r.Faults {
			faults[name] += n
			total += n
		}
		_, _ = fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t\n", r.Mode, r.Submits, r.Duplicates, total,
			r.DoubleEffects, r.LostEffects+r.Orphans, r.Differing, r.Unanswered, r.Calls, r.History)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(faults)) {
		if _, err := fmt.Fprintf(w, "%6d  %s\n", faults[name], name); err != nil {
			return err
		}
	}
	return nil
}
