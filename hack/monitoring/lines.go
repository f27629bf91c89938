package main

import (
	"fmt"
	"math"
	"strings"
)

// Measures of a plot in pixels: what is kept for the scale at the left and for the seconds below, and one line of the legend.
const scaleWidth, secondsHeight, legendLine = 54, 18, 16

// maxLegend is how many lines a legend has; what does not fit is counted.
const maxLegend = 4

// lines draws series over time with a legend below.
func (c *canvas) lines(p *panel, b box, all []series, seconds float64) {
	d := &p.FieldConfig.Defaults
	var names, colors []string
	top := 0.0
	for i := range all {
		names, colors = append(names, all[i].name), append(colors, p.colorOf(all[i].name, i))
		for _, pt := range all[i].points {
			top = max(top, pt.value)
		}
	}
	limit := d.limit()
	step := niceStep(max(top, 1e-9) / 4)
	if top == 0 {
		step = 0.25
	}
	top = step * math.Ceil(max(top, 4*step)/step)
	legend := layoutLegend(names, b.w)
	plot := box{b.x + scaleWidth, b.y + 4, b.w - scaleWidth, b.h - 4 - secondsHeight - float64(len(legend))*legendLine}
	x := func(at float64) float64 { return plot.x + plot.w*max(0, at)/seconds }
	y := func(v float64) float64 { return plot.y + plot.h*(1-v/top) }
	for v := 0.0; v <= top*1.001; v += step {
		c.add(`<path d="M%.1f %.1fh%.1f" stroke="%s"/>`, plot.x, y(v), plot.w, faint)
		c.text(plot.x-6, y(v)+4, 10, muted, "end", d.format(v))
	}
	for at := 0.0; at <= seconds; at += niceStep(seconds / 5) {
		c.text(x(at), plot.y+plot.h+14, 10, muted, "middle", fmt.Sprintf("%.0f s", at))
	}
	if limit > 0 && limit <= top {
		c.add(`<path d="M%.1f %.1fh%.1f" stroke="%s" stroke-dasharray="4 4"/>`, plot.x, y(limit), plot.w, named["red"])
	}
	for i := range all {
		c.add(`<path d="%s" fill="none" stroke="%s" stroke-width="1.5" stroke-linejoin="round"/>`, path(all[i].points, x, y), colors[i])
	}
	c.legend(legend, names, colors, b.x, plot.y+plot.h+secondsHeight+12)
}

// limit is the value of a threshold that is drawn as a line, 0 for none.
func (d *defaults) limit() float64 {
	if d.Custom.ThresholdsStyle.Mode != "line" {
		return 0
	}
	for _, s := range d.Thresholds.Steps {
		if s.Value != nil {
			return *s.Value
		}
	}
	return 0
}

// path joins points, and leaves a gap where one is missing.
func path(points []point, x, y func(float64) float64) string {
	var out strings.Builder
	for i, p := range points {
		verb := "L"
		if i == 0 || p.at-points[i-1].at > 1.5 {
			verb = "M"
		}
		fmt.Fprintf(&out, "%s%.1f %.1f", verb, x(p.at), y(p.value))
	}
	return out.String()
}

// niceStep is the next of 1, 2, 5, 10 and so on.
func niceStep(v float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*unit >= v*0.999 {
			return m * unit
		}
	}
	return 10 * unit
}

// entryWidth is the width of an entry of a legend, with its mark and the space behind it.
func entryWidth(name string) float64 { return float64(len([]rune(name)))*6.3 + 28 }

// layoutLegend breaks the entries into lines. The last entry that is -1 stands for those that do not fit.
func layoutLegend(names []string, width float64) [][]int {
	var lines [][]int
	used := width + 1
	for i, name := range names {
		if used+entryWidth(name) > width {
			if len(lines) == maxLegend {
				last := lines[maxLegend-1]
				lines[maxLegend-1] = append(last[:len(last)-1], -1)
				return lines
			}
			lines, used = append(lines, nil), 0
		}
		lines[len(lines)-1] = append(lines[len(lines)-1], i)
		used += entryWidth(name)
	}
	return lines
}

func (c *canvas) legend(lines [][]int, names, colors []string, x, y float64) {
	shown := 0
	for i, line := range lines {
		at := x
		for _, n := range line {
			if n < 0 {
				c.text(at, y+float64(i)*legendLine, 11, muted, "start", fmt.Sprintf("and %d more", len(names)-shown))
				continue
			}
			shown++
			c.add(`<rect x="%.1f" y="%.1f" width="12" height="3" fill="%s"/>`, at, y+float64(i)*legendLine-5, colors[n])
			c.text(at+16, y+float64(i)*legendLine, 11, muted, "start", names[n])
			at += entryWidth(names[n])
		}
	}
}
