package webhook

import (
	"fmt"

	"gatewright.dev/gatewright/api/v1alpha1"
)

// outcomes from the strictest on.
var outcomes = []any{v1alpha1.OutcomeBlock, v1alpha1.OutcomeClarify, v1alpha1.OutcomeConfirm, v1alpha1.OutcomeAllow}

// classes compares every class that one of both sides lists. One that is not listed has the defaults of its name.
func (c *comparison) classes() {
	was, is := classesOf(c.was), classesOf(c.is)
	for _, k := range append(c.was.Classes, listedAnew(was, c.is.Classes)...) {
		before, existed := was[k.Name]
		after, exists := is[k.Name]
		if existed && exists {
			c.class("spec.classes["+string(k.Name)+"]", before, after)
		}
	}
}

// listedAnew are the classes that the other side does not list itself; the built-in ones have defaults there.
func listedAnew(listed map[v1alpha1.ClassName]effectiveClass, classes []v1alpha1.ClassPolicy) []v1alpha1.ClassPolicy {
	var out []v1alpha1.ClassPolicy
	for _, k := range classes {
		if old, ok := listed[k.Name]; ok && old.isDefault {
			out = append(out, k)
		}
	}
	return out
}

// effectiveClass is a class with its defaults written out.
type effectiveClass struct {
	base         v1alpha1.Base
	decider      v1alpha1.DeciderUse
	thresholds   []v1alpha1.Threshold
	otherwise    v1alpha1.Outcome
	approval     v1alpha1.ApprovalRule
	unavailable  v1alpha1.UnavailableOutcome
	selfApproval v1alpha1.SelfApproval
	channels     []v1alpha1.ApprovalChannel
	isDefault    bool
}

func classesOf(r *v1alpha1.PolicyRules) map[v1alpha1.ClassName]effectiveClass {
	out := map[v1alpha1.ClassName]effectiveClass{}
	for _, b := range []v1alpha1.Base{v1alpha1.BaseReadOnly, v1alpha1.BaseWrite, v1alpha1.BaseExternal, v1alpha1.BaseDestructive} {
		k := effective(&v1alpha1.ClassPolicy{Name: v1alpha1.ClassName(b)})
		k.isDefault = true
		out[v1alpha1.ClassName(b)] = k
	}
	for i := range r.Classes {
		out[r.Classes[i].Name] = effective(&r.Classes[i])
	}
	return out
}

// effective writes out the defaults, as the API documents them.
func effective(k *v1alpha1.ClassPolicy) effectiveClass {
	base := baseOf(k)
	isIrreversible := base == v1alpha1.BaseDestructive || base == v1alpha1.BaseExternal
	out := effectiveClass{
		base: base, decider: orDefault(k.Decider, v1alpha1.DeciderSkip), thresholds: k.Thresholds,
		approval: v1alpha1.ApprovalWhenUnsure, unavailable: v1alpha1.UnavailableConfirm,
		selfApproval: v1alpha1.SelfApprovalAllow, channels: k.Channels, otherwise: v1alpha1.OutcomeConfirm,
	}
	if isIrreversible {
		out.approval, out.unavailable = v1alpha1.ApprovalAlways, v1alpha1.UnavailableBlock
	}
	if base == v1alpha1.BaseDestructive {
		out.selfApproval = v1alpha1.SelfApprovalForbid
	}
	out.approval = orDefault(k.Approval, out.approval)
	out.unavailable = orDefault(k.WhenDeciderUnavailable, out.unavailable)
	out.selfApproval = orDefault(k.SelfApproval, out.selfApproval)
	if base == v1alpha1.BaseReadOnly || out.approval == v1alpha1.ApprovalAlways {
		out.otherwise = v1alpha1.OutcomeAllow // what always asks a person needs no second reason to
	}
	if k.Otherwise != nil {
		out.otherwise = k.Otherwise.Outcome
	}
	if len(out.channels) == 0 {
		out.channels = []v1alpha1.ApprovalChannel{v1alpha1.ChannelKubernetes}
	}
	return out
}

