package main

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// fake is a contender that counts how often it is opened, and whose operations
// do nothing but what do says.
func fake(name, floor string, opens *int, do op) Contender {
	return Contender{Name: name, Floor: floor, Open: func(context.Context, int) (opened, error) {
		*opens++
		return opened{same(do), func() {}}, nil
	}}
}

func nothing(int) error { return nil }

func TestOnlyFreshWorkloadsAreOpenedInEachRound(t *testing.T) {
	const rounds = 5
	for _, tt := range []struct {
		name  string
		fresh bool
		want  int
	}{
		{"kept open", false, 1},
		{"fresh", true, 1 + rounds}, // once to calibrate
	} {
		t.Run(tt.name, func(t *testing.T) {
			var opens int
			w := Workload{Name: tt.name, Fresh: tt.fresh, Slice: time.Microsecond, Contenders: []Contender{fake("a", "", &opens, nothing)}}
			if _, err := measure(t.Context(), w, rounds); err != nil || opens != tt.want {
				t.Errorf("measure opened %d times, %v, want %d times", opens, err, tt.want)
			}
		})
	}
}

func TestFirstOperationsDoNotSetTheSizeOfSlices(t *testing.T) {
	// Time is this goroutine's: the first eight operations open connections.
	const slice = 20 * time.Millisecond
	var opens, n int
	c := fake("a", "", &opens, func(int) error {
		if n++; n <= 8 {
			for began := time.Now(); time.Since(began) < slice; {
			}
		}
		return nil
	})
	figures, err := measure(t.Context(), Workload{Name: "w", Slice: slice, Contenders: []Contender{c}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if figures[0].Ops < 1000 {
		t.Errorf("a slice has %d operations of some nanoseconds", figures[0].Ops)
	}
}

func TestNoOperationHasTheNumberOfAnother(t *testing.T) {
	for _, workers := range []int{1, 4} {
		seen := make([]int32, 1000)
		o := opened{worker: same(func(i int) error { seen[i]++; return nil })}
		ops, err := workersOf(o, workers)
		if err != nil {
			t.Fatal(err)
		}
		if err := spread(ops, 100, 900); err != nil {
			t.Fatal(err)
		}
		for i, n := range seen {
			if want := int32(min(i/100, 1)); n != want {
				t.Fatalf("%d workers: operation %d ran %d times, want %d", workers, i, n, want)
			}
		}
	}
}

func TestFailedOperationsFailTheWorkload(t *testing.T) {
	broken := errors.New("broken")
	for _, workers := range []int{1, 3} {
		var opens int
		w := Workload{Name: "w", Slice: time.Microsecond, Workers: workers,
			Contenders: []Contender{fake("a", "", &opens, func(int) error { return broken })}}
		if _, err := measure(t.Context(), w, 1); !errors.Is(err, broken) {
			t.Errorf("%d workers: measure = %v, want %v", workers, err, broken)
		}
	}
}

func TestUnknownFloorIsRefused(t *testing.T) {
	var opens int
	w := Workload{Name: "w", Slice: time.Microsecond, Contenders: []Contender{fake("a", "b", &opens, nothing)}}
	if _, err := measure(t.Context(), w, 1); err == nil {
		t.Error("measure with a floor that is not there succeeded")
	}
}

func TestRoundsAreComparedOneByOne(t *testing.T) {
	// The machine is ten times slower in the second round. A contender that takes
	// twice as long as its floor does so in each of them.
	floor := &runner{samples: []sample{{time: 10}, {time: 100}, {time: 10}}}
	twice := &runner{samples: []sample{{time: 20}, {time: 200}, {time: 20}}}
	f := twice.figure(0, []*runner{floor, twice})
	if want := (Spread{2, 2, 2}); f.Ratio != want {
		t.Errorf("ratio = %v, want %v", f.Ratio, want)
	}
	if f.Added.Median != 10 || f.Added.High != 100 {
		t.Errorf("added = %v, want a median of 10 and an upper quartile of 100", f.Added)
	}
}

func TestGoalsCanBeMissed(t *testing.T) {
	for _, tt := range []struct {
		name   string
		f      Figure
		missed bool
	}{
		{"ratio met", Figure{Contender: Contender{Goal: Goal{Ratio: 1.1}}, Ratio: Spread{Median: 1.1}}, false},
		{"ratio missed", Figure{Contender: Contender{Goal: Goal{Ratio: 1.1}}, Ratio: Spread{Median: 1.11}}, true},
		{"time missed", Figure{Contender: Contender{Goal: Goal{Added: 1000, Allocs: 8}}, Added: Spread{Median: 1001}}, true},
		{"allocations missed", Figure{Contender: Contender{Goal: Goal{Added: 1000, Allocs: 8}}, Extra: Spread{Median: 9}}, true},
		{"both met", Figure{Contender: Contender{Goal: Goal{Added: 1000, Allocs: 8}}, Added: Spread{Median: 999}, Extra: Spread{Median: 8}}, false},
	} {
		if v, ok := tt.f.verdict(); !ok || v.missed != tt.missed {
			t.Errorf("%s: verdict = %+v, %v, want missed %v", tt.name, v, ok, tt.missed)
		}
	}
	if _, ok := (Figure{}).verdict(); ok {
		t.Error("a figure without a goal was judged")
	}
}

func TestContendersDoWhatTheyAreMeasuredAt(t *testing.T) {
	for _, w := range memoryWorkloads() {
		w.Slice = time.Millisecond
		if _, err := measure(t.Context(), w, 1); err != nil {
			t.Error(err)
		}
	}
}

func TestChartIsWellFormed(t *testing.T) {
	r := report{results: []result{
		{Workload{Name: "memory: first submit", Adds: true}, []Figure{
			{Contender: Contender{Name: "bare"}},
			{Contender: Contender{Name: "a <b> & submitonce", Floor: "bare", Goal: Goal{Added: 2000}}, Added: Spread{Median: 3000}},
			{Contender: Contender{Name: "faster than bare", Floor: "bare"}, Added: Spread{Median: -5}},
		}},
		{Workload{Name: "Redis: replay"}, []Figure{{Contender: Contender{Name: "redisstore", Goal: Goal{Ratio: 1.1}}, Ratio: Spread{Median: 0.9}}}},
	}}
	chart := r.chart()
	for _, want := range []string{"a &lt;b&gt; &amp; submitonce", "+3.00 µs", "0.90 ×", "prefers-color-scheme: dark"} {
		if !strings.Contains(chart, want) {
			t.Errorf("the chart lacks %q", want)
		}
	}
	for d := xml.NewDecoder(strings.NewReader(chart)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if got := (&report{}).chart(); got != "" {
		t.Errorf("the chart of nothing is %q", got)
	}
}

func TestPartOfARunSaysSo(t *testing.T) {
	part := report{scale: scale{rounds: 3, quick: true}, only: "memory"}
	if text := part.markdown(false); !strings.Contains(text, "Not a whole run") || !strings.Contains(text, "-quick") {
		t.Errorf("a quick run does not say so:\n%s", text)
	}
	whole := report{scale: scale{rounds: 15}}
	if text := whole.markdown(false); strings.Contains(text, "Not a whole run") {
		t.Error("a whole run calls itself a part")
	}
}
