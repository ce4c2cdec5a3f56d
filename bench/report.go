package main

import (
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// A report is all that one run has measured.
type report struct {
	scale
	only     string
	servers  []string // and their versions
	results  []result
	specials []specialResult
}

type result struct {
	Workload
	figures []Figure
}

type specialResult struct {
	special
	facts []Fact
}

// A verdict is a goal and whether it is met.
type verdict struct {
	where, figure, goal string
	missed              bool
}

func (v verdict) String() string {
	if v.missed {
		return v.goal + ": missed"
	}
	return v.goal + ": met"
}

// verdict judges what f came to by what it should have come to.
func (f Figure) verdict() (v verdict, ok bool) {
	g := f.Goal
	switch {
	case g.Ratio > 0:
		return verdict{figure: times(f.Ratio.Median), goal: fmt.Sprintf("≤ %.2f ×", g.Ratio), missed: f.Ratio.Median > g.Ratio}, true
	case g.Added > 0:
		return verdict{
			figure: fmt.Sprintf("+%s, +%.0f allocations", nanos(f.Added.Median), f.Extra.Median),
			goal:   fmt.Sprintf("≤ +%s, +%.0f allocations", nanos(float64(g.Added)), g.Allocs),
			missed: f.Added.Median > float64(g.Added) || f.Extra.Median > g.Allocs+0.5,
		}, true
	}
	return verdict{}, false
}

func (f Fact) verdict() (v verdict, ok bool) {
	return verdict{figure: f.Value, goal: f.Goal, missed: f.Missed}, f.Goal != ""
}

func (r *report) verdicts() []verdict {
	var all []verdict
	for _, res := range r.results {
		for _, f := range res.figures {
			if v, ok := f.verdict(); ok {
				v.where = res.Name + ": " + f.Name
				all = append(all, v)
			}
		}
	}
	for _, sp := range r.specials {
		for _, f := range sp.facts {
			if v, ok := f.verdict(); ok {
				v.where = sp.Name + ": " + f.What
				all = append(all, v)
			}
		}
	}
	return all
}

// table returns a workload's rows, the head first.
func (r *result) table() [][]string {
	rows := [][]string{{"", "median", "quartiles", "in a slice", "allocations", "of its floor", "goal"}}
	if r.Adds {
		rows[0] = []string{"", "median", "quartiles", "in a slice", "CPU", "allocations", "added", "quartiles", "CPU added", "allocations added", "goal"}
	}
	for _, f := range r.figures {
		goal := ""
		if v, ok := f.verdict(); ok {
			goal = v.String()
		}
		row := []string{f.Name, nanos(f.Time.Median), nanos(f.Time.Low) + " to " + nanos(f.Time.High), strconv.Itoa(f.Ops)}
		if r.Adds {
			row = append(row, nanos(f.CPU.Median), count(f.Allocs.Median))
			if f.Floor == "" {
				row = append(row, "floor", "", "", "", goal)
			} else {
				row = append(row, "+"+nanos(f.Added.Median), nanos(f.Added.Low)+" to "+nanos(f.Added.High),
					"+"+nanos(f.AddedCPU.Median), "+"+count(f.Extra.Median), goal)
			}
		} else {
			row = append(row, count(f.Allocs.Median))
			if f.Floor == "" {
				row = append(row, "floor", goal)
			} else {
				row = append(row, span(f.Ratio, times), goal)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func (r *specialResult) table() [][]string {
	rows := [][]string{{"", "figure", "goal"}}
	for _, f := range r.facts {
		goal := ""
		if v, ok := f.verdict(); ok {
			goal = v.String()
		}
		rows = append(rows, []string{f.What, f.Value, goal})
	}
	return rows
}

func verdictTable(vs []verdict) [][]string {
	rows := [][]string{{"", "figure", "goal", ""}}
	for _, v := range vs {
		verdict := "met"
		if v.missed {
			verdict = "**missed**"
		}
		rows = append(rows, []string{v.where, v.figure, v.goal, verdict})
	}
	return rows
}

func (r *report) markdown(chart bool) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	section := func(name, note string, rows [][]string) {
		p("\n## %s\n\n%s\n", name, note)
		for i, row := range rows {
			p("| %s |", strings.Join(row, " | "))
			if i == 0 {
				p("|%s", strings.Repeat("---|", len(row)))
			}
		}
	}
	p("# Benchmarks\n")
	p("Written by `make bench` on %s. Don't edit it: run that.\n", time.Now().UTC().Format("2006-01-02"))
	if r.quick || r.only != "" {
		p("**Not a whole run:** %s. Its figures show that the program works.\n", r.limits())
	}
	p("- Machine: %s, %d processors, %s, %s/%s, %s%s.", cpuModel(), runtime.NumCPU(), memoryTotal(), runtime.GOOS, runtime.GOARCH, runtime.Version(), loadNow())
	p("- Servers, on the same machine: %s.", strings.Join(r.servers, ", "))
	p("- Clients and frameworks: %s.", strings.Join(versionsOf("github.com/redis/go-redis/v9", "github.com/jackc/pgx/v5", "modernc.org/sqlite",
		"github.com/gin-gonic/gin", "github.com/labstack/echo/v4"), ", "))
	p("- Peer: %s, its `middleware/idempotency` over %s. It has no fingerprint, no signed token and no lease.",
		versionsOf("github.com/gofiber/fiber/v3")[0], versionsOf("github.com/valyala/fasthttp")[0])
	p("- Not measured: `github.com/bright-room/idem` and `github.com/anandsundar/go-idempotency`. The module proxy that this was made with does not serve them.")
	p("\n%s", method(r.rounds))
	if chart {
		p("\n![What a guard adds to a handler, and the stores beside their floors](benchmarks.svg)")
	}
	if vs := r.verdicts(); len(vs) > 0 {
		section("Goals", "The machine decides what a microsecond is worth; the ratios travel.", verdictTable(vs))
		if !r.quick && r.only == "" {
			p("\n%s", missed)
		}
	}
	for _, res := range r.results {
		section(res.Name, res.Note, res.table())
	}
	for _, sp := range r.specials {
		section(sp.Name, sp.Note, sp.table())
	}
	p("\n## To repeat\n\n```sh\nmake bench                                        # all, minutes, on a machine that does nothing else\n" +
		"cd bench && go run . -only 'memory|token' -rounds 31   # a part, printed only\ncd bench && go run . -quick                            # does it run?\n```")
	return b.String()
}

func (r *report) limits() string {
	var parts []string
	if r.quick {
		parts = append(parts, "three short rounds (`-quick`)")
	}
	if r.only != "" {
		parts = append(parts, "only what matches `"+r.only+"`")
	}
	return strings.Join(parts, "; ")
}

func method(rounds int) string {
	return fmt.Sprintf(`Each workload runs all its contenders once in each of %d rounds, in an order that rotates. A figure is the median of the
rounds, and the quartiles stand beside it, and how many operations a slice has. "Of its floor" and "added" compare the two slices of one round, and then take the
median of the rounds; that is why they can differ a little from the quotient or the difference of the medians. CPU is the
time of all threads of this process, the garbage collector's too. A whole request is one through net/http's middleware and
a guard with token, fingerprint and lease on; the other lines of a store are its own calls.`, rounds)
}

// print writes all tables as text.
func (r *report) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	section := func(name string, rows [][]string) {
		fmt.Fprintf(t, "\n%s\n", name)
		for _, row := range rows {
			fmt.Fprintf(t, "  %s\n", strings.Join(row, "\t"))
		}
		_ = t.Flush() // columns are those of one table
	}
	for _, res := range r.results {
		section(res.Name, res.table())
	}
	for _, sp := range r.specials {
		section(sp.Name, sp.table())
	}
	if vs := r.verdicts(); len(vs) > 0 {
		section("goals", verdictTable(vs))
	}
	return t.Flush()
}
