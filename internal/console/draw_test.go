package console

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
)

func number(t *testing.T, s string) float64 {
	t.Helper()
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestDrawingsCountEveryDecisionOnce(t *testing.T) {
	var all []measured
	want := map[string]int{}
	for i := range 1000 {
		o := outcomes[i%3*i%4%len(outcomes)]
		want[string(o)]++
		all = append(all, measured{start.Add(-time.Duration(i*i) * time.Second), o, float64(i) / 7})
	}
	all[17].at = start.Add(time.Hour)        // later than the first one
	all[18].at = start.Add(-1e6 * time.Hour) // earlier than the last one
	c := draw(all)
	got := map[string]int{}
	for _, total := range c.Totals {
		if total.Count > 0 {
			got[total.Outcome] = total.Count
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	n := 0
	for _, column := range c.Latency {
		n += column.Total
	}
	if n != len(all) {
		t.Errorf("%d latencies, want %d", n, len(all))
	}
	for _, column := range append(c.Times, c.Latency...) {
		high := 0.0
		for _, p := range column.Pieces {
			high += number(t, p.Height)
			if x := number(t, p.X) + number(t, p.Width); number(t, p.X) < 0 || x > drawWidth || number(t, p.Y) < -0.5 {
				t.Errorf("%+v is outside of the drawing", p)
			}
		}
		if high > drawHeight+1 {
			t.Errorf("%s is %f high", column.Label, high)
		}
	}
}

func TestQuantiles(t *testing.T) {
	for name, test := range map[string]struct {
		milliseconds []float64
		want         [3]string
	}{
		"one decision is all of them": {[]float64{3}, [3]string{"3 ms", "3 ms", "3 ms"}},
		"of five":                     {[]float64{5, 1, 4, 2, 3}, [3]string{"3 ms", "4 ms", "4 ms"}},
		"of none there are none":      {nil, [3]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			var all []measured
			for _, ms := range test.milliseconds {
				all = append(all, measured{start, review.Allow, ms})
			}
			c := draw(all)
			if diff := cmp.Diff(test.want, [3]string{c.P50, c.P95, c.P99}); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
