package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// An op does one operation, the i-th of its contender.
type op func(i int) error

// An opened contender is ready to run.
type opened struct {
	// worker returns an op for one goroutine. What a goroutine can't share with
	// others, such as a request or a sealed key of its own, is made here.
	worker func() (op, error)
	close  func()
}

// same is an op that any number of goroutines can share.
func same(o op) func() (op, error) { return func() (op, error) { return o, nil } }

func workersOf(o opened, n int) ([]op, error) {
	workers := make([]op, n)
	for i := range workers {
		var err error
		if workers[i], err = o.worker(); err != nil {
			return nil, err
		}
	}
	return workers, nil
}

// A Contender does one operation of a workload, again and again.
type Contender struct {
	Name  string
	Floor string // the contender of the same workload that it is compared with; "" if none
	Goal  Goal

	// Open makes it ready for ops operations at the most.
	Open func(ctx context.Context, ops int) (opened, error)
}

// A Goal is what a contender should keep to. Zero fields ask for nothing.
type Goal struct {
	Added  time.Duration // at most, over its floor
	Allocs float64       // at most, over its floor
	Ratio  float64       // at most, of its floor
}

// A Workload is what contenders do side by side.
type Workload struct {
	Name       string
	Note       string
	Contenders []Contender
	Slice      time.Duration // how long a contender runs in each round
	Workers    int           // goroutines at once; 0 means 1
	MaxOps     int           // operations in a slice at the most; 0 means maxOps

	// Fresh opens contenders anew in each round, so that what one round leaves in
	// the heap is not the next one's burden.
	Fresh bool

	// Adds shows what a contender adds to its floor instead of a ratio, where a
	// floor is so short that a ratio says nothing.
	Adds bool
}

// A Spread is the median of all rounds and the quartiles around it.
type Spread struct{ Median, Low, High float64 }

func spreadOf(values []float64) Spread {
	v := slices.Clone(values)
	slices.Sort(v)
	return Spread{v[len(v)/2], v[len(v)/4], v[len(v)*3/4]}
}

// A Figure is what one contender came to. Times are nanoseconds an operation.
type Figure struct {
	Contender
	Ops    int // in a slice
	Time   Spread
	CPU    Spread // of this process, all threads
	Allocs Spread

	// Against its floor, round by round, so that a slow round of the machine
	// slows down both sides of the comparison.
	Ratio    Spread
	Added    Spread
	AddedCPU Spread
	Extra    Spread // allocations
}

// maxOps bounds the operations of a slice, because a token is issued for each
// before the clock runs.
const maxOps = 60_000

// A sample is one slice of one contender.
type sample struct{ time, cpu, allocs float64 }

// measure runs the contenders of w once in each round, in an order that
// rotates, so that the machine's moods fall on all of them alike.
func measure(ctx context.Context, w Workload, rounds int) ([]Figure, error) {
	runners := make([]*runner, len(w.Contenders))
	for i, c := range w.Contenders {
		r := &runner{w: &w, c: c, rounds: rounds}
		runners[i] = r
		defer r.stop()
		if err := r.calibrate(ctx); err != nil {
			return nil, fmt.Errorf("%s, %s: %w", w.Name, c.Name, err)
		}
	}
	for round := range rounds {
		for i := range runners {
			r := runners[(i+round)%len(runners)]
			if err := r.round(ctx); err != nil {
				return nil, fmt.Errorf("%s, %s: %w", w.Name, r.c.Name, err)
			}
		}
	}
	figures := make([]Figure, len(runners))
	for i, r := range runners {
		floor := slices.IndexFunc(runners, func(o *runner) bool { return o.c.Name == r.c.Floor })
		if floor < 0 && r.c.Floor != "" {
			return nil, fmt.Errorf("%s, %s: no floor %q", w.Name, r.c.Name, r.c.Floor)
		}
		figures[i] = r.figure(floor, runners)
	}
	return figures, nil
}

// A runner is a contender at work.
type runner struct {
	w       *Workload
	c       Contender
	rounds  int
	n       int // operations in a slice
	open    opened
	workers []op
	next    int
	samples []sample
}

