package evaluation

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// drawing is a plot: shapes in one system of coordinates, from the upper left. It is drawn without a script, and every text
// in it is escaped by the template.
type drawing struct {
	// Title names it for readers who do not see it.
	Title         string
	Width, Height float64
	Shapes        []shape
}

// shape is one mark of a drawing. Kind says which members count.
type shape struct {
	Kind           string // rect, line, dot, path, text
	Class          string // of the style sheet
	X, Y           float64
	W, H           float64 // of a rect; of a line, its end relative to X, Y
	Radius         float64 // of a dot, and of the corners of a rect
	Opacity        float64 // of a rect; 0 means all of it
	Points         string  // of a path
	Text           string
	Anchor         string  // start, middle, end
	Hint           string  // shown when pointed at
	RightX, LowerY float64 // of a line, its end
}

func (d *drawing) rect(class string, x, y, w, h float64, hint string) *shape {
	d.Shapes = append(d.Shapes, shape{Kind: "rect", Class: class, X: x, Y: y, W: w, H: h, Hint: hint, Opacity: 1})
	return &d.Shapes[len(d.Shapes)-1]
}

func (d *drawing) line(class string, x1, y1, x2, y2 float64) {
	d.Shapes = append(d.Shapes, shape{Kind: "line", Class: class, X: x1, Y: y1, RightX: x2, LowerY: y2})
}

func (d *drawing) dot(class string, x, y, radius float64, hint string) {
	d.Shapes = append(d.Shapes, shape{Kind: "dot", Class: class, X: x, Y: y, Radius: radius, Hint: hint})
}

func (d *drawing) text(class, anchor string, x, y float64, text string) {
	d.Shapes = append(d.Shapes, shape{Kind: "text", Class: class, Anchor: anchor, X: x, Y: y, Text: text})
}

// path draws through points, given as x, y, x, y.
func (d *drawing) path(class string, xy []float64) {
	var parts []string
	for i := 0; i+1 < len(xy); i += 2 {
		parts = append(parts, strconv.FormatFloat(xy[i], 'f', 1, 64)+","+strconv.FormatFloat(xy[i+1], 'f', 1, 64))
	}
	d.Shapes = append(d.Shapes, shape{Kind: "path", Class: class, Points: strings.Join(parts, " ")})
}

// frame is the area of a plot with shares on both axes.
type frame struct{ left, top, width, height, fromY float64 }

func (f frame) x(share float64) float64 { return f.left + share*f.width }

// y puts fromY at the bottom and 1 at the top; what is below the bottom is drawn on it.
func (f frame) y(share float64) float64 {
	return f.top + f.height*(1-max(0, (share-f.fromY)/(1-f.fromY)))
}

// axes draws a grid of quarters with labels, and what the axes are.
func (d *drawing) axes(f frame, xLabel, yLabel string) {
	for _, share := range []float64{0, 0.25, 0.5, 0.75, 1} {
		x := f.x(share)
		d.line("grid", x, f.top, x, f.top+f.height)
		d.text("tick", "middle", x, f.top+f.height+16, fmt.Sprintf("%.0f", 100*share))
		value := f.fromY + share*(1-f.fromY)
		y := f.y(value)
		d.line("grid", f.left, y, f.left+f.width, y)
		d.text("tick", "end", f.left-6, y+4, strconv.FormatFloat(math.Round(1000*value)/10, 'f', -1, 64))
	}
	d.line("axis", f.left, f.top+f.height, f.left+f.width, f.top+f.height)
	d.text("label", "middle", f.left+f.width/2, f.top+f.height+34, xLabel)
	d.text("label", "start", f.left-28, f.top-20, yLabel)
}
