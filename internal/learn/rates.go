package learn

import (
	"cmp"
	"math"
	"slices"
	"time"

	"gatewright.dev/gatewright/internal/evaluation/stats"
)

// Word is what a person said to a call that waited for them.
type Word struct {
	Tool, Class string
	Approved    bool
	// At is zero where it is not known.
	At time.Time
}

// RateOptions of Rates.
type RateOptions struct {
	// Near is the share of approvals from which nobody seems to look, 0.95 by default.
	Near float64
	// Window is the length of the latest window; it is compared with everything before.
	Window time.Duration
	// Level of the test for a sudden change, over all comparisons together; 0.01 by default.
	Level float64
}

// Rate is how often people approve the calls of a class or of a tool.
type Rate struct {
	// Of is class or tool.
	Of       string           `json:"of"`
	Name     string           `json:"name"`
	Approved stats.Proportion `json:"approved"`
	// IsNear says that the whole interval is at or above Near: a question that is always answered with yes is no control.
	IsNear bool `json:"isNear,omitempty"`
	// Enough is how many decisions, all of them approvals, would show that; 0 if there are as many.
	Enough int `json:"enough,omitempty"`
	// Change compares the latest window with the time before, where both have decisions enough.
	Change *Change `json:"change,omitempty"`
}

// Change of a rate between two windows.
type Change struct {
	Before stats.Proportion `json:"before"`
	Latest stats.Proportion `json:"latest"`
	// P is the chance of a difference at least as rare if nothing had changed (Fisher's exact test, two-sided).
	P float64 `json:"p"`
	// IsSudden says that P is below the level, divided by the number of comparisons.
	IsSudden bool `json:"isSudden,omitempty"`
	IsFall   bool `json:"isFall,omitempty"`
}

// Rates counts approvals by class and by tool, classes first.
func Rates(words []Word, o RateOptions) []Rate {
	if o.Near <= 0 {
		o.Near = 0.95
	}
	if o.Level <= 0 {
		o.Level = 0.01
	}
	until := time.Time{}
	groups := map[[2]string][]Word{}
	for _, w := range words {
		if w.At.After(until) {
			until = w.At
		}
		groups[[2]string{"class", w.Class}] = append(groups[[2]string{"class", w.Class}], w)
		groups[[2]string{"tool", w.Tool}] = append(groups[[2]string{"tool", w.Tool}], w)
	}
	var out []Rate
	compared := 0
	for key, list := range groups {
		r := rateOf(key, list, until, o)
		if r.Change != nil {
			compared++
		}
		out = append(out, r)
	}
	for _, r := range out {
		if r.Change != nil {
			r.Change.IsSudden = r.Change.P < o.Level/float64(compared)
		}
	}
	slices.SortFunc(out, func(a, b Rate) int { return cmp.Or(cmp.Compare(a.Of, b.Of), cmp.Compare(a.Name, b.Name)) })
	return out
}

// leastToCompare is how many decisions each window needs: below that, one person's one answer would be a sudden change.
const leastToCompare = 5

func rateOf(key [2]string, list []Word, until time.Time, o RateOptions) Rate {
	var all, before, latest [2]int // of which approved, of
	for _, w := range list {
		part := &before
		if o.Window > 0 && w.At.After(until.Add(-o.Window)) {
			part = &latest
		}
		for _, p := range []*[2]int{&all, part} {
			p[1]++
			if w.Approved {
				p[0]++
			}
		}
	}
	r := Rate{Of: key[0], Name: key[1], Approved: stats.Wilson(all[0], all[1])}
	r.IsNear = r.Approved.Low >= o.Near
	if enough := Enough(1 - o.Near); !r.IsNear && all[1] < enough {
		r.Enough = enough
	}
	if !until.IsZero() && before[1] >= leastToCompare && latest[1] >= leastToCompare {
		c := Change{Before: stats.Wilson(before[0], before[1]), Latest: stats.Wilson(latest[0], latest[1])}
		c.P = Fisher(before[0], before[1]-before[0], latest[0], latest[1]-latest[0])
		c.IsFall = c.Latest.Value < c.Before.Value
		r.Change = &c
	}
	return r
}

// Fisher is the two-sided p-value of the exact test that two pairs of counts have the same share: the probability of all
// tables with the same margins that are no likelier than this one.
func Fisher(a, b, c, d int) float64 {
	first, second, hits := a+b, c+d, a+c
	logOf := func(x int) float64 {
		return logChoose(first, x) + logChoose(second, hits-x) - logChoose(first+second, hits)
	}
	seen, p := logOf(a), 0.0
	for x := max(0, hits-second); x <= min(first, hits); x++ {
		if l := logOf(x); l <= seen+1e-7 { // equal tables differ in the last digits
			p += math.Exp(l)
		}
	}
	return min(1, p)
}

func logChoose(n, k int) float64 {
	lg := func(x int) float64 { v, _ := math.Lgamma(float64(x + 1)); return v }
	return lg(n) - lg(k) - lg(n-k)
}
