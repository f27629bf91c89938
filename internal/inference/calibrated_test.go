package inference

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/questions"
)

func TestCalibratedAnswers(t *testing.T) {
	asked, _ := questions.Builtin("asked")
	severity, _ := questions.Builtin("severity")
	levels := map[string]float64{}
	for i, label := range severity.Labels() {
		levels[label] = float64(i+1) / float64(len(severity.Labels())*(len(severity.Labels())+1)/2)
	}
	answers := questions.Answers{
		"asked":    {Type: questions.YesNo, Probability: 0.9, Coverage: 1},
		"severity": {Type: questions.Score, Probabilities: levels, Score: questions.Expectation(levels, len(levels)), Coverage: 1},
	}
	r := Request{State: questions.State{Tool: questions.Tool{Name: "note.write"}}, Questions: []questions.Question{asked, severity}}
	tests := map[string]struct {
		fingerprint string
		temperature Calibration
		wantReason  Reason
		wantYes     float64
		wantSame    bool // as the decider's own fingerprint
	}{
		"a temperature for its type alone":      {"f", Calibration{questions.YesNo: 2000}, "", 0.75, false},
		"a neutral temperature changes nothing": {"f", Calibration{questions.YesNo: 1000}, "", 0.9, true},
		"no temperature changes nothing":        {"f", nil, "", 0.9, true},
		"temperatures for another fingerprint":  {"g", Calibration{questions.YesNo: 2000}, ModelMismatch, 0, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := &Calibrated{Decider: NewScripted(answers, "f"), For: test.fingerprint, Temperatures: test.temperature}
			got, err := d.Decide(t.Context(), r)
			if ReasonOf(err) != test.wantReason {
				t.Fatalf("got %v, want %q", err, test.wantReason)
			}
			if err != nil {
				if len(got.Answers) > 0 {
					t.Errorf("an error with answers: %+v", got)
				}
				return
			}
			if math.Abs(got.Answers["asked"].Probability-test.wantYes) > 1e-9 || (got.Fingerprint == "f") != test.wantSame {
				t.Errorf("got %+v", got)
			}
			if got.Fingerprint != CalibratedFingerprint("f", test.temperature) {
				t.Errorf("the fingerprint that was foretold is another one")
			}
			if diff := cmp.Diff(answers["severity"], got.Answers["severity"]); diff != "" {
				t.Errorf("a type without a temperature moved (-want +got):\n%s", diff)
			}
		})
	}
	if answers["asked"].Probability != 0.9 {
		t.Error("the answers of the decider itself were changed")
	}
}

func TestCalibratedFingerprintsDiffer(t *testing.T) {
	seen := map[string]Calibration{}
	for _, c := range []Calibration{nil, {questions.YesNo: 1300}, {questions.YesNo: 1301}, {questions.Choice: 1300}, {questions.YesNo: 1300, questions.Choice: 1300}} {
		fingerprint := CalibratedFingerprint("sha256:f", c)
		if other, ok := seen[fingerprint]; ok {
			t.Errorf("%v and %v have one fingerprint", c, other)
		}
		seen[fingerprint] = c
	}
	if CalibratedFingerprint("a", Calibration{questions.YesNo: 1300}) == CalibratedFingerprint("b", Calibration{questions.YesNo: 1300}) {
		t.Error("two deciders have one fingerprint")
	}
}
