package learn

import (
	"math"
	"testing"
	"time"

	"gatewright.dev/gatewright/internal/evaluation/stats"
)

func TestFisher(t *testing.T) {
	// Worked examples of the test: the tea-tasting lady, the study habits of 24 people, and no difference at all.
	tests := map[string]struct {
		counts [4]int
		want   float64
	}{
		"three of four and one of four":     {[4]int{3, 1, 1, 3}, 0.4857142857},
		"one of ten and eleven of fourteen": {[4]int{1, 9, 11, 3}, 0.002759456},
		"half and half":                     {[4]int{10, 10, 10, 10}, 1},
		"nothing on one side":               {[4]int{5, 0, 5, 0}, 1},
		"everything and nothing":            {[4]int{10, 0, 0, 10}, 2.0 / 184756},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := test.counts
			if got := Fisher(c[0], c[1], c[2], c[3]); math.Abs(got-test.want) > 1e-8 {
				t.Errorf("got %v, want %v", got, test.want)
			}
			if a, b := Fisher(c[0], c[1], c[2], c[3]), Fisher(c[2], c[3], c[0], c[1]); math.Abs(a-b) > 1e-9 {
				t.Errorf("the other way round it is %v, not %v", b, a)
			}
		})
	}
}

var start = time.Date(2026, 9, 1, 8, 0, 0, 0, time.UTC)

// said are decisions at a time, of which some are approvals.
func said(tool string, approved, of int, at time.Time) []Word {
	var out []Word
	for i := range of {
		out = append(out, Word{Tool: tool, Class: "Write", Approved: i < approved, At: at})
	}
	return out
}

func TestRates(t *testing.T) {
	late := start.Add(20 * 24 * time.Hour)
	tests := map[string]struct {
		words      []Word
		wantNear   bool
		wantEnough int
		wantSudden bool
		wantFall   bool
	}{
		"nobody says no, often":                     {said("a", 200, 200, start), true, 0, false, false},
		"nobody says no, seldom":                    {said("a", 30, 30, start), false, 73, false, false},
		"some say no":                               {said("a", 170, 200, start), false, 0, false, false},
		"no and yes since yesterday":                {append(said("a", 95, 100, start), said("a", 20, 40, late)...), false, 0, true, true},
		"always yes since yesterday":                {append(said("a", 50, 100, start), said("a", 40, 40, late)...), false, 0, true, false},
		"a little less, which may be chance":        {append(said("a", 95, 100, start), said("a", 9, 10, late)...), false, 0, false, true},
		"a single no after many a yes":              {append(said("a", 200, 200, start), said("a", 0, 1, late)...), true, 0, false, false},
		"without a time nothing is before anything": {append(said("a", 95, 100, time.Time{}), said("a", 0, 40, time.Time{})...), false, 0, false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := Rates(test.words, RateOptions{Near: 0.95, Window: 7 * 24 * time.Hour})
			if len(got) != 2 || got[0].Of != "class" || got[1].Of != "tool" {
				t.Fatalf("got %+v", got)
			}
			r := got[1]
			if r.IsNear != test.wantNear || r.Enough != test.wantEnough {
				t.Errorf("got %+v", r)
			}
			if isSudden := r.Change != nil && r.Change.IsSudden; isSudden != test.wantSudden {
				t.Errorf("sudden: %v, %+v", isSudden, r.Change)
			}
			if isFall := r.Change != nil && r.Change.IsFall; isFall != test.wantFall {
				t.Errorf("fall: %v, %+v", isFall, r.Change)
			}
		})
	}
}

func TestEnoughIsTheLeastNumber(t *testing.T) {
	for _, share := range []float64{0.5, 0.2, 0.05, 0.01, 0.001} {
		n := Enough(share)
		if stats.Wilson(0, n).High > share || stats.Wilson(0, n-1).High <= share {
			t.Errorf("%v: %d is not the least number that shows it", share, n)
		}
	}
	if n := Enough(0); n < 1<<30 {
		t.Errorf("%d calls are said to show that something never happens", n)
	}
}
