package local

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/evaluation"
	"gatewright.dev/gatewright/internal/manifest"
)

// CasesPolicy says how to judge cases whose tools no policy lists.
type CasesPolicy struct {
	// Ladder is a file whose first ToolPolicy gives classes, questions, facts and decider. Empty: matches_request alone decides.
	Ladder string
	// Manifests is a folder with DeciderModels. Empty: there is only the embedded decider.
	Manifests string
	// Decider is the name of a DeciderModel; the ladder's own, else "embedded".
	Decider string
	// Fingerprint that the decider's answers must have; the ladder's own or the embedded decider's, if that is meant.
	Fingerprint string
	// Namespace of the policy.
	Namespace string
}

// ForCases makes a policy that lists the tools of the cases.
func ForCases(cases []*evaluation.Case, o CasesPolicy) (evaluation.Policies, error) {
	var out evaluation.Policies
	if o.Manifests != "" {
		loaded, err := LoadPolicies(o.Manifests)
		if err != nil {
			return out, err
		}
		out.Models = loaded.Models
	}
	embedded, fingerprint := Embedded()
	if !slices.ContainsFunc(out.Models, func(m *v1alpha1.DeciderModel) bool { return m.Name == embedded.Name }) {
		out.Models = append(out.Models, embedded)
	}
	ladder, err := o.ladder(v1alpha1.DeciderReference{Name: v1alpha1.ObjectName(embedded.Name), Fingerprint: fingerprint})
	if err != nil {
		return out, err
	}
	if ladder.Decider != nil && !slices.ContainsFunc(out.Models, func(m *v1alpha1.DeciderModel) bool { return m.Name == string(ladder.Decider.Name) }) {
		return out, fmt.Errorf("there is no DeciderModel %s: name a folder that has one with --manifests", ladder.Decider.Name)
	}
	out.Tool, err = evaluation.PolicyForCases(cases, ladder, o.Namespace, "evaluated-cases")
	return out, err
}

func (o CasesPolicy) ladder(embedded v1alpha1.DeciderReference) (evaluation.Ladder, error) {
	decider := embedded
	l := evaluation.Ladder{}
	if o.Ladder != "" {
		p, err := firstPolicy(o.Ladder)
		if err != nil {
			return l, err
		}
		l = evaluation.LadderOf(p)
		if l.Decider != nil {
			decider = *l.Decider
		}
	}
	if o.Decider != "" {
		decider = v1alpha1.DeciderReference{Name: v1alpha1.ObjectName(o.Decider)}
		if o.Decider == string(embedded.Name) {
			decider = embedded
		}
	}
	if o.Fingerprint != "" {
		decider.Fingerprint = v1alpha1.Fingerprint(o.Fingerprint)
	}
	if o.Ladder == "" {
		if decider.Fingerprint == "" {
			return l, fmt.Errorf("the fingerprint of decider %s is not known: an Allow rests on it, so give it with --fingerprint", decider.Name)
		}
		return evaluation.Matching(decider), nil
	}
	l.Decider = &decider
	return l, nil
}

func firstPolicy(path string) (*v1alpha1.ToolPolicy, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	set := manifest.Read(path, data)
	if err := set.Err(); err != nil {
		return nil, err
	}
	policies := set.ToolPolicies()
	if len(policies) == 0 {
		return nil, errors.New(path + " holds no ToolPolicy")
	}
	return policies[0], nil
}
