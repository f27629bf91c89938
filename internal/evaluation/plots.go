package evaluation

import (
	"fmt"
	"math"

	"gatewright.dev/gatewright/internal/evaluation/stats"
)

// style is the class by which a configuration is coloured, the same in every plot.
func style(c Configuration) string {
	switch c {
	case RulesOnly:
		return "rules"
	case DeciderOnly:
		return "decider"
	case Stacked, AsServed:
	}
	return "stacked"
}

// confusionPlot draws two rows of two cells: what was labelled, and what became of it.
func confusionPlot(c *ConfigurationReport) drawing {
	const left, top, w, h, gap = 92.0, 44.0, 118.0, 70.0, 2.0
	d := drawing{Title: "Confusion matrix of " + string(c.Configuration), Width: left + 2*w + gap + 4, Height: top + 2*h + gap + 4}
	d.text("label strong", "start", 0, 14, string(c.Configuration))
	for i, column := range []string{"stopped", "ran"} {
		d.text("label", "middle", left+float64(i)*(w+gap)+w/2, top-8, column)
	}
	for i, row := range []struct {
		name           string
		n              Counts
		stopped, ran   string
		stopped1, ran1 string
	}{
		{"dangerous", c.Answered.Confusion.Dangerous, "right", "harm", "caught", "missed"},
		{"harmless", c.Answered.Confusion.Harmless, "burden", "right", "held up", "let through"},
	} {
		y := top + float64(i)*(h+gap)
		d.text("label", "end", left-10, y+h/2+4, row.name)
		d.cell(row.stopped, left, y, w, h, row.n.Stopped(), row.n.Total(), row.stopped1)
		d.cell(row.ran, left+w+gap, y, w, h, row.n.Allow, row.n.Total(), row.ran1)
	}
	return d
}

func (d *drawing) cell(class string, x, y, w, h float64, n, of int, word string) {
	share := 0.0
	if of > 0 {
		share = float64(n) / float64(of)
	}
	d.rect("cell", x, y, w, h, "")
	r := d.rect("cell "+class, x, y, w, h, fmt.Sprintf("%s: %d of %d", word, n, of))
	r.Opacity = 0.08 + 0.62*share
	d.text("figure", "middle", x+w/2, y+h/2, fmt.Sprint(n))
	d.text("cellnote", "middle", x+w/2, y+h/2+18, fmt.Sprintf("%s, %s %%", word, percent(share)))
}

// classPlot draws, for each class, the share of dangerous calls that were stopped and of harmless ones that were, one bar
// for each configuration, with intervals.
func classPlot(list []ConfigurationReport) drawing {
	const left, half, gap, bar, top = 96.0, 300.0, 84.0, 13.0, 46.0
	d := drawing{Title: "Recall of dangerous calls and false blocks, by class", Width: left + 2*half + gap + 50}
	y := top
	for _, class := range classOrder {
		y = d.classRows(list, class, y, left, half, gap, bar)
	}
	d.Height = y + 8
	for i, title := range []string{"dangerous calls that were stopped, %", "harmless calls that were stopped, %"} {
		x := left + float64(i)*(half+gap)
		d.text("label strong", "start", x, 14, title)
		for _, share := range []float64{0, 0.5, 1} {
			d.text("tick", "middle", x+share*half, 34, fmt.Sprintf("%.0f", 100*share))
		}
	}
	return d
}

func (d *drawing) classRows(list []ConfigurationReport, class string, y, left, half, gap, bar float64) float64 {
	began := y
	for i := range list {
		for _, g := range list[i].ByClass {
			if g.Name != class {
				continue
			}
			hint := string(list[i].Configuration) + ", " + class + ": "
			d.bar(style(list[i].Configuration), left, y, half, bar, g.Scores.Recall, hint)
			d.bar(style(list[i].Configuration), left+half+gap, y, half, bar, g.Scores.FalseBlock, hint)
			y += bar + 2
		}
	}
	if y == began {
		return y
	}
	d.text("label", "end", left-10, (began+y)/2+3, class)
	return y + 14
}

func (d *drawing) bar(class string, x, y, width, height float64, p stats.Proportion, hint string) {
	d.rect("track", x, y, width, height, "")
	if p.Of == 0 {
		d.text("tick", "start", x+width+6, y+height-2, "no cases")
		return
	}
	r := d.rect("fill "+class, x, y, width*p.Value, height, hint+share(p))
	r.Radius = 2
	middle := y + height/2
	d.line("whisker", x+width*p.Low, middle, x+width*p.High, middle)
	d.text("tick", "start", x+width+6, y+height-2, percent(p.Value))
}

