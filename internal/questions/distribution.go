package questions

import (
	"math"
	"strconv"
)

// Expectation is the expected level of a Score with n levels.
func Expectation(probabilities map[string]float64, n int) float64 {
	sum := 0.0
	for i := range n {
		sum += float64(i) * probabilities[strconv.Itoa(i)]
	}
	return sum
}

// FromDistribution makes the answer of a question from one probability per label, in the order of PromptLabels: for a
// YesNo that is yes, then no. On a tie the label shown first is chosen.
func (q Question) FromDistribution(p []float64, coverage float64) Answer {
	a := Answer{Type: q.Type, Coverage: coverage}
	if q.Type == YesNo {
		a.Probability = p[0]
		return a
	}
	labels := q.Labels()
	a.Probabilities = make(map[string]float64, len(labels))
	best := math.Inf(-1)
	for i, label := range labels {
		a.Probabilities[label] = p[i]
		if q.Type == Choice && p[i] > best {
			best, a.Choice = p[i], label
		}
	}
	if q.Type == Score {
		a.Score = math.Min(Expectation(a.Probabilities, len(labels)), float64(len(labels)-1))
	}
	return a
}

// Calibrate applies a fitted temperature, in thousandths, to an answer: probabilities are raised to 1/T and normalised.
// 1000 and 0 leave it as it is, and so does a verdict, which has nothing to calibrate.
func (q Question) Calibrate(a Answer, milli int) Answer {
	if milli == 0 || milli == 1000 || a.Verdict {
		return a
	}
	power := 1000 / float64(milli)
	if q.Type == YesNo {
		return q.FromDistribution(soften([]float64{a.Probability, 1 - a.Probability}, power), a.Coverage)
	}
	var p []float64
	for _, label := range q.Labels() {
		p = append(p, a.Probabilities[label])
	}
	return q.FromDistribution(soften(p, power), a.Coverage)
}

// soften works on ratios to the largest value, so that no small temperature makes all terms underflow to zero.
func soften(p []float64, power float64) []float64 {
	top, sum := 0.0, 0.0
	for _, v := range p {
		top = math.Max(top, v)
	}
	out := make([]float64, len(p))
	for i, v := range p {
		out[i] = math.Pow(v/top, power)
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}
