package llama

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/questions"
)

func TestReadLabels(t *testing.T) {
	ln := func(p float64) float32 { return float32(math.Log(p)) }
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	tests := map[string]struct {
		scores       []float32
		temperature  float64
		want         []float64
		wantCoverage float64
		wantNot      bool
	}{
		"shares of the labels and of the whole":      {[]float32{ln(0.3), ln(0.1), ln(0.6)}, 1, []float64{0.75, 0.25}, 0.4, false},
		"a temperature softens, coverage stays":      {[]float32{ln(0.8), ln(0.2), ln(1e-9)}, 2, []float64{2.0 / 3, 1.0 / 3}, 1, false},
		"scores beyond what an exponential can hold": {[]float32{5000, 5000, 4000}, 1, []float64{0.5, 0.5}, 1, false},
		"words that cannot come":                     {[]float32{0, float32(math.Inf(-1)), 0}, 1, []float64{1, 0}, 0.5, false},
		"a score that is no number":                  {[]float32{0, 0, nan}, 1, nil, 0, true},
		"a score without bound":                      {[]float32{0, 0, inf}, 1, nil, 0, true},
		"labels that cannot come":                    {[]float32{float32(math.Inf(-1)), float32(math.Inf(-1)), 0}, 1, nil, 0, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, coverage, ok := readLabels(tc.scores, []token{0, 1}, tc.temperature)
			if ok == tc.wantNot {
				t.Fatalf("ok is %v", ok)
			}
			if tc.wantNot {
				return
			}
			near := cmpopts.EquateApprox(0, 1e-6)
			if diff := cmp.Diff(tc.want, p, near) + cmp.Diff(tc.wantCoverage, coverage, near); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEverythingThatMovesANumberMovesTheFingerprint(t *testing.T) {
	base := fingerprint("m", "l", "r", nil)
	same := fingerprint("m", "l", "r", inference.Calibration{questions.YesNo: 1000})
	if base != same {
		t.Error("a temperature of one changes nothing and moved the fingerprint")
	}
	seen := map[string]string{base: "the base"}
	for name, f := range map[string]string{
		"model":       fingerprint("M", "l", "r", nil),
		"library":     fingerprint("m", "L", "r", nil),
		"readout":     fingerprint("m", "l", "R", nil),
		"parts moved": fingerprint("ml", "", "r", nil),
		"temperature": fingerprint("m", "l", "r", inference.Calibration{questions.YesNo: 1300}),
		"its type":    fingerprint("m", "l", "r", inference.Calibration{questions.Choice: 1300}),
	} {
		if other, twice := seen[f]; twice {
			t.Errorf("%s has the fingerprint of %s", name, other)
		}
		seen[f] = name
	}
}
