package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"runtime"
	"time"
)

// scaling compares one processor with two.
func scaling(ctx context.Context, sc scale) ([]Fact, error) {
	if runtime.NumCPU() < 2 {
		return nil, nil // there is nothing to compare
	}
	first, again := ours(frameworks[0], true, Goal{}), ours(frameworks[0], false, Goal{})
	rows := []struct {
		name string
		n    int
		goal float64
		open func(context.Context, int) (opened, error)
	}{
		{"a loop of SHA-256: the machine itself", 60_000, 0, func(context.Context, int) (opened, error) {
			return opened{func() (op, error) {
				block := make([]byte, 1024)
				return func(int) error { block[0] = sha256.Sum256(block)[0]; return nil }, nil
			}, func() {}}, nil
		}},
		{"bare handler", 100_000, 0, bare(frameworks[0]).Open},
		{"submitonce, first submit", 40_000, 1.7, first.Open},
		{"submitonce, replay", 60_000, 1.7, again.Open},
		{"fiber, first submit", 40_000, 0, overFiber(true)[1].Open},
		{"fiber, replay", 40_000, 0, overFiber(false)[1].Open},
	}
	ratios := make([][]float64, len(rows))
	var fs []func() error
	for i, row := range rows {
		fs = append(fs, func() error {
			// Both do the same number of operations, so that they leave the same
			// heap to the collector.
			n := sc.of(row.n, row.n/4)
			one, err := onProcessors(ctx, 1, n, row.open)
			if err != nil {
				return fmt.Errorf("%s: %w", row.name, err)
			}
			two, err := onProcessors(ctx, 2, n, row.open)
			if err != nil {
				return fmt.Errorf("%s: %w", row.name, err)
			}
			ratios[i] = append(ratios[i], float64(one)/float64(two))
			return nil
		})
	}
	if err := turns(ctx, sc.of(sc.rounds, 3), fs...); err != nil {
		return nil, err
	}
	var facts []Fact
	for i, row := range rows {
		s := spreadOf(ratios[i])
		f := Fact{What: row.name, Value: span(s, times)}
		if row.goal > 0 {
			f.Goal, f.Missed = fmt.Sprintf("≥ %.1f ×", row.goal), s.Median < row.goal
		}
		facts = append(facts, f)
	}
	return facts, nil
}

// onProcessors returns how long n operations take on as many processors, with a
// goroutine on each.
func onProcessors(ctx context.Context, processors, n int, open func(context.Context, int) (opened, error)) (time.Duration, error) {
	warm := n / 8
	o, err := open(ctx, n+warm)
	if err != nil {
		return 0, err
	}
	defer o.close()
	workers, err := workersOf(o, processors)
	if err != nil {
		return 0, err
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
	if err := spread(workers, 0, warm); err != nil {
		return 0, err
	}
	runtime.GC()
	began := time.Now()
	err = spread(workers, warm, n)
	return time.Since(began), err
}
