package evaluation

import (
	_ "embed"
	"html/template"
	"io"
	"strconv"

	"gatewright.dev/gatewright/internal/evaluation/stats"
)

// The page needs no script and loads nothing. What cases bring along is escaped by html/template where it stands.
var (
	//go:embed page.css
	styleSheet string
	//go:embed report.html
	reportText string
	//go:embed diff.html
	diffText string
	//go:embed parts.html
	partsText string

	pages = template.Must(template.Must(template.Must(template.New("parts").Funcs(functions).Parse(partsText)).
		New("report").Parse(reportText)).New("diff").Parse(diffText))
)

var functions = template.FuncMap{
	"share": share, "interval": interval, "points": points, "number": number, "ms": ms,
	"css":   func() template.CSS { return template.CSS(styleSheet) }, //nolint:gosec // a constant of this package
	"float": func(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) },
	"hasOf": func(p stats.Proportion) bool { return p.Of > 0 },
	"first": func(n int, list []Wrong) []Wrong { return list[:min(n, len(list))] },
	"style": style, "plural": plural,
	"short": func(digest string) string { return clip(digest, 19) },
	"group": func(title string, list []Group) titledGroups { return titledGroups{title, list} },
	"tally": func(m map[string]int) string { return orDash(tally("", m)) },
}

type titledGroups struct {
	Title string
	List  []Group
}

// htmlReport is what the page shows: the report with its plots.
type htmlReport struct {
	*Report
	Breaches   []Breach
	Confusions []drawing
	Classes    drawing
	Coverages  []drawing
	// Single has the plots of single questions.
	Single    []drawing
	Latencies drawing
	// Asked names the configuration whose questions are shown: the one in which most were answered.
	Asked *ConfigurationReport
}

// WriteHTML writes the report as one page that needs nothing else. Breaches are floors that did not hold.
func (r *Report) WriteHTML(w io.Writer, breaches []Breach) error {
	page := htmlReport{Report: r, Breaches: breaches, Classes: classPlot(r.Configurations), Latencies: latencyPlot(r.Configurations)}
	for i := range r.Configurations {
		c := &r.Configurations[i]
		page.Confusions = append(page.Confusions, confusionPlot(c))
		if len(c.Curve) > 0 {
			page.Coverages = append(page.Coverages, coveragePlot(c))
		}
		if len(c.Questions) > 0 && (page.Asked == nil || answers(c) > answers(page.Asked)) {
			page.Asked = c
		}
	}
	if page.Asked != nil {
		for i := range page.Asked.Questions {
			q := &page.Asked.Questions[i]
			if len(q.Bins) > 0 {
				page.Single = append(page.Single, reliabilityPlot(q))
			}
			if len(q.ROC) > 0 {
				page.Single = append(page.Single, rocPlot(q))
			}
		}
	}
	return pages.ExecuteTemplate(w, "report", page)
}

func answers(c *ConfigurationReport) int {
	n := 0
	for i := range c.Questions {
		n += c.Questions[i].Answered
	}
	return n
}

// WriteHTML writes the difference as one page that needs nothing else.
func (d *Difference) WriteHTML(w io.Writer) error {
	return pages.ExecuteTemplate(w, "diff", struct {
		*Difference
		Caveat string
	}{d, Caveat})
}
