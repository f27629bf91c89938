package serve

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/gate"
	"gatewright.dev/gatewright/internal/policy"
	"gatewright.dev/gatewright/internal/strictjson"
)

// Stop is a change of a policy under which a call would not have been allowed.
type Stop struct {
	// Change in words.
	Change  string         `json:"change"`
	Outcome review.Outcome `json:"outcome"`
	Reason  string         `json:"reason"`
	By      string         `json:"by"`
}

// variant is one change of one policy of the set, by its place in the set.
type variant struct {
	change string
	apply  func() // changes a copy
	policy policyLike
}

// policyLike is a copy of a ToolPolicy or a ClusterToolPolicy.
type policyLike struct {
	label   string
	rules   *v1alpha1.PolicyRules
	compile func() (*policy.Compiled, field.ErrorList)
}

// WhatWouldStop judges a call that was allowed under each rule that these policies have for other tools of theirs: every
// class in turn, a person always, and a value that has to come from the user. It returns those that stop the call, in the
// order of policies.
func (r *Replayer) WhatWouldStop(ctx context.Context, e *audit.Entry) ([]Stop, error) {
	now, err := r.Judge(ctx, e)
	if err != nil {
		return nil, err
	}
	if now.Response.Outcome != review.Allow {
		return []Stop{stop("the policies given, as they are", now.Response)}, nil
	}
	defer func() { _ = r.use(r.source.policies(r.set)) }()
	if r.deciders == nil {
		r.deciders = r.served()
	}
	var out []Stop
	for i := range len(r.set.ToolPolicies()) + len(r.set.ClusterToolPolicies()) {
		for _, v := range variants(r.copyOf(i), e, now) {
			found, err := r.try(ctx, e, i, v)
			if err != nil {
				return nil, err
			}
			if found != nil {
				out = append(out, *found)
			}
		}
	}
	return out, nil
}

func stop(change string, r *review.Response) Stop {
	return Stop{Change: change, Outcome: r.Outcome, Reason: r.Reason, By: r.By}
}

// served are the deciders that the manifests name, as the gate asks them now.
func (r *Replayer) served() map[string]*gate.ServedDecider {
	out := map[string]*gate.ServedDecider{}
	for name, d := range r.source.deciders {
		out[name] = d.served
	}
	return out
}

// copyOf is a copy of policy i, in a form that changes can be made to.
func (r *Replayer) copyOf(i int) policyLike {
	policies := r.set.ToolPolicies()
	if i < len(policies) {
		p := policies[i].DeepCopy()
		return policyLike{p.Namespace + "/" + p.Name, &p.Spec.PolicyRules, func() (*policy.Compiled, field.ErrorList) { return policy.Compile(p) }}
	}
	p := r.set.ClusterToolPolicies()[i-len(policies)].DeepCopy()
	return policyLike{p.Name, &p.Spec.PolicyRules, func() (*policy.Compiled, field.ErrorList) { return policy.CompileCluster(p) }}
}

// variants are changes to what a policy says of the tool of a call.
func variants(p policyLike, e *audit.Entry, now *Replayed) []variant {
	var out []variant
	for i := range p.rules.Tools {
		t := &p.rules.Tools[i]
		if !matches(string(t.Name), e.Tool) {
			continue
		}
		was := *t.DeepCopy()
		for _, class := range classesOf(p.rules) {
			if class == t.Class {
				continue
			}
			out = append(out, variant{fmt.Sprintf("%s: class %s for %s", p.label, class, t.Name), func() { *t = *was.DeepCopy(); t.Class, t.LowerTo = class, nil }, p})
		}
		for _, argument := range slices.Sorted(maps.Keys(now.State.Request.Arguments)) {
			pointer := v1alpha1.Pointer("/" + strictjson.EscapeToken(argument))
			out = append(out, variant{fmt.Sprintf("%s: %s of %s has to come from the user", p.label, pointer, t.Name), func() {
				*t = *was.DeepCopy()
				t.ArgumentSources = []v1alpha1.ArgumentSourceRule{{Argument: pointer, From: []v1alpha1.ValueSource{v1alpha1.SourceUser}, Otherwise: v1alpha1.StricterOutcome(v1alpha1.OutcomeConfirm)}}
			}, p})
		}
	}
	return out
}

func matches(pattern, tool string) bool {
	prefix, isPrefix := strings.CutSuffix(pattern, "*")
	return pattern == tool || isPrefix && len(tool) > len(prefix) && strings.HasPrefix(tool, prefix)
}

// classesOf are the built-in classes and those that a policy names.
func classesOf(r *v1alpha1.PolicyRules) []v1alpha1.ClassName {
	out := []v1alpha1.ClassName{v1alpha1.ClassName(v1alpha1.BaseReadOnly), v1alpha1.ClassName(v1alpha1.BaseWrite), v1alpha1.ClassName(v1alpha1.BaseDestructive), v1alpha1.ClassName(v1alpha1.BaseExternal)}
	for _, c := range r.Classes {
		if !slices.Contains(out, c.Name) {
			out = append(out, c.Name)
		}
	}
	return out
}

// try judges the call with policy i changed. Nil: the change stops nothing, does not compile, or asks what nobody answered.
func (r *Replayer) try(ctx context.Context, e *audit.Entry, i int, v variant) (*Stop, error) {
	v.apply()
	changed, errs := v.policy.compile()
	if len(errs) > 0 {
		return nil, nil
	}
	policies := r.source.policies(r.set)
	policies[i] = changed
	if err := r.use(policies); err != nil {
		return nil, err
	}
	got, err := r.Judge(ctx, e)
	if err != nil {
		return nil, err
	}
	if got.Response.Outcome == review.Allow || got.Response.Reason == string(policy.ReasonQuestionNotSupported) {
		return nil, nil
	}
	s := stop(v.change, got.Response)
	return &s, nil
}

// Bar is a threshold that would have stopped a call by an answer that was given at the time.
type Bar struct {
	Policy   string `json:"policy"`
	Decider  string `json:"decider"`
	Question string `json:"question"`
	Answer   string `json:"answer"`
}

// Bars are the answers that a ladder could have gone by, by policy and question.
func Bars(e *audit.Entry) []Bar {
	var out []Bar
	for _, a := range e.Deciders {
		for _, name := range slices.Sorted(maps.Keys(a.Answers)) {
			out = append(out, Bar{Policy: a.Policy, Decider: a.Decider, Question: name, Answer: a.Answers[name].String()})
		}
	}
	return out
}