// coveragePlot draws accuracy against coverage, one dot for each floor of confidence.
func coveragePlot(c *ConfigurationReport) drawing {
	d := drawing{Title: "Accuracy against coverage as the floor of confidence rises, " + string(c.Configuration), Width: 490, Height: 346}
	lowest := 1.0
	for _, s := range c.Curve {
		if s.Coverage.Count > 0 {
			lowest = min(lowest, s.Accuracy.Low)
		}
	}
	f := frame{left: 50, top: 62, width: 380, height: 230, fromY: math.Floor(min(lowest, 0.8)*5) / 5}
	d.axes(f, "answers that reach the floor, %", "right among these, %")
	var line []float64
	d.text("label strong", "start", 0, 14, string(c.Configuration))
	lastX, lastY := -100.0, -100.0
	for i, s := range c.Curve {
		if s.Coverage.Count == 0 || i > 0 && s.Coverage == c.Curve[i-1].Coverage {
			continue // a floor that changes nothing
		}
		x, y := f.x(s.Coverage.Value), f.y(s.Accuracy.Value)
		line = append(line, x, y)
		d.line("whisker "+style(c.Configuration), x, f.y(s.Accuracy.Low), x, f.y(s.Accuracy.High))
		d.dot("mark "+style(c.Configuration), x, y, 4, fmt.Sprintf("confidence at least %.2f: coverage %s, accuracy %s", s.Floor, share(s.Coverage), share(s.Accuracy)))
		if math.Hypot(x-lastX, y-lastY) > 34 {
			d.text("tick", "start", x+8, y-7, fmt.Sprintf("%.2f", s.Floor))
			lastX, lastY = x, y
		}
	}
	d.path("curve "+style(c.Configuration), line)
	return d
}

// reliabilityPlot draws how often a yes was true against how likely it was said to be.
func reliabilityPlot(q *Question) drawing {
	d := drawing{Title: "Reliability of " + q.Name, Width: 280, Height: 318}
	f := frame{left: 46, top: 76, width: 200, height: 180}
	d.text("label strong", "start", 0, 14, q.Name)
	if q.ECE != nil && q.Brier != nil {
		d.text("tick", "start", 0, 30, fmt.Sprintf("ECE %.3f, Brier %.3f, against the %s", *q.ECE, *q.Brier, truthWord(q.Truth)))
	}
	d.axes(f, "said to be yes, %", "true, %")
	d.line("diagonal", f.x(0), f.y(0), f.x(1), f.y(1))
	most := 0
	for _, b := range q.Bins {
		most = max(most, b.Count)
	}
	for _, b := range q.Bins {
		if b.Count > 0 {
			radius := 3 + 8*math.Sqrt(float64(b.Count)/float64(most))
			d.dot("mark stacked soft", f.x(b.Mean), f.y(b.Observed), radius,
				fmt.Sprintf("%d answers of %.2f to %.2f: %.2f on average, true in %.2f", b.Count, b.Low, b.High, b.Mean, b.Observed))
		}
	}
	return d
}

func truthWord(truth string) string {
	if truth == "expected" {
		return "expected answers"
	}
	return "label"
}

// rocPlot draws how well a question alone ranks.
func rocPlot(q *Question) drawing {
	d := drawing{Title: "ROC of " + q.Name, Width: 280, Height: 318}
	f := frame{left: 46, top: 76, width: 200, height: 180}
	d.text("label strong", "start", 0, 14, q.Name)
	if q.AUC != nil {
		d.text("tick", "start", 0, 30, "AUC "+interval(q.AUC))
	}
	d.axes(f, "harmless calls stopped, %", "dangerous calls stopped, %")
	d.line("diagonal", f.x(0), f.y(0), f.x(1), f.y(1))
	var line []float64
	for _, p := range q.ROC {
		line = append(line, f.x(p.FalsePositives), f.y(p.TruePositives))
	}
	d.path("curve stacked", line)
	return d
}

// latencyPlot draws percentiles on a scale of tens.
func latencyPlot(list []ConfigurationReport) drawing {
	const left, width, row, top = 150.0, 520.0, 34.0, 34.0
	least, most := math.Inf(1), 0.0
	type track struct {
		name, class string
		s           stats.Spread
		first       float64
	}
	var tracks []track
	for i := range list {
		c := &list[i]
		tracks = append(tracks, track{string(c.Configuration), style(c.Configuration), c.Latency.Call, c.Latency.First})
		if c.Latency.Decider.Count > 0 {
			tracks = append(tracks, track{"its decider", style(c.Configuration), c.Latency.Decider, 0})
		}
	}
	for _, t := range tracks {
		least, most = min(least, max(t.s.P50, 0.001)), max(most, t.s.Worst, t.first)
	}
	low, high := math.Floor(math.Log10(least)), math.Ceil(math.Log10(max(most, 0.002)))
	at := func(v float64) float64 {
		return left + width*(math.Log10(max(v, 0.001))-low)/max(high-low, 1)
	}
	d := drawing{Title: "Latency in milliseconds", Width: left + width + 40, Height: top + row*float64(len(tracks)) + 16}
	for p := low; p <= high; p++ {
		d.line("grid", at(math.Pow(10, p)), top-8, at(math.Pow(10, p)), d.Height-8)
		d.text("tick", "middle", at(math.Pow(10, p)), 14, fmt.Sprintf("%g ms", math.Pow(10, p)))
	}
	for i, t := range tracks {
		y := top + row*float64(i) + 12
		d.text("label", "end", left-14, y+4, t.name)
		d.line("range "+t.class, at(t.s.P50), y, at(t.s.Worst), y)
		for _, m := range []struct {
			name  string
			value float64
			r     float64
		}{{"p50", t.s.P50, 6}, {"p95", t.s.P95, 5}, {"p99", t.s.P99, 4}, {"worst", t.s.Worst, 3}} {
			d.dot("mark "+t.class, at(m.value), y, m.r, fmt.Sprintf("%s %s: %s ms", t.name, m.name, ms(m.value)))
		}
		if t.first > 0 {
			d.dot("hollow "+t.class, at(t.first), y, 6, fmt.Sprintf("%s, first call: %s ms", t.name, ms(t.first)))
		}
	}
	return d
}
