package serve

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"gatewright.dev/gatewright/internal/deciders"
	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/questions"
)

// calibratedManifests have a policy that allows by the embedded judge, with a calibration for one fingerprint, and pinned
// to one.
func calibratedManifests(calibratedFor, pinned string) map[string]string {
	model := fmt.Sprintf(`
apiVersion: gatewright.dev/v1alpha1
kind: DeciderModel
metadata: {name: embedded}
spec:
  runtime: Embedded
  artifact: {type: Bundled, sha256: %q, bundled: {name: %q}}
`, deciders.EmbeddedHash(), inference.EmbeddedName)
	if calibratedFor != "" {
		model += fmt.Sprintf("  calibration: {fingerprint: %q, yesNoMilli: 4000}\n", calibratedFor)
	}
	return map[string]string{"model.yaml": model, "policy.yaml": fmt.Sprintf(`
apiVersion: gatewright.dev/v1alpha1
kind: ToolPolicy
metadata: {name: good, namespace: good}
spec:
  deciderRef: {name: embedded, fingerprint: %q}
  classes:
  - name: Write
    decider: Ask
    questions: [asked]
    thresholds: [{when: [{question: asked, below: 1}], outcome: Block}]
    otherwise: {outcome: Allow}
    whenDeciderUnavailable: Block
  tools: [{name: item.get, class: Write}]
`, pinned)}
}

func TestTemperaturesAreAppliedToTheirFingerprintAlone(t *testing.T) {
	base := inference.EmbeddedFingerprint()
	hot := inference.CalibratedFingerprint(base, inference.Calibration{questions.YesNo: 4000})
	tests := map[string]struct {
		calibratedFor, pinned string
		wantReason            string
		wantLog               string
	}{
		"without temperatures":                      {"", base, "", ""},
		"thresholds set without, temperatures with": {base, base, "DeciderMismatch", ""},
		"thresholds set with temperatures":          {base, hot, "", ""},
		"temperatures of another decider":           {"sha256:other", base, "DeciderNotFound", "its temperatures were fitted for another one"},
	}
	answers := map[string]float64{}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := start(t, calibratedManifests(test.calibratedFor, test.pinned))
			got := s.ask(t, "good")
			if test.wantReason != "" && (got.Reason != test.wantReason || got.Outcome != "Block") {
				t.Errorf("got %s %s, want Block %s", got.Outcome, got.Reason, test.wantReason)
			}
			if !strings.Contains(s.log.String(), test.wantLog) {
				t.Errorf("the log does not say %q:\n%s", test.wantLog, s.log)
			}
			if a := got.Decision.Answers["asked"].Probability; a != nil {
				answers[name] = *a
			} else if test.wantReason == "" {
				t.Errorf("no answer: %+v", got)
			}
		})
	}
	cold, warm := answers["without temperatures"], answers["thresholds set with temperatures"]
	asked, _ := questions.Builtin("asked")
	want := asked.Calibrate(questions.Answer{Type: questions.YesNo, Probability: cold, Coverage: 1}, 4000).Probability
	if math.Abs(warm-want) > 1e-9 || warm == cold {
		t.Errorf("%v became %v, want %v", cold, warm, want)
	}
}
