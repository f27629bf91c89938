package judge

import (
	"cmp"
	"math"
	"slices"

	"gatewright.dev/gatewright/internal/questions"
)

// Push is what one fact did to an answer.
type Push struct {
	Fact string  `json:"fact"`
	Doc  string  `json:"doc"`
	Was  float64 `json:"value"`
	// By is how far the fact moved the log odds of a fault: above 0 towards it.
	By float64 `json:"by"`
}

// Drivers is why a question was answered as it was. The pushes and the base add up to the log odds of Learnt.
type Drivers struct {
	Question string `json:"question"`
	// Fault is the probability of a fault that the answer is made of, Learnt what was learnt alone says: it is less where the
	// agent's instructions hold conditions that the judge cannot read.
	Fault  float64 `json:"fault"`
	Learnt float64 `json:"learnt"`
	Base   float64 `json:"base"`
	// Pushes are those that moved the answer most, the strongest first.
	Pushes []Push `json:"pushes"`
	// Arguments are where the values stand that the facts are about, by pointer.
	Arguments map[string]string `json:"arguments,omitempty"`
}

// Explain says which facts drove the answers to the questions that come from trained heads. Of each it gives the most
// strongest pushes. A question that is a table's or is not answered has no drivers.
func (j *Judge) Explain(s *questions.State, asked []questions.Question, most int) ([]Drivers, error) {
	e, err := j.read(s)
	if err != nil {
		return nil, err
	}
	var all []Drivers
	for i := range asked {
		name, ok := e.headOf(asked[i].Name)
		if !ok || !j.Answers(asked[i]) {
			continue
		}
		d := j.model.heads[name].drivers(e.factsFor(name), most)
		d.Question = asked[i].Name
		d.Arguments = make(map[string]string, len(s.Facts.ArgumentSources))
		for _, source := range s.Facts.ArgumentSources {
			d.Arguments[source.Pointer] = source.Source
		}
		all = append(all, d)
	}
	return all, nil
}

// drivers attributes to each fact of a sum its weight times its value, and each step of the way through a tree to the fact
// that was asked there: a node is worth the mean of the leaves below it, and a step is worth the difference.
func (h *head) drivers(x Vector, most int) Drivers {
	by := make([]float64, len(x))
	base := h.shift + h.scale*h.base
	for i, w := range h.weights {
		by[i] = h.scale * w * x[i]
	}
	for i := range h.trees {
		base += h.scale * h.trees[i].attribute(x, h.scale, by)
	}
	d := Drivers{Fault: h.probability(x), Learnt: h.learnt(x), Base: base, Pushes: []Push{}}
	for i, b := range by {
		if b != 0 {
			d.Pushes = append(d.Pushes, Push{Fact: catalog[i].Name, Doc: catalog[i].Doc, Was: x[i], By: b})
		}
	}
	slices.SortStableFunc(d.Pushes, func(a, b Push) int { return cmp.Compare(math.Abs(b.By), math.Abs(a.By)) })
	d.Pushes = d.Pushes[:min(most, len(d.Pushes))]
	return d
}

// attribute adds the steps of one tree to by, and returns what the tree is worth before its first step.
func (t *tree) attribute(x Vector, scale float64, by []float64) float64 {
	worth := t.worths()
	if len(t.nodes) == 0 {
		return t.leaves[0]
	}
	at := int32(0)
	for at >= 0 {
		n := &t.nodes[at]
		next := n.right
		if x[n.feature] <= n.threshold {
			next = n.left
		}
		to := 0.0
		if next >= 0 {
			to = worth[next]
		} else {
			to = t.leaves[-1-next]
		}
		by[n.feature] += scale * (to - worth[at])
		at = next
	}
	return worth[0]
}

// worths are the means of the leaves below each node. Children come after their parent, so one pass backwards does it.
func (t *tree) worths() []float64 {
	worth, leaves := make([]float64, len(t.nodes)), make([]float64, len(t.nodes))
	for i := len(t.nodes) - 1; i >= 0; i-- {
		sum, n := 0.0, 0.0
		for _, child := range [...]int32{t.nodes[i].left, t.nodes[i].right} {
			if child < 0 {
				sum, n = sum+t.leaves[-1-child], n+1
			} else {
				sum, n = sum+worth[child]*leaves[child], n+leaves[child]
			}
		}
		worth[i], leaves[i] = sum/n, n
	}
	return worth
}
