package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// A Result is a workload with its figures.
type Result struct {
	Workload
	Figures []Figure
}

func round(d time.Duration) string {
	switch {
	case d >= 10*time.Millisecond:
		return d.Round(time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d >= 10*time.Microsecond:
		return d.Round(100 * time.Nanosecond).String()
	}
	return d.Round(10 * time.Nanosecond).String()
}

// floor is what a figure is compared with.
func (r *Result) floor(i int) Figure {
	if r.Peers {
		return r.Figures[i-i%2]
	}
	return r.Figures[0]
}

// against tells a figure by its floor: a ratio, or what it adds where floors are
// so short that a ratio says little.
func (r *Result) against(i int) string {
	floor := r.floor(i)
	if floor == r.Figures[i] {
		return "floor"
	}
	if r.Peers {
		return fmt.Sprintf("+%s, +%.0f allocs", round(r.Figures[i].Median-floor.Median), r.Figures[i].Allocs-floor.Allocs)
	}
	return fmt.Sprintf("%.2f ×", float64(r.Figures[i].Median)/float64(floor.Median))
}

func writeReport(path string, results []Result, facts []Fact, rounds int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Benchmarks\n\n")
	fmt.Fprintf(&b, "Made by `make bench` on %s: %s, %d cores, %s, %s/%s. Each workload runs its contenders in turn for %d rounds, in an "+
		"order that rotates; a figure is the median of the rounds, and the spread stands beside it. Only ratios and differences of "+
		"one run travel to other machines.\n\n", time.Now().UTC().Format("2006-01-02"), cpu(), runtime.NumCPU(), runtime.Version(),
		runtime.GOOS, runtime.GOARCH, rounds)
	fmt.Fprintf(&b, "![What a guard adds to a handler](benchmarks.svg)\n\n")
	fmt.Fprintf(&b, "Peers: fiber %s. The module proxy that this was made with does not serve `github.com/bright-room/idem` and "+
		"`github.com/AnandSundar/go-idempotency`, so they are not in the table.\n", version("github.com/gofiber/fiber/v3"))
	for _, r := range results {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| | median | spread | allocations | against its floor |\n|---|---|---|---|---|\n", r.Name, r.Note)
		for i, f := range r.Figures {
			fmt.Fprintf(&b, "| %s | %s | %s to %s | %.1f | %s |\n", f.Name, round(f.Median), round(f.Min), round(f.Max), f.Allocs, r.against(i))
		}
	}
	if len(facts) > 0 {
		fmt.Fprintf(&b, "\n## Single figures\n\n| | |\n|---|---|\n")
		for _, f := range facts {
			fmt.Fprintf(&b, "| %s | %s |\n", f.What, f.Value)
		}
	}
	fmt.Fprintf(&b, "\nTo repeat: `make bench`, or `cd bench && go run . -only REGEXP`.\n")
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

func cpu() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, _ := strings.Cut(lines.Text(), ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

func version(module string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == module {
				return m.Version
			}
		}
	}
	return "unknown"
}

// writeChart draws what each guard adds to its own bare handler.
func writeChart(path string, results []Result) error {
	type bar struct {
		label string
		added time.Duration
		ours  bool
	}
	type group struct {
		title string
		bars  []bar
	}
	var groups []group
	var longest time.Duration
	for _, r := range results {
		if !r.Peers {
			continue
		}
		g := group{title: strings.TrimPrefix(r.Name, "memory: ")}
		for i, f := range r.Figures {
			if i%2 == 0 {
				continue
			}
			added := max(f.Median-r.floor(i).Median, 0)
			longest = max(longest, added)
			g.bars = append(g.bars, bar{f.Name, added, strings.Contains(f.Name, "submitonce")})
		}
		groups = append(groups, g)
	}
	if len(groups) == 0 || longest == 0 {
		return nil
	}
	const width, left, right, row = 760, 240, 90, 30
	height := 56
	for _, g := range groups {
		height += 34 + row*len(g.bars)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="What a guard adds to a handler, in memory">`, width, height)
	b.WriteString(`<style>
text { font: 14px system-ui, sans-serif; fill: #2b2622 }
.title { font-weight: 600; font-size: 16px }
.group { font-weight: 600 }
.value { font-variant-numeric: tabular-nums }
.ours { fill: #a9441f }
.peer { fill: #b9ae9d }
@media (prefers-color-scheme: dark) { text { fill: #ece5da } .peer { fill: #746b5f } .ours { fill: #d9703f } }
</style>`)
	fmt.Fprintf(&b, `<text class="title" x="16" y="30">Added to the bare handler, in memory; shorter is better</text>`)
	y := 48
	for _, g := range groups {
		y += 24
		fmt.Fprintf(&b, `<text class="group" x="16" y="%d">%s</text>`, y, g.title)
		y += 10
		for _, bar := range g.bars {
			class := "peer"
			if bar.ours {
				class = "ours"
			}
			w := int(float64(width-left-right) * float64(bar.added) / float64(longest))
			fmt.Fprintf(&b, `<text x="32" y="%d">%s</text><rect class="%s" x="%d" y="%d" width="%d" height="18" rx="3"/>`+
				`<text class="value" x="%d" y="%d">%s</text>`, y+19, bar.label, class, left, y+5, max(w, 2), left+max(w, 2)+8, y+19, round(bar.added))
			y += row
		}
	}
	b.WriteString("</svg>\n")
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

func printResults(results []Result, facts []Fact) {
	for _, r := range results {
		fmt.Printf("\n%s\n", r.Name)
		for i, f := range r.Figures {
			fmt.Printf("  %-44s %10s  %10s … %-10s %6.1f allocs  %s\n", f.Name, round(f.Median), round(f.Min), round(f.Max), f.Allocs, r.against(i))
		}
	}
	fmt.Println()
	for _, f := range facts {
		fmt.Printf("  %-90s %s\n", f.What, f.Value)
	}
}
