package console

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
)

// measured is what is drawn of a decision.
type measured struct {
	at           time.Time
	outcome      review.Outcome
	milliseconds float64
}

// Sizes of a drawing in its own units.
const (
	drawWidth  = 600
	drawHeight = 120
	columns    = 40
)

// column is a stack of pieces in a drawing.
type column struct {
	Title  string
	Pieces []piece
	// Counts in words, for the table behind the drawing.
	Label  string
	Counts []int
	Total  int
}

type piece struct {
	Class               string
	X, Y, Width, Height string
}

// charts are the drawings of the panel.
type charts struct {
	Times   []column
	From    time.Time
	To      time.Time
	Most    int
	Latency []column
	// P50, P95 and P99 of the time that deciding took, in milliseconds; nothing if there are no decisions.
	P50, P95, P99 string
	MostLatency   int
	Totals        []total
}

type total struct {
	Outcome string
	Count   int
	Share   float64
}

// outcomes from the bottom of a column to its top.
var outcomes = []review.Outcome{review.Allow, review.Clarify, review.Confirm, review.Block}

// bounds of the columns of latency in milliseconds: 1, 2, 5 in every decade from ten microseconds to the longest time-out.
var bounds = []float64{0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000}

// draw lays out outcomes over time and latency. The newest decision comes first.
func draw(all []measured) charts {
	if len(all) == 0 {
		return charts{}
	}
	c := charts{From: all[len(all)-1].at, To: all[0].at}
	c.times(all)
	c.latency(all)
	for i, o := range outcomes {
		t := total{Outcome: string(o)}
		for _, column := range c.Times {
			t.Count += column.Counts[i]
		}
		t.Share = float64(t.Count) / float64(len(all))
		c.Totals = append(c.Totals, t)
	}
	return c
}

func (c *charts) times(all []measured) {
	span := max(c.To.Sub(c.From), time.Second)
	c.Times = make([]column, columns)
	for i := range c.Times {
		c.Times[i] = column{Label: at(c.From.Add(time.Duration(float64(span) * float64(i) / columns))), Counts: make([]int, len(outcomes))}
	}
	for _, m := range all {
		// The log is in the order of writing, which is not quite that of time.
		i := min(max(int(float64(m.at.Sub(c.From))/float64(span)*columns), 0), columns-1)
		if o := slices.Index(outcomes, m.outcome); o >= 0 {
			c.Times[i].Counts[o]++
			c.Times[i].Total++
		}
	}
	c.Most = stack(c.Times, func(i int) string { return string(outcomes[i]) })
}

func (c *charts) latency(all []measured) {
	c.Latency = make([]column, len(bounds)+1)
	for i := range c.Latency {
		label := "over " + milliseconds(bounds[len(bounds)-1])
		if i < len(bounds) {
			label = "up to " + milliseconds(bounds[i])
		}
		c.Latency[i] = column{Label: label, Counts: make([]int, 1)}
	}
	sorted := make([]float64, 0, len(all))
	for _, m := range all {
		sorted = append(sorted, m.milliseconds)
		i, _ := slices.BinarySearch(bounds, m.milliseconds)
		c.Latency[i].Counts[0]++
		c.Latency[i].Total++
	}
	c.MostLatency = stack(c.Latency, func(int) string { return "Latency" })
	slices.Sort(sorted)
	quantile := func(q float64) string { return milliseconds(sorted[int(q*float64(len(sorted)-1))]) }
	c.P50, c.P95, c.P99 = quantile(0.5), quantile(0.95), quantile(0.99)
}

func milliseconds(ms float64) string { return strconv.FormatFloat(ms, 'g', 3, 64) + " ms" }

// stack lays columns side by side and scales them to the highest, which it returns.
func stack(all []column, class func(i int) string) (most int) {
	for i := range all {
		most = max(most, all[i].Total)
	}
	width := float64(drawWidth) / float64(len(all))
	for i := range all {
		c := &all[i]
		c.Title = fmt.Sprintf("%s: %d", c.Label, c.Total)
		y := float64(drawHeight)
		for j, n := range c.Counts {
			if n == 0 {
				continue
			}
			height := float64(n) / float64(most) * drawHeight
			y -= height
			c.Pieces = append(c.Pieces, piece{class(j), units(float64(i)*width + 1), units(y), units(width - 2), units(height)})
		}
	}
	return most
}

func units(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) }
