package evaluation

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"

	"gatewright.dev/gatewright/internal/evaluation/stats"
)

// WriteJSON writes the report for programs.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d cases (%d dangerous, %d harmless) of %d user requests, %s\n", printable(r.Name), r.Cases, r.Dangerous, r.Harmless, r.Requests, plural(r.Repeats, "repeat"))
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", printable(note))
	}
	r.textOverview(&b)
	for i := range r.Configurations {
		r.Configurations[i].text(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) textOverview(b *strings.Builder) {
	b.WriteString("\nStopped calls; a question to a person or the user counts as stopped\n")
	grid(b, "CONFIGURATION\tRECALL OF DANGEROUS\tPRECISION\tACCURACY\tFALSE BLOCKS\tFALSE ALLOWS\tCLARIFIED", func(row func(...string)) {
		for i := range r.Configurations {
			c := &r.Configurations[i]
			row(overview(string(c.Configuration), &c.Answered)...)
			if c.Judged != nil {
				row(overview("  without standing approvals", c.Judged)...)
			}
		}
	})
	if len(r.Comparisons) == 0 {
		return
	}
	b.WriteString("\nDifferences in percentage points, with 95 % intervals drawn by user request\n")
	grid(b, "\tRECALL\tFALSE BLOCKS\tACCURACY\tDANGEROUS CAUGHT, LOST\tHARMLESS SPARED, BURDENED", func(row func(...string)) {
		for _, c := range r.Comparisons {
			row(fmt.Sprintf("%s against %s", c.With, c.Without), points(c.Recall), points(c.FalseBlock), points(c.Accuracy),
				fmt.Sprintf("%d, %d", c.Caught, c.Lost), fmt.Sprintf("%d, %d", c.Spared, c.Burdened))
		}
	})
}

func overview(name string, s *Scores) []string {
	return []string{name, share(s.Recall), share(s.Precision), share(s.Accuracy), share(s.FalseBlock), share(s.FalseAllow), share(s.Clarification)}
}

func (c *ConfigurationReport) text(b *strings.Builder) {
	fmt.Fprintf(b, "\n== %s", c.Configuration)
	for _, f := range c.Fingerprints {
		fmt.Fprintf(b, "  %s", printable(f))
	}
	b.WriteByte('\n')
	c.textConfusion(b)
	for _, part := range []struct {
		name   string
		groups []Group
	}{{"CLASS", c.ByClass}, {"SOURCE", c.BySource}, {"FAMILY", c.ByFamily}, {"KIND", c.ByKind}, {"HALF", c.ByHalf}} {
		textGroups(b, part.name, part.groups)
	}
	b.WriteByte('\n')
	grid(b, "DECIDED BY\tREASON\tOUTCOME\tDANGEROUS\tHARMLESS", func(row func(...string)) {
		for _, d := range c.DecidedBy {
			row(d.By, d.Reason, d.Outcome, strconv.Itoa(d.Dangerous), strconv.Itoa(d.Harmless))
		}
	})
	c.textQuestions(b)
	c.textRest(b)
}

func (c *ConfigurationReport) textConfusion(b *strings.Builder) {
	grid(b, "\tALLOW\tCLARIFY\tCONFIRM\tBLOCK\tNO ANSWER", func(row func(...string)) {
		for _, l := range []struct {
			name string
			n    Counts
		}{{"dangerous", c.Answered.Confusion.Dangerous}, {"harmless", c.Answered.Confusion.Harmless}} {
			row(l.name, strconv.Itoa(l.n.Allow), strconv.Itoa(l.n.Clarify), strconv.Itoa(l.n.Confirm), strconv.Itoa(l.n.Block), strconv.Itoa(l.n.Failed))
		}
	})
	fmt.Fprintf(b, "settled without a model: %s   without a person: %s   denied though harmless: %s\n",
		share(c.Coverage.WithoutModel), share(c.Coverage.WithoutPerson), share(c.Answered.FalseDeny))
	if c.Expected != nil {
		fmt.Fprintf(b, "outcome as expected by the case: %s\n", share(c.Expected.Outcome))
	}
}

// maxGroups is how many groups of one sort the text shows; a longer table hides the rest of the report.
const maxGroups = 30

func textGroups(b *strings.Builder, name string, groups []Group) {
	if len(groups) == 0 {
		return
	}
	b.WriteByte('\n')
	if len(groups) > maxGroups {
		fmt.Fprintf(b, "%s: %d of them, all in the other formats\n", name, len(groups))
		return
	}
	grid(b, name+"\tDANGEROUS STOPPED\tHARMLESS STOPPED\tACCURACY", func(row func(...string)) {
		for _, g := range groups {
			row(g.Name, share(g.Scores.Recall), share(g.Scores.FalseBlock), share(g.Scores.Accuracy))
		}
	})
}

func (c *ConfigurationReport) textQuestions(b *strings.Builder) {
	if len(c.Questions) == 0 {
		return
	}
	b.WriteByte('\n')
	grid(b, "QUESTION\tTYPE\tAGAINST\tACCURACY\tFALSE YES, NO\tAUC\tRECALL AT 5 %\tAT 10 %\tECE\tBRIER", func(row func(...string)) {
		for i := range c.Questions {
			q := &c.Questions[i]
			directions := "-"
			if q.Type == "YesNo" && q.Truth != "" {
				directions = fmt.Sprintf("%d, %d", q.FalseYes, q.FalseNo)
			}
			row(q.Name, q.Type, orDash(q.Truth), share(q.Accuracy), directions, interval(q.AUC), interval(q.RecallAt5), interval(q.RecallAt10), number(q.ECE), number(q.Brier))
		}
	})
	for _, t := range c.ByType {
		fmt.Fprintf(b, "right of all %s answers: %s\n", t.Type, share(t.Accuracy))
	}
	if len(c.Curve) == 0 {
		return
	}
	b.WriteByte('\n')
	grid(b, "CONFIDENCE AT LEAST\tCOVERAGE\tACCURACY", func(row func(...string)) {
		for _, s := range c.Curve {
			row(fmt.Sprintf("%.2f", s.Floor), share(s.Coverage), share(s.Accuracy))
		}
	})
}

func (c *ConfigurationReport) textRest(b *strings.Builder) {
	b.WriteByte('\n')
	grid(b, "MILLISECONDS\tP50\tP95\tP99\tWORST\tFIRST\tCOUNT", func(row func(...string)) {
		l := &c.Latency
		row("call", ms(l.Call.P50), ms(l.Call.P95), ms(l.Call.P99), ms(l.Call.Worst), ms(l.First), strconv.Itoa(l.Call.Count))
		if l.Decider.Count > 0 {
			row("decider", ms(l.Decider.P50), ms(l.Decider.P95), ms(l.Decider.P99), ms(l.Decider.Worst), "-", strconv.Itoa(l.Decider.Count))
		}
	})
	fmt.Fprintf(b, "timeouts: %d   malformed: %d   cut: %d%s%s\n", c.Failures.Timeouts, c.Failures.Malformed, c.Failures.Cut, tally("   decider: ", c.Failures.Decider), tally("   gate: ", c.Failures.Gate))
	if t := c.Tokens; t != nil {
		fmt.Fprintf(b, "requests to deciders: %d   ", t.Requests)
		if t.Input+t.Output > 0 {
			fmt.Fprintf(b, "tokens in: %d (%.0f a request)   tokens out: %d (%.1f a request)", t.Input, t.InputPerRequest, t.Output, t.OutputPerRequest)
		} else {
			b.WriteString("tokens: not reported")
		}
		if t.CostPerThousand != nil {
			fmt.Fprintf(b, "   cost of 1,000 decisions: %.4f", *t.CostPerThousand)
		}
		b.WriteByte('\n')
	}
	if f := c.Flaps; f != nil {
		fmt.Fprintf(b, "another outcome in another repeat: %s\n", share(f.Rate))
		for _, one := range f.Cases[:min(len(f.Cases), 10)] {
			fmt.Fprintf(b, "  %s (%s): %s\n", printable(one.ID), one.Class, strings.Join(one.Outcomes, ", "))
		}
	}
	if n := len(c.Missed); n > 0 {
		fmt.Fprintf(b, "dangerous calls that were allowed:\n")
		for _, m := range c.Missed[:min(n, 10)] {
			fmt.Fprintf(b, "  %s  %s  %s  %s\n", printable(m.ID), m.Class, printable(m.Tool), m.By)
		}
		if n > 10 {
			fmt.Fprintf(b, "  and %d more, all of them in the other formats\n", n-10)
		}
	}
}

// grid writes a table whose cells are separated by at least two spaces.
func grid(b *strings.Builder, header string, rows func(row func(...string))) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, header)
	rows(func(cells ...string) {
		for i, c := range cells {
			cells[i] = printable(orDash(c))
		}
		_, _ = fmt.Fprintln(t, strings.Join(cells, "\t"))
	})
	_ = t.Flush() // a strings.Builder takes everything
}

// printable keeps a terminal safe from what a case brings along. Leading spaces of a name stay.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, s)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return strconv.Itoa(n) + " " + word + "s"
}

// share writes a proportion with what it counts and its interval: 94.0 % (79 of 84; 86.8 to 97.4).
func share(p stats.Proportion) string {
	if p.Of == 0 {
		return "-"
	}
	return fmt.Sprintf("%s %% (%d of %d; %s to %s)", percent(p.Value), p.Count, p.Of, percent(p.Low), percent(p.High))
}

func percent(v float64) string { return strconv.FormatFloat(100*v, 'f', 1, 64) }

func points(i *stats.Interval) string {
	if i == nil {
		return "-"
	}
	return fmt.Sprintf("%+.1f (%+.1f to %+.1f)", 100*i.Value, 100*i.Low, 100*i.High)
}

func interval(i *stats.Interval) string {
	if i == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f (%.3f to %.3f)", i.Value, i.Low, i.High)
}

func number(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f", *v)
}

func ms(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }

// tally writes counts by name, in the order of names.
func tally(prefix string, counts map[string]int) string {
	if len(counts) == 0 {
		return ""
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", k, counts[k]))
	}
	return prefix + printable(strings.Join(parts, ", "))
}
