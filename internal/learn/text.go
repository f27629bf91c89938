package learn

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// WriteText writes the report for people, as comments of YAML with the patch below: it can be kept as a manifest.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %d calls climbed ladders of these policies, %d of them labelled. Nothing is applied: read, try with diff, then apply.\n", r.Examples, r.Labelled)
	for _, why := range slices.Sorted(maps.Keys(r.Left)) {
		fmt.Fprintf(&b, "# %d not counted: %s\n", r.Left[why], why)
	}
	for i := range r.Refused {
		fmt.Fprintf(&b, "# %s\n", r.Refused[i].text())
	}
	for i := range r.Rates {
		if line := r.Rates[i].text(); line != "" {
			fmt.Fprintf(&b, "# %s\n", line)
		}
	}
	if len(r.Suggest) == 0 {
		b.WriteString("# No change is suggested.\n")
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	return WritePatch(w, r.Suggest)
}

func (x *Refusal) text() string {
	what := map[Direction]string{"": "no suggestion", Tighten: "not tightened", Loosen: "not loosened"}[x.Direction]
	line := x.Place.String() + ": " + what + ": " + x.Why
	if x.Enough > 0 {
		line += fmt.Sprintf("; about %d %s are enough", x.Enough, x.Of)
	}
	return line
}

// text says what stands out. Empty: nothing does.
func (r *Rate) text() string {
	var parts []string
	if r.IsNear {
		parts = append(parts, "nearly all are approved: does anybody look? A rule or a threshold may answer instead")
	}
	if c := r.Change; c != nil && c.IsSudden {
		way := "rose"
		if c.IsFall {
			way = "fell"
		}
		parts = append(parts, fmt.Sprintf("the rate %s suddenly, from %s to %s (p=%.2g): something about these calls is new", way,
			share(c.Before), share(c.Latest), c.P))
	}
	if r.Enough > 0 && r.Approved.Count == r.Approved.Of {
		parts = append(parts, fmt.Sprintf("all approved, but too few to say more: %d would be enough", r.Enough))
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("%s %q: approved %s: %s", r.Of, r.Name, share(r.Approved), strings.Join(parts, "; "))
}
