package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"
)

// A Contender does one operation of a workload, again and again.
type Contender struct {
	Name string

	// Open makes it ready, and returns what does one operation. Ops is how many
	// there will be at the most, for what has to be prepared for each.
	Open func(ctx context.Context, ops int) (op func(i int) error, close func(), err error)
}

// A Workload is what contenders do side by side. The first is what the others
// are compared with.
type Workload struct {
	Name       string
	Note       string
	Contenders []Contender
	Slice      time.Duration // how long a contender runs in each round
	Workers    int           // goroutines at once; 0 means one, without a goroutine
	Peers      bool          // each contender has its own floor: the one before it
}

// A Figure is what one contender came to.
type Figure struct {
	Name             string
	Median, Min, Max time.Duration // of an operation
	Allocs           float64       // of an operation
}

const maxOps = 60_000

// measure runs the workload's contenders in turn, in an order that rotates, so
// that the machine's moods fall on all of them alike.
func measure(ctx context.Context, w Workload, rounds int) ([]Figure, error) {
	type runner struct {
		op    func(int) error
		next  int
		n     int // operations in a round
		times []time.Duration
		alloc []float64
	}
	runners := make([]*runner, len(w.Contenders))
	for i, c := range w.Contenders {
		op, closeIt, err := c.Open(ctx, maxOps*(rounds+2))
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", w.Name, c.Name, err)
		}
		defer closeIt()
		r := &runner{op: op}
		runners[i] = r
		// Find out how many operations fill a slice, and warm up by it.
		for n := 8; ; n *= 2 {
			took, _, err := runOps(r.op, &r.next, n, w.Workers)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", w.Name, c.Name, err)
			}
			if took > w.Slice/8 || n >= maxOps/8 {
				r.n = int(min(max(int64(n)*int64(w.Slice)/int64(took+1), 1), maxOps))
				break
			}
		}
	}
	for round := range rounds {
		for i := range runners {
			r := runners[(i+round)%len(runners)]
			runtime.GC()
			took, allocs, err := runOps(r.op, &r.next, r.n, w.Workers)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", w.Name, w.Contenders[(i+round)%len(runners)].Name, err)
			}
			r.times = append(r.times, took/time.Duration(r.n))
			r.alloc = append(r.alloc, float64(allocs)/float64(r.n))
		}
	}
	figures := make([]Figure, len(runners))
	for i, r := range runners {
		slices.Sort(r.times)
		slices.Sort(r.alloc)
		figures[i] = Figure{
			Name: w.Contenders[i].Name, Median: r.times[len(r.times)/2], Min: r.times[0],
			Max: r.times[len(r.times)-1], Allocs: r.alloc[len(r.alloc)/2],
		}
	}
	return figures, nil
}

func runOps(op func(int) error, next *int, n, workers int) (took time.Duration, allocs uint64, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	from := *next
	*next += n
	began := time.Now()
	if workers <= 1 {
		for i := range n {
			if err := op(from + i); err != nil {
				return 0, 0, err
			}
		}
	} else {
		errs := make(chan error, workers)
		for w := range workers {
			go func() {
				var err error
				for i := from + w; i < from+n && err == nil; i += workers {
					err = op(i)
				}
				errs <- err
			}()
		}
		for range workers {
			err = cmp.Or(err, <-errs)
		}
	}
	took = time.Since(began)
	runtime.ReadMemStats(&after)
	return took, after.Mallocs - before.Mallocs, err
}

func logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
