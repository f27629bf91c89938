package inference

import (
	"math"

	"gatewright.dev/gatewright/internal/questions"
)

// DefaultMinCoverage is used where a model is read by the label it would say next: with more than half of the probability
// elsewhere, the model was about to say something that is no answer.
const DefaultMinCoverage = 0.5

// labelAnswer makes an answer from the log-probabilities of a question's labels over the whole vocabulary.
func labelAnswer(q questions.Question, logprobs []float64) (questions.Answer, error) {
	p := make([]float64, len(logprobs))
	top, coverage, sum := math.Inf(-1), 0.0, 0.0
	for _, lp := range logprobs {
		if math.IsNaN(lp) || math.IsInf(lp, 0) {
			return questions.Answer{}, fail(BadReply, "question %s: not a log-probability", q.Name)
		}
		top = math.Max(top, lp)
		coverage += math.Exp(lp)
	}
	if coverage > 1+questions.SumTolerance {
		return questions.Answer{}, fail(BadReply, "question %s: labels hold more than the whole probability", q.Name)
	}
	for i, lp := range logprobs {
		p[i] = math.Exp(lp - top)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return q.FromDistribution(p, math.Min(coverage, 1)), nil
}

// withLabelCoverage sets the floor of coverage that label read-outs have unless they are told otherwise.
func withLabelCoverage(o ServerOptions) ServerOptions {
	if o.MinCoverage == 0 {
		o.MinCoverage = DefaultMinCoverage
	}
	return o
}
