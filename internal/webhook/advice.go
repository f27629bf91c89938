package webhook

import (
	"fmt"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/policy"
	"gatewright.dev/gatewright/internal/suite"
)

func adviseToolPolicy(p *v1alpha1.ToolPolicy, compiled *policy.Compiled) []string {
	var out []string
	if len(p.Spec.Tools) == 0 && p.Spec.UnknownTools != v1alpha1.UnknownToolsDefer && p.Spec.UnknownTools != v1alpha1.UnknownToolsConfirm {
		out = append(out, "spec.tools: lists no tool, so every call of the callers is blocked: list the tools that they may call")
	}
	return append(out, adviseRules(&p.Spec.PolicyRules, compiled)...)
}

// adviseRules says what is allowed and may not be meant.
func adviseRules(r *v1alpha1.PolicyRules, compiled *policy.Compiled) []string {
	var out []string
	if r.Mode == v1alpha1.ModeAudit {
		out = append(out, "spec.mode: Audit enforces nothing: calls are decided and recorded, and let through unless another policy objects")
	}
	if compiled.NeedsFingerprint() {
		out = append(out, "spec.deciderRef.fingerprint: is empty although a ladder may allow: until it is set the policy is not resolved, FingerprintRequired")
	}
	if r.CaptureState == v1alpha1.CapturePlain {
		out = append(out, "spec.captureState: Plain keeps whole calls and conversations where whoever reads the files can read them")
	}
	for i := range r.Classes {
		out = append(out, adviseClass(&r.Classes[i])...)
	}
	for _, q := range r.Questions {
		for _, text := range suite.Lint(q) {
			out = append(out, "spec.questions: "+text)
		}
	}
	return out
}

func adviseClass(k *v1alpha1.ClassPolicy) []string {
	base := baseOf(k)
	if base != v1alpha1.BaseDestructive && base != v1alpha1.BaseExternal {
		return nil
	}
	var out []string
	if k.Approval == v1alpha1.ApprovalWhenUnsure {
		out = append(out, fmt.Sprintf("spec.classes[%s].approval: WhenUnsure lets calls that cannot be undone run without a person", k.Name))
	}
	if base == v1alpha1.BaseDestructive && k.SelfApproval == v1alpha1.SelfApprovalAllow {
		out = append(out, fmt.Sprintf("spec.classes[%s].selfApproval: Allow lets the user for whom an agent acts approve what destroys", k.Name))
	}
	return out
}

// baseOf is the base of a class: its own name for the built-in ones.
func baseOf(k *v1alpha1.ClassPolicy) v1alpha1.Base {
	switch b := v1alpha1.Base(k.Name); b {
	case v1alpha1.BaseReadOnly, v1alpha1.BaseWrite, v1alpha1.BaseExternal, v1alpha1.BaseDestructive:
		return b
	}
	return k.Base
}

func adviseDeciderModel(s *v1alpha1.DeciderModelSpec) []string {
	var out []string
	if s.RequireVerified == v1alpha1.Optional {
		out = append(out, "spec.requireVerified: Optional takes the decider's own word for what it computes with")
	}
	if s.Runtime != v1alpha1.RuntimeEmbedded && (s.Rollout == nil || s.Rollout.Evaluation == nil) {
		out = append(out, "spec.rollout.evaluation: is missing, so a new revision serves without having passed any labelled cases")
	}
	if s.Runtime == v1alpha1.RuntimeExternal && s.AllowedNamespaces == nil {
		out = append(out, "spec.allowedNamespaces: is missing, which is none for runtime External: no policy can refer to it yet")
	}
	if s.Pod != nil && s.Pod.Replicas != nil && *s.Pod.Replicas == 0 {
		out = append(out, "spec.pod.replicas: 0 leaves nobody to answer: whenDeciderUnavailable of each class decides")
	}
	return out
}

// loosenedModel says what an update of a decider loosens.
func loosenedModel(was, is *v1alpha1.DeciderModelSpec) []string {
	c := &comparison{}
	c.ordered("spec.requireVerified", orDefault(was.RequireVerified, v1alpha1.Required), orDefault(is.RequireVerified, v1alpha1.Required),
		v1alpha1.Required, v1alpha1.Optional)
	c.allowance(was, is)
	if len(was.Languages) > 0 {
		if len(is.Languages) == 0 {
			c.add("spec.languages: was a list, is empty: requests in every language are judged")
		}
		for _, l := range added(was.Languages, is.Languages) {
			c.add("spec.languages: %s is new", l)
		}
	}
	if was.Rollout != nil && was.Rollout.Evaluation != nil && (is.Rollout == nil || is.Rollout.Evaluation == nil) {
		c.add("spec.rollout.evaluation: was set, is gone: revisions serve without having passed it")
	}
	if was.Rollout != nil && was.Rollout.Evaluation != nil && is.Rollout != nil && is.Rollout.Evaluation != nil {
		c.floors(&was.Rollout.Evaluation.Floors, &is.Rollout.Evaluation.Floors)
	}
	return c.out
}

// allowance compares which namespaces may refer to a decider.
func (c *comparison) allowance(was, is *v1alpha1.DeciderModelSpec) {
	before, after := selection(was), selection(is)
	c.ordered("spec.allowedNamespaces.from", before.From, after.From, v1alpha1.NamespacesNone, v1alpha1.NamespacesListed, v1alpha1.NamespacesAll)
	if before.From == v1alpha1.NamespacesListed && after.From == v1alpha1.NamespacesListed {
		for _, n := range added(before.Namespaces, after.Namespaces) {
			c.add("spec.allowedNamespaces.namespaces: %s is new", n)
		}
	}
}

// selection is the allowance that holds: without one everybody may refer to it, and nobody to an external one.
func selection(s *v1alpha1.DeciderModelSpec) v1alpha1.NamespaceAllowance {
	switch {
	case s.AllowedNamespaces != nil:
		return *s.AllowedNamespaces
	case s.Runtime == v1alpha1.RuntimeExternal:
		return v1alpha1.NamespaceAllowance{From: v1alpha1.NamespacesNone}
	}
	return v1alpha1.NamespaceAllowance{From: v1alpha1.NamespacesAll}
}

func (c *comparison) floors(was, is *v1alpha1.EvaluationFloors) {
	const path = "spec.rollout.evaluation.floors."
	floor(c, path+"recallPercent", was.RecallPercent, is.RecallPercent, true)
	floor(c, path+"flapPercent", was.FlapPercent, is.FlapPercent, false)
	floor(c, path+"p95Milliseconds", was.P95Milliseconds, is.P95Milliseconds, false)
	floor(c, path+"p99Milliseconds", was.P99Milliseconds, is.P99Milliseconds, false)
	for _, b := range was.FalseBlockPercent {
		var now *v1alpha1.Percent
		for i := range is.FalseBlockPercent {
			if is.FalseBlockPercent[i].Class == b.Class {
				now = &is.FalseBlockPercent[i].Percent
			}
		}
		floor(c, path+"falseBlockPercent["+string(b.Class)+"]", &b.Percent, now, false)
	}
}

// floor compares one bar of an evaluation; isLeast says that more of it is stricter.
func floor[T v1alpha1.Percent | int32](c *comparison, path string, was, is *T, isLeast bool) {
	switch {
	case was == nil:
	case is == nil:
		c.add("%s: was %d, is not looked at", path, *was)
	case isLeast && *is < *was || !isLeast && *is > *was:
		c.add("%s: was %d, is %d", path, *was, *is)
	}
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}