func (c *comparison) class(path string, was, is effectiveClass) {
	if rank(is.base) < rank(was.base) {
		c.add("%s.base: was %s, is %s", path, was.base, is.base)
	}
	c.ordered(path+".approval", was.approval, is.approval, v1alpha1.ApprovalForbidden, v1alpha1.ApprovalAlways, v1alpha1.ApprovalWhenUnsure)
	c.ordered(path+".whenDeciderUnavailable", was.unavailable, is.unavailable, v1alpha1.UnavailableBlock, v1alpha1.UnavailableConfirm)
	c.ordered(path+".selfApproval", was.selfApproval, is.selfApproval, v1alpha1.SelfApprovalForbid, v1alpha1.SelfApprovalAllow)
	if channels := added(was.channels, is.channels); len(channels) > 0 {
		c.add("%s.channels: %s is new", path, words(channels))
	}
	if was.approval == v1alpha1.ApprovalForbidden {
		return // whatever its ladder was, all of it was blocked, and approval says so
	}
	if is.approval != v1alpha1.ApprovalAlways { // a person is asked whatever the end says
		c.ordered(path+".otherwise", was.otherwise, is.otherwise, outcomes...)
	}
	if was.decider == v1alpha1.DeciderAsk && is.decider == v1alpha1.DeciderSkip {
		c.add("%s.decider: was Ask, is Skip", path)
	}
	c.ladder(path, was.thresholds, is.thresholds, is.otherwise)
}

// ladder compares thresholds that are alike but for their numbers. Others have no order.
func (c *comparison) ladder(path string, was, is []v1alpha1.Threshold, otherwise v1alpha1.Outcome) {
	if len(was) != len(is) {
		return
	}
	for i := range is {
		if was[i].Outcome != is[i].Outcome {
			c.ordered(fmt.Sprintf("%s.thresholds[%d].outcome", path, i), was[i].Outcome, is[i].Outcome, outcomes...)
			continue
		}
		later := append(outcomesOf(is[i+1:]), otherwise)
		c.step(fmt.Sprintf("%s.thresholds[%d]", path, i), &was[i], &is[i], later)
	}
}

// step says whether a step that matches less often leaves calls to something weaker, or one that matches more often
// takes them from something stricter.
func (c *comparison) step(path string, was, is *v1alpha1.Threshold, later []v1alpha1.Outcome) {
	weaker, stricter := false, false
	for _, o := range later {
		weaker = weaker || strictness(o) > strictness(is.Outcome)
		stricter = stricter || strictness(o) < strictness(is.Outcome)
	}
	moved := func(path string, was, is int32, isMoreMatching bool) {
		if was != is && (isMoreMatching && stricter || !isMoreMatching && weaker) {
			c.add("%s: was %d, is %d", path, was, is)
		}
	}
	if was.ConfidenceBelow != nil && is.ConfidenceBelow != nil {
		moved(path+".confidenceBelow.percent", int32(was.ConfidenceBelow.Percent), int32(is.ConfidenceBelow.Percent), is.ConfidenceBelow.Percent > was.ConfidenceBelow.Percent)
	}
	if len(was.When) != len(is.When) {
		return
	}
	for i := range is.When {
		a, b := &was.When[i], &is.When[i]
		if a.Question != b.Question || a.Option != b.Option || !equal(a.Level, b.Level) {
			continue
		}
		at := fmt.Sprintf("%s.when[%s].", path, b.Question)
		for _, n := range []struct {
			name    string
			was, is *int32
			isFloor bool
		}{{"above", a.Above, b.Above, true}, {"atLeast", a.AtLeast, b.AtLeast, true}, {"below", a.Below, b.Below, false}, {"atMost", a.AtMost, b.AtMost, false}} {
			if n.was != nil && n.is != nil {
				moved(at+n.name, *n.was, *n.is, n.isFloor == (*n.is < *n.was))
			}
		}
	}
}

func outcomesOf(steps []v1alpha1.Threshold) []v1alpha1.Outcome {
	out := make([]v1alpha1.Outcome, len(steps))
	for i := range steps {
		out[i] = steps[i].Outcome
	}
	return out
}

// strictness of an outcome, 0 for the strictest.
func strictness(o v1alpha1.Outcome) int {
	for i, known := range outcomes {
		if known == o {
			return i
		}
	}
	return 0
}

func equal[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// rank orders bases; the two worst are not ordered.
func rank(b v1alpha1.Base) int {
	switch b {
	case v1alpha1.BaseReadOnly:
		return 0
	case v1alpha1.BaseWrite:
		return 1
	case v1alpha1.BaseExternal, v1alpha1.BaseDestructive:
	}
	return 2
}
