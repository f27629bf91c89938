package main

import (
	"cmp"
	"context"
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Measures of the page in pixels, near those of Grafana: 24 columns, and rows of 30 with a gap of 8.
const (
	pageWidth, headHeight = 1600, 64
	cell, rowUnit, gap    = pageWidth / 24.0, 38, 8
)

// Colours of the page.
const (
	background, surface, edge = "#111217", "#181b1f", "#2b2f36"
	bright, muted, faint      = "#d8d9da", "#9aa1ad", "#30353d"
)

// named are the colours that the dashboard names.
var named = map[string]string{"green": "#73bf69", "red": "#f2495c", "orange": "#ff9830", "blue": "#5794f2", "transparent": muted}

// palette is for series without a colour of their own.
var palette = []string{"#73bf69", "#f2cc0c", "#8ab8ff", "#ff780a", "#f2495c", "#5794f2", "#b877d9", "#705da0", "#37872d", "#fade2a", "#8ab8a8", "#c4162a"}

// canvas is an SVG in the making.
type canvas struct{ strings.Builder }

func (c *canvas) add(format string, args ...any) { fmt.Fprintf(c, format+"\n", args...) }

// text writes a text; anchor is start, middle or end.
func (c *canvas) text(x, y float64, size int, color, anchor, s string) {
	c.add(`<text x="%.1f" y="%.1f" font-size="%d" fill="%s" text-anchor="%s">%s</text>`, x, y, size, color, anchor, html.EscapeString(s))
}

// box is a rectangle in pixels.
type box struct{ x, y, w, h float64 }

func (g grid) box() box {
	return box{float64(g.X)*cell + gap/2, float64(g.Y)*rowUnit + headHeight, float64(g.W)*cell - gap, float64(g.H)*rowUnit - gap}
}

// draw writes the page and has chromium make a picture of it.
func draw(ctx context.Context, c *config, board *dashboard, results map[int][]result, s span) error {
	var out canvas
	bottom := 0
	for i := range board.Panels {
		bottom = max(bottom, board.Panels[i].GridPos.Y+board.Panels[i].GridPos.H)
	}
	height := bottom*rowUnit + headHeight
	out.add(`<!doctype html><meta charset="utf-8"><title>%s</title><body style="margin:0;background:%s">`, html.EscapeString(board.Title), background)
	out.add(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="DejaVu Sans, sans-serif">`, pageWidth, height)
	out.text(gap, 30, 20, bright, "start", board.Title)
	out.text(gap, 50, 12, muted, "start", fmt.Sprintf("Drawn by hack/monitoring from the queries of %s: one gate on config/samples, %.0f s of calls, a real Prometheus.",
		filepath.Base(c.dashboard), c.duration.Seconds()))
	for i := range board.Panels {
		p := &board.Panels[i]
		b := p.GridPos.box()
		if p.Type == "row" {
			out.text(b.x, b.y+22, 15, bright, "start", p.Title)
			continue
		}
		out.add(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="3" fill="%s" stroke="%s"/>`, b.x, b.y, b.w, b.h, surface, edge)
		out.text(b.x+10, b.y+20, 13, bright, "start", p.Title)
		out.panel(p, box{b.x + 10, b.y + 32, b.w - 20, b.h - 42}, results[p.ID], s.to.Sub(s.from).Seconds())
	}
	out.add(`</svg>`)
	if err := os.WriteFile(c.page(), []byte(out.String()), 0o600); err != nil {
		return err
	}
	return c.screenshot(ctx, height)
}

func (c *canvas) panel(p *panel, b box, results []result, seconds float64) {
	var all []series
	for _, r := range results {
		all = append(all, r.series...)
	}
	switch {
	case len(all) == 0:
		c.text(b.x+b.w/2, b.y+b.h/2+6, 16, muted, "middle", p.FieldConfig.Defaults.NoValue)
	case p.Type == "stat":
		c.stat(p, b, all[0].last())
	case p.Type == "bargauge":
		c.bars(p, b, all)
	default:
		c.lines(p, b, all, seconds)
	}
}

func (c *canvas) stat(p *panel, b box, v float64) {
	d := &p.FieldConfig.Defaults
	text, color := d.format(v), d.color(v)
	for _, m := range d.Mappings {
		if o, ok := m.Options[fmt.Sprint(v)]; ok {
			text, color = o.Text, named[o.Color]
		}
	}
	size := min(44, int(b.h*0.6), int(1.5*b.w/float64(len(text))))
	c.text(b.x+b.w/2, b.y+b.h/2+float64(size)/3, size, color, "middle", text)
}

// color of a value by the thresholds.
func (d *defaults) color(v float64) string {
	color := named["blue"]
	for _, s := range d.Thresholds.Steps {
		if s.Value == nil || v >= *s.Value {
			color = named[s.Color]
		}
	}
	return color
}

// bars draws horizontal bars, the longest first.
func (c *canvas) bars(p *panel, b box, all []series) {
	d := &p.FieldConfig.Defaults
	slices.SortStableFunc(all, func(x, y series) int { return -cmp.Compare(x.last(), y.last()) })
	most, widest := all[0].last(), 0
	if d.Max != nil {
		most = *d.Max
	}
	for _, s := range all {
		widest = max(widest, len(s.name))
	}
	label, value := min(float64(widest)*6.8+8, b.w*0.5), 62.0
	step := min(30, b.h/float64(len(all)))
	for i, s := range all {
		y := b.y + float64(i)*step
		c.text(b.x, y+step*0.62, 11, muted, "start", s.name)
		full := b.w - label - value
		c.add(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`, b.x+label, y+step*0.15, full, step*0.7, faint)
		c.add(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`, b.x+label, y+step*0.15, full*min(1, s.last()/max(most, 1e-9)), step*0.7, d.color(s.last()))
		c.text(b.x+b.w, y+step*0.62, 11, d.color(s.last()), "end", d.format(s.last()))
	}
}

// colorOf is the colour of a series: as the dashboard says by name, or the next of the palette.
func (p *panel) colorOf(name string, i int) string {
	for _, o := range p.FieldConfig.Overrides {
		pattern, err := regexp.Compile(strings.Trim(o.Matcher.Options, "/"))
		if err == nil && pattern.MatchString(name) && len(o.Properties) > 0 {
			return named[o.Properties[0].Value.FixedColor]
		}
	}
	return palette[i%len(palette)]
}

// format writes a value in the unit of the panel.
func (d *defaults) format(v float64) string {
	switch d.Unit {
	case "percentunit":
		return fmt.Sprintf("%.*f %%", d.decimals(1), 100*v)
	case "reqps":
		return trim(v) + "/s"
	case "s":
		switch {
		case v == 0:
			return "0 s"
		case v < 1e-3:
			return trim(v*1e6) + " µs"
		case v < 1:
			return trim(v*1e3) + " ms"
		}
		return trim(v) + " s"
	}
	if d.Decimals != nil {
		return fmt.Sprintf("%.*f", *d.Decimals, v)
	}
	return trim(v)
}

func (d *defaults) decimals(otherwise int) int {
	if d.Decimals != nil {
		return *d.Decimals
	}
	return otherwise
}

// trim writes three digits that count.
func trim(v float64) string {
	if math.Abs(v) >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
