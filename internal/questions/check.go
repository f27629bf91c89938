package questions

import (
	"errors"
	"fmt"
	"math"
)

// Check says whether an answer is a whole and coherent answer to this question. Whatever fails here was not answered:
// nothing is repaired, filled in or rounded into range. Errors name the fault and never repeat text of the reply.
func (q Question) Check(a Answer) error {
	if a.Type != q.Type {
		return fmt.Errorf("question %s: answer has another type", q.Name)
	}
	if !isProbability(a.Coverage) {
		return fmt.Errorf("question %s: coverage is not a probability", q.Name)
	}
	if a.Verdict {
		return q.checkVerdict(a)
	}
	switch q.Type {
	case YesNo:
		return q.checkYesNo(a)
	case Choice:
		return q.checkChoice(a)
	case Score:
		return q.checkScore(a)
	default:
		return fmt.Errorf("question %s: unknown type", q.Name)
	}
}

// CheckAll says whether the answers are exactly those asked for, each one whole.
func CheckAll(asked []Question, got Answers) error {
	if len(asked) == 0 {
		return errors.New("no question was asked")
	}
	for _, q := range asked {
		a, ok := got[q.Name]
		if !ok {
			return fmt.Errorf("question %s: answer is missing", q.Name)
		}
		if err := q.Check(a); err != nil {
			return err
		}
	}
	if len(got) != len(asked) {
		return errors.New("reply answers a question that was not asked")
	}
	return nil
}

func (q Question) checkVerdict(a Answer) error {
	if q.Type != Choice || len(a.Probabilities) != 0 || a.Probability != 0 || a.Score != 0 {
		return fmt.Errorf("question %s: a bare verdict is a Choice without numbers", q.Name)
	}
	for _, o := range q.Options {
		if o.Name == a.Choice {
			return nil
		}
	}
	return fmt.Errorf("question %s: chosen option was not offered", q.Name)
}

func (q Question) checkYesNo(a Answer) error {
	if !isProbability(a.Probability) {
		return fmt.Errorf("question %s: not a probability", q.Name)
	}
	if a.Choice != "" || a.Score != 0 || len(a.Probabilities) != 0 {
		return fmt.Errorf("question %s: a YesNo has one number", q.Name)
	}
	return nil
}

func (q Question) checkChoice(a Answer) error {
	top, err := q.checkDistribution(a)
	if err != nil {
		return err
	}
	chosen, ok := a.Probabilities[a.Choice]
	if !ok {
		return fmt.Errorf("question %s: chosen option was not offered", q.Name)
	}
	if chosen < top-SumTolerance {
		return fmt.Errorf("question %s: chosen option is not the most probable one", q.Name)
	}
	return nil
}

func (q Question) checkScore(a Answer) error {
	if _, err := q.checkDistribution(a); err != nil {
		return err
	}
	steps := float64(len(q.Levels) - 1)
	if math.IsNaN(a.Score) || a.Score < 0 || a.Score > steps {
		return fmt.Errorf("question %s: score is out of range", q.Name)
	}
	// Two-decimal rounding moves each of the N terms i*p by up to 0.005*i, together 0.0025*N*(N-1) at most, which for
	// MaxLevels is 0.025 per step; twice that also covers the rounding of the score itself.
	if math.Abs(a.Score-Expectation(a.Probabilities, len(q.Levels))) > 0.05*steps {
		return fmt.Errorf("question %s: score does not fit its probabilities", q.Name)
	}
	return nil
}

func (q Question) checkDistribution(a Answer) (top float64, err error) {
	labels := q.Labels()
	if len(a.Probabilities) != len(labels) {
		return 0, fmt.Errorf("question %s: probabilities are not exactly those of its options", q.Name)
	}
	sum := 0.0
	for _, label := range labels {
		p, ok := a.Probabilities[label]
		if !ok {
			return 0, fmt.Errorf("question %s: probabilities are not exactly those of its options", q.Name)
		}
		if !isProbability(p) {
			return 0, fmt.Errorf("question %s: not a probability", q.Name)
		}
		sum, top = sum+p, math.Max(top, p)
	}
	// The constant absorbs the binary error of adding up to 26 decimals; 0.98 itself must pass.
	if math.Abs(sum-1) > SumTolerance+1e-9 {
		return 0, fmt.Errorf("question %s: probabilities do not sum to 1", q.Name)
	}
	return top, nil
}

func isProbability(p float64) bool { return !math.IsNaN(p) && p >= 0 && p <= 1 }
