package deciders

import (
	"fmt"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/questions"
)

// calibrated applies spec.calibration to the answers of a decider. Temperatures for another fingerprint than the
// given one are an error at once; where it is known only from an answer (empty here), such an answer is refused.
func calibrated(spec *v1alpha1.DeciderModelSpec, fingerprint string) func(inference.Decider, error) (inference.Decider, error) {
	return func(d inference.Decider, err error) (inference.Decider, error) {
		c := spec.Calibration
		if err != nil || c == nil {
			return d, err
		}
		if fingerprint != "" && string(c.Fingerprint) != fingerprint {
			return nil, fmt.Errorf("spec.calibration.fingerprint is %s, but this decider has %s: its temperatures were fitted for another one: remove spec.calibration or run gatewright calibrate", c.Fingerprint, fingerprint)
		}
		return &inference.Calibrated{Decider: d, For: string(c.Fingerprint), Temperatures: Temperatures(c)}, nil
	}
}

// Temperatures are those of a calibration, by type of question.
func Temperatures(c *v1alpha1.Calibration) inference.Calibration {
	out := inference.Calibration{}
	for kind, milli := range map[questions.Type]*int32{questions.YesNo: c.YesNoMilli, questions.Choice: c.ChoiceMilli, questions.Score: c.ScoreMilli} {
		if milli != nil {
			out[kind] = int(*milli)
		}
	}
	return out
}
