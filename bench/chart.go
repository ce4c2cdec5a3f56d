package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Measures of the picture, in its own units.
const (
	chartWidth = 820
	chartLeft  = 330 // where bars begin
	chartRight = 130 // what stays free for figures
	chartRow   = 26
	chartBar   = 14
)

// A bar is one line of a panel.
type bar struct {
	label, text string
	value, goal float64 // a goal of 0 is none
	ours        bool
}

// A panel is bars of one measure. From is what every bar has, such as the floor
// itself; the bar is pale up to there.
type panel struct {
	title, note string
	from        float64
	groups      []barGroup
}

type barGroup struct {
	title string
	bars  []bar
}

// chart draws what a guard adds in memory, and the stores beside their floors.
// It returns "" if neither was measured.
func (r *report) chart() string {
	added := panel{title: "Added to the bare handler, in memory", note: "shorter is better; the tick is the goal"}
	over := panel{title: "Time over the floor", note: "pale: what the floor itself takes; the tick is the goal", from: 1}
	for _, res := range r.results {
		var bars, ratios []bar
		for _, f := range res.figures {
			switch {
			case f.Floor != "" && res.Adds:
				bars = append(bars, bar{f.Name, "+" + nanos(f.Added.Median), max(f.Added.Median, 0), float64(f.Goal.Added), strings.Contains(f.Name, "submitonce")})
			case f.Goal.Ratio > 0:
				ratios = append(ratios, bar{res.Name, times(f.Ratio.Median), f.Ratio.Median, f.Goal.Ratio, true})
			}
		}
		if len(bars) > 0 {
			added.groups = append(added.groups, barGroup{strings.TrimPrefix(res.Name, "memory: "), bars})
		}
		if len(ratios) > 0 {
			server, _, _ := strings.Cut(res.Name, ":")
			if n := len(over.groups); n == 0 || over.groups[n-1].title != server {
				over.groups = append(over.groups, barGroup{title: server})
			}
			for _, b := range ratios {
				b.label = strings.TrimSpace(strings.TrimPrefix(b.label, server+":"))
				g := &over.groups[len(over.groups)-1]
				g.bars = append(g.bars, b)
			}
		}
	}
	var body strings.Builder
	y := 16
	for _, p := range []panel{added, over} {
		if len(p.groups) > 0 {
			y = p.draw(&body, y)
		}
	}
	if body.Len() == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="%s">`+"\n", chartWidth, y+12,
		"What a guard adds to a handler, and the stores beside their floors. The tables have the same figures.")
	b.WriteString(chartStyle)
	fmt.Fprintf(&b, `<rect class="card" x="0.5" y="0.5" width="%d" height="%d" rx="10"/>`+"\n", chartWidth-1, y+11)
	b.WriteString(body.String())
	b.WriteString("</svg>\n")
	return b.String()
}

const chartStyle = `<style>
.card { fill: #fdfbf7; stroke: #e4dccf }
text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #2b2622 }
.title { font-weight: 650; font-size: 16px }
.note { fill: #776d62 }
.group { font-weight: 600 }
.value { font-variant-numeric: tabular-nums; paint-order: stroke; stroke: #fdfbf7; stroke-width: 6px }
.ours { fill: #a9441f }
.peer { fill: #a79c8c }
.floor { fill: #e4d9c8 }
.track { stroke: #e9e2d6 }
.goal { stroke: #2b2622; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
  .card { fill: #1c1916; stroke: #38322b }
  text { fill: #ece5da }
  .note { fill: #a1978a }
  .value { stroke: #1c1916 }
  .ours { fill: #e0794a }
  .peer { fill: #7d7468 }
  .floor { fill: #3d362e }
  .track { stroke: #302b25 }
  .goal { stroke: #ece5da }
}
</style>
`

// draw appends p from y on, and returns where it ends.
func (p *panel) draw(b *strings.Builder, y int) int {
	longest := 0.0
	for _, g := range p.groups {
		for _, bar := range g.bars {
			longest = max(longest, bar.value, bar.goal)
		}
	}
	if longest == 0 {
		longest = 1
	}
	x := func(v float64) int {
		return chartLeft + int(math.Round(float64(chartWidth-chartLeft-chartRight)*v/longest))
	}
	rect := func(class string, from, to float64, y int) {
		fmt.Fprintf(b, `<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="2"/>`, class, x(from), y, max(x(to)-x(from), 1), chartBar)
	}
	y += 20
	fmt.Fprintf(b, `<text class="title" x="20" y="%d">%s <tspan class="note" font-weight="400" font-size="13">%s</tspan></text>`+"\n",
		y, html.EscapeString(p.title), html.EscapeString(p.note))
	y += 8
	for _, g := range p.groups {
		y += 24
		fmt.Fprintf(b, `<text class="group" x="20" y="%d">%s</text>`+"\n", y, html.EscapeString(g.title))
		y += 6
		for _, bar := range g.bars {
			top := y + (chartRow-chartBar)/2
			class := "peer"
			if bar.ours {
				class = "ours"
			}
			fmt.Fprintf(b, `<text x="36" y="%d">%s</text>`, y+chartRow/2+5, html.EscapeString(bar.label))
			fmt.Fprintf(b, `<line class="track" x1="%d" x2="%d" y1="%d" y2="%d"/>`, chartLeft, x(longest), y+chartRow/2, y+chartRow/2)
			if p.from > 0 {
				rect("floor", 0, min(p.from, bar.value), top)
			}
			if bar.value > p.from {
				rect(class, p.from, bar.value, top)
			}
			end := bar.value
			if bar.goal > 0 {
				fmt.Fprintf(b, `<line class="goal" x1="%d" x2="%d" y1="%d" y2="%d"/>`, x(bar.goal), x(bar.goal), top-3, top+chartBar+3)
				end = max(end, bar.goal)
			}
			fmt.Fprintf(b, `<text class="value" x="%d" y="%d">%s</text>`+"\n", x(end)+10, y+chartRow/2+5, html.EscapeString(bar.text))
			y += chartRow
		}
	}
	return y + 8
}