func (r *runner) start(ctx context.Context, ops int) error {
	var err error
	if r.open, err = r.c.Open(ctx, ops); err != nil {
		return err
	}
	r.next = 0
	r.workers, err = workersOf(r.open, max(r.w.Workers, 1))
	return err
}

func (r *runner) stop() {
	if r.open.close != nil {
		r.open.close()
		r.open = opened{}
	}
}

// calibrate finds out how many operations fill a slice, and warms up by it.
func (r *runner) calibrate(ctx context.Context) error {
	most := cmp.Or(r.w.MaxOps, maxOps)
	ops := 3 * most // for the warm-up and for the search, which doubles
	if !r.w.Fresh {
		ops += most * r.rounds
	}
	if err := r.start(ctx, ops); err != nil {
		return err
	}
	// What only the first operations do, such as opening a connection for each
	// worker, would otherwise be taken for the time of all.
	for warm := 0.0; warm < float64(r.w.Slice) && r.next < most/2; {
		n := 4 * len(r.workers)
		s, err := r.run(n)
		if err != nil {
			return err
		}
		warm += s.time * float64(n)
	}
	for n := 8 * len(r.workers); ; n *= 2 {
		fastest := math.Inf(1)
		for range 2 {
			s, err := r.run(n)
			if err != nil {
				return err
			}
			fastest = min(fastest, s.time)
		}
		if fastest*float64(n) > float64(r.w.Slice)/2 || 2*n > most {
			r.n = min(max(int(float64(r.w.Slice)/fastest), 1), most)
			break
		}
	}
	if r.w.Fresh {
		r.stop()
	}
	return nil
}

func (r *runner) round(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.w.Fresh {
		warm := max(r.n/4, 1)
		if err := r.start(ctx, warm+r.n); err != nil {
			return err
		}
		defer r.stop()
		if _, err := r.run(warm); err != nil {
			return err
		}
	}
	runtime.GC()
	s, err := r.run(r.n)
	r.samples = append(r.samples, s)
	return err
}

// run does n operations, shared out among the workers.
func (r *runner) run(n int) (sample, error) {
	var before, after runtime.MemStats
	from := r.next
	r.next += n
	runtime.ReadMemStats(&before)
	cpu := cpuTime()
	began := time.Now()
	err := spread(r.workers, from, n)
	took := time.Since(began)
	cpu = cpuTime() - cpu
	runtime.ReadMemStats(&after)
	ops := float64(n)
	return sample{float64(took) / ops, float64(cpu) / ops, float64(after.Mallocs-before.Mallocs) / ops}, err
}

func spread(workers []op, from, n int) error {
	if len(workers) == 1 {
		for i := range n {
			if err := workers[0](from + i); err != nil {
				return err
			}
		}
		return nil
	}
	errs := make(chan error, len(workers))
	for w, do := range workers {
		go func() {
			var err error
			for i := from + w; i < from+n && err == nil; i += len(workers) {
				err = do(i)
			}
			errs <- err
		}()
	}
	var err error
	for range workers {
		err = cmp.Or(err, <-errs)
	}
	return err
}

// figure sums up r's rounds, beside those of runners[floor] if that is not
// negative.
func (r *runner) figure(floor int, runners []*runner) Figure {
	of := func(f func(s, floor sample) float64) Spread {
		values := make([]float64, len(r.samples))
		for i, s := range r.samples {
			var fl sample
			if floor >= 0 {
				fl = runners[floor].samples[i]
			}
			values[i] = f(s, fl)
		}
		return spreadOf(values)
	}
	f := Figure{
		Contender: r.c, Ops: r.n,
		Time:   of(func(s, _ sample) float64 { return s.time }),
		CPU:    of(func(s, _ sample) float64 { return s.cpu }),
		Allocs: of(func(s, _ sample) float64 { return s.allocs }),
	}
	if floor >= 0 {
		f.Ratio = of(func(s, fl sample) float64 { return s.time / fl.time })
		f.Added = of(func(s, fl sample) float64 { return s.time - fl.time })
		f.AddedCPU = of(func(s, fl sample) float64 { return s.cpu - fl.cpu })
		f.Extra = of(func(s, fl sample) float64 { return s.allocs - fl.allocs })
	}
	return f
}

// cpuTime is what the threads of this process have used of all processors. It
// leaves out the time in which others had them.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
