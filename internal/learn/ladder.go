package learn

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/policy"
	"gatewright.dev/gatewright/internal/questions"
)

// Policies are what thresholds are proposed for.
type Policies struct {
	Tool    []*v1alpha1.ToolPolicy
	Cluster []*v1alpha1.ClusterToolPolicy
}

// Place is where thresholds stand: in a class of a policy, or in a tool rule.
type Place struct {
	// Policy as KIND/NAMESPACE/NAME or KIND/NAME.
	Policy string `json:"policy"`
	Class  string `json:"class,omitempty"`
	Tool   string `json:"tool,omitempty"`
	Server string `json:"server,omitempty"`
}

// String is class NAME or tool NAME of a policy.
func (p Place) String() string {
	switch {
	case p.Tool != "" && p.Server != "":
		return "tool " + p.Tool + " of " + p.Server + " in " + p.Policy
	case p.Tool != "":
		return "tool " + p.Tool + " in " + p.Policy
	}
	return "class " + p.Class + " in " + p.Policy
}

// source is a policy as it is written, and compiled.
type source struct {
	id       policy.PolicyID
	rules    *v1alpha1.PolicyRules
	compiled *policy.Compiled
}

func sourcesOf(p Policies) (map[string]*source, error) {
	out := map[string]*source{}
	for _, one := range p.Tool {
		compiled, errs := policy.Compile(one)
		if len(errs) > 0 {
			return nil, fmt.Errorf("ToolPolicy %s/%s: %w", one.Namespace, one.Name, errs.ToAggregate())
		}
		out[compiled.ID.String()] = &source{compiled.ID, &one.Spec.PolicyRules, compiled}
	}
	for _, one := range p.Cluster {
		compiled, errs := policy.CompileCluster(one)
		if len(errs) > 0 {
			return nil, fmt.Errorf("ClusterToolPolicy %s: %w", one.Name, errs.ToAggregate())
		}
		out[compiled.ID.String()] = &source{compiled.ID, &one.Spec.PolicyRules, compiled}
	}
	return out, nil
}

// kind of a call: what finds its ladder.
type kind struct{ tool, server, class string }

// climber is an example before one ladder.
type climber struct {
	example *Example
	// kind is a place in the kinds of the group.
	kind    int
	answers questions.Answers
	rest    policy.Outcome
	held    bool
}

// group is one ladder with the calls that climbed it.
type group struct {
	place   Place
	source  *source
	ladder  policy.Ladder // of the first kind; all have the same steps
	kinds   []kind
	members []climber
}

// add takes a call of a kind.
func (g *group) add(k kind, c climber) {
	c.kind = slices.Index(g.kinds, k)
	if c.kind < 0 {
		c.kind = len(g.kinds)
		g.kinds = append(g.kinds, k)
	}
	g.members = append(g.members, c)
}

// thresholds are the steps of the ladder in a policy.
func (p Place) thresholds(r *v1alpha1.PolicyRules) []v1alpha1.Threshold {
	if p.Tool != "" {
		if i := p.tool(r); i >= 0 {
			return r.Tools[i].Thresholds
		}
		return nil
	}
	if i := p.class(r); i >= 0 {
		return r.Classes[i].Thresholds
	}
	return nil
}

func (p Place) tool(r *v1alpha1.PolicyRules) int {
	return slices.IndexFunc(r.Tools, func(t v1alpha1.ToolRule) bool { return t.Name == p.Tool && t.Server == p.Server })
}

func (p Place) class(r *v1alpha1.PolicyRules) int {
	return slices.IndexFunc(r.Classes, func(k v1alpha1.ClassPolicy) bool { return string(k.Name) == p.Class })
}

// Why evidence does not count for a ladder.
const (
	leftOtherPolicy      = "the policy is not among the manifests, or has no ladder for this tool and class"
	leftOtherFingerprint = "answers of another fingerprint than the policy's deciderRef.fingerprint: a threshold belongs to its model"
	leftOtherQuestions   = "answers do not fit the questions that the policy asks now"
)

// groups sorts examples by the ladder that they climbed.
func groups(sources map[string]*source, examples []Example, seed uint64, left map[string]int) []*group {
	found := map[Place]*group{}
	for i := range examples {
		e := &examples[i]
		for label, seen := range e.Seen {
			s := sources[label]
			if s == nil {
				left[leftOtherPolicy]++
				continue
			}
			g, c, why := s.climb(e, label, seen)
			if why != "" {
				left[why]++
				continue
			}
			c.held = isHeld(seed, e.Cluster)
			if found[g.place] == nil {
				found[g.place] = g
			}
			found[g.place].add(kind{e.Tool, e.Server, e.Class}, c)
		}
	}
	var out []*group
	for _, g := range found {
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b *group) int { return cmp.Compare(a.place.String(), b.place.String()) })
	return out
}

func (s *source) climb(e *Example, label string, seen Seen) (*group, climber, string) {
	l, ok := s.compiled.LadderFor(e.Tool, e.Server, e.Class)
	if !ok {
		return nil, climber{}, leftOtherPolicy
	}
	if ref := s.rules.DeciderRef; ref != nil && ref.Fingerprint != "" && string(ref.Fingerprint) != seen.Fingerprint {
		return nil, climber{}, leftOtherFingerprint
	}
	answers := questions.Answers{}
	for _, q := range l.Questions {
		if a, ok := seen.Answers[q.Name]; ok {
			answers[q.Name] = a
		} else if a, ok := s.compiled.FromCode(e.Tool, e.Server)[q.Name]; ok {
			answers[q.Name] = a
		}
	}
	if questions.CheckAll(l.Questions, answers) != nil {
		return nil, climber{}, leftOtherQuestions
	}
	rest := seen.Rest
	if l.AlwaysConfirm {
		rest = min(rest, policy.Confirm)
	}
	place := Place{Policy: label, Tool: l.Tool, Server: l.Server}
	if l.Tool == "" {
		place.Class = l.Class
	}
	return &group{place: place, source: s, ladder: l}, climber{example: e, answers: answers, rest: rest}, ""
}

