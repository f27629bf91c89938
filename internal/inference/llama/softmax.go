package llama

import "math"

// readLabels turns the scores of all words into the probability of each label, and how much of the whole vocabulary's
// probability the labels had together. ok is false if a score is not a number.
func readLabels(scores []float32, labels []token, temperature float64) (p []float64, coverage float64, ok bool) {
	top := math.Inf(-1)
	for _, s := range scores {
		if math.IsNaN(float64(s)) || math.IsInf(float64(s), 1) {
			return nil, 0, false
		}
		top = max(top, float64(s))
	}
	total := 0.0
	for _, s := range scores {
		total += math.Exp(float64(s) - top)
	}
	chosen := make([]float64, len(labels))
	for i, l := range labels {
		chosen[i] = float64(scores[l])
		coverage += math.Exp(chosen[i]-top) / total
	}
	p = softmax(chosen, temperature)
	return p, math.Min(coverage, 1), !math.IsNaN(p[0])
}

// softmax subtracts the largest score first, so that nothing overflows.
func softmax(scores []float64, temperature float64) []float64 {
	top := math.Inf(-1)
	for _, s := range scores {
		top = max(top, s)
	}
	p := make([]float64, len(scores))
	sum := 0.0
	for i, s := range scores {
		p[i] = math.Exp((s - top) / temperature)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// sigmoid is the probability of yes that one score of a class head stands for.
func sigmoid(score, temperature float64) float64 { return 1 / (1 + math.Exp(-score/temperature)) }