// number is one number of a ladder that can be moved.
type number struct {
	step int
	// condition of the step; -1 is the floor of confidence.
	condition int
	value     int32
	// most that it may be.
	most int32
	// name in words.
	name string
}

// slot is where the number stands.
func (n number) slot(steps []v1alpha1.Threshold) *int32 {
	if n.condition < 0 {
		return (*int32)(&steps[n.step].ConfidenceBelow.Percent)
	}
	_, slot := operand(&steps[n.step].When[n.condition])
	return slot
}

func operand(k *v1alpha1.Condition) (name string, slot *int32) {
	switch {
	case k.Above != nil:
		return "above", k.Above
	case k.AtLeast != nil:
		return "atLeast", k.AtLeast
	case k.Below != nil:
		return "below", k.Below
	case k.AtMost != nil:
		return "atMost", k.AtMost
	}
	return "", nil
}

// numbers of a ladder, in order.
func numbers(l policy.Ladder, steps []v1alpha1.Threshold) []number {
	var out []number
	for i := range steps {
		if f := steps[i].ConfidenceBelow; f != nil {
			out = append(out, number{i, -1, int32(f.Percent), 100, "confidenceBelow"})
		}
		for j := range steps[i].When {
			k := &steps[i].When[j]
			name, slot := operand(k)
			if slot == nil {
				continue // an option that was chosen has no number
			}
			n := number{i, j, *slot, 100, string(k.Question) + " " + name}
			if at := slices.IndexFunc(l.Questions, func(q questions.Question) bool { return q.Name == string(k.Question) }); at >= 0 && l.Questions[at].Type == questions.Score && k.Level == nil {
				n.most = int32(100 * (len(l.Questions[at].Levels) - 1))
			}
			out = append(out, n)
		}
	}
	return out
}

// candidates are the values of a number at which the answers of the members part, and the one that it has.
func (n number) candidates(members []climber, steps []v1alpha1.Threshold) []int32 {
	values := map[int32]bool{n.value: true}
	for _, c := range members {
		for _, v := range n.observed(c.answers, steps) {
			for _, near := range []float64{math.Floor(100 * v), math.Ceil(100 * v)} {
				values[int32(min(float64(n.most), max(0, near)))] = true
			}
		}
	}
	var out []int32
	for v := range values {
		out = append(out, v)
	}
	slices.Sort(out)
	return out
}

func (n number) observed(answers questions.Answers, steps []v1alpha1.Threshold) []float64 {
	if n.condition < 0 {
		var out []float64
		for _, q := range steps[n.step].ConfidenceBelow.Questions {
			if v, ok := answers[string(q)].Confidence(); ok {
				out = append(out, v)
			}
		}
		return out
	}
	k := &steps[n.step].When[n.condition]
	a := answers[string(k.Question)]
	switch {
	case a.Type == questions.YesNo:
		return []float64{a.Probability}
	case a.Type == questions.Score && k.Level == nil:
		return []float64{a.Score}
	case a.Type == questions.Score:
		return []float64{a.Probabilities[fmt.Sprint(*k.Level)]}
	}
	return []float64{a.Probabilities[k.Option]}
}

// with compiles the policy with other thresholds in the group's place, and returns the ladder of each kind. Only what bears
// on ladders is compiled: no rule, no schema. Nil: the thresholds are not valid.
func (g *group) with(steps []v1alpha1.Threshold) []policy.Ladder {
	bare := v1alpha1.PolicyRules{DeciderRef: g.source.rules.DeciderRef, Questions: g.source.rules.Questions, Tools: g.bareTools()}
	bare.Classes = append(bare.Classes, g.source.rules.Classes...)
	if g.place.Tool != "" {
		bare.Tools[g.place.tool(&bare)].Thresholds = steps
	} else {
		bare.Classes[g.place.class(&bare)].Thresholds = steps
	}
	compiled, errs := policy.Compile(&v1alpha1.ToolPolicy{Spec: v1alpha1.ToolPolicySpec{PolicyRules: bare}})
	if len(errs) > 0 {
		return nil
	}
	out := make([]policy.Ladder, len(g.kinds))
	for i, k := range g.kinds {
		l, ok := compiled.LadderFor(k.tool, k.server, k.class)
		if !ok {
			return nil
		}
		out[i] = l
	}
	return out
}

// bareTools are the tool rules without what is not about ladders.
func (g *group) bareTools() []v1alpha1.ToolRule {
	var out []v1alpha1.ToolRule
	for i := range g.source.rules.Tools {
		t := &g.source.rules.Tools[i]
		bare := v1alpha1.ToolRule{
			Name: t.Name, Server: t.Server, Class: t.Class, Effects: t.Effects, Decider: t.Decider, Questions: t.Questions,
			Thresholds: t.Thresholds, Otherwise: t.Otherwise,
		}
		for _, lower := range t.LowerTo {
			bare.LowerTo = append(bare.LowerTo, v1alpha1.LowerRule{Class: lower.Class, When: "true"})
		}
		out = append(out, bare)
	}
	return out
}
