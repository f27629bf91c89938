package testkit

import "gatewright.dev/gatewright/api/v1alpha1"

// ClassOption changes one thing of a class.
type ClassOption func(*v1alpha1.ClassPolicy)

// WithClass sets up a class.
func WithClass(name v1alpha1.ClassName, options ...ClassOption) Option {
	k := v1alpha1.ClassPolicy{Name: name, Decider: v1alpha1.DeciderSkip}
	for _, o := range options {
		o(&k)
	}
	return func(p *Policy) { p.Classes = append(p.Classes, *k.DeepCopy()) }
}

// Base says what a class of one's own means.
func Base(b v1alpha1.Base) ClassOption { return func(k *v1alpha1.ClassPolicy) { k.Base = b } }

// Approval says when a person is needed.
func Approval(a v1alpha1.ApprovalRule) ClassOption {
	return func(k *v1alpha1.ClassPolicy) { k.Approval = a }
}

// WhenUnavailable says what happens without a usable answer.
func WhenUnavailable(o v1alpha1.UnavailableOutcome) ClassOption {
	return func(k *v1alpha1.ClassPolicy) { k.WhenDeciderUnavailable = o }
}

// Otherwise is the end of the ladder.
func Otherwise(o v1alpha1.Outcome) ClassOption {
	return func(k *v1alpha1.ClassPolicy) { k.Otherwise = &v1alpha1.Fallback{Outcome: o} }
}

// Asks asks the decider and climbs a ladder.
func Asks(otherwise v1alpha1.Outcome, questions []v1alpha1.QuestionName, steps ...v1alpha1.Threshold) ClassOption {
	return func(k *v1alpha1.ClassPolicy) {
		k.Decider, k.Questions, k.Thresholds = v1alpha1.DeciderAsk, questions, steps
		Otherwise(otherwise)(k)
	}
}

// Questions lists names of questions.
func Questions(names ...v1alpha1.QuestionName) []v1alpha1.QuestionName { return names }

// Step is a threshold whose conditions must all hold.
func Step(outcome v1alpha1.Outcome, when ...v1alpha1.Condition) v1alpha1.Threshold {
	return v1alpha1.Threshold{When: when, Outcome: outcome}
}

// Floor is a threshold for low confidence.
func Floor(outcome v1alpha1.Outcome, percent v1alpha1.Percent, questions ...v1alpha1.QuestionName) v1alpha1.Threshold {
	return v1alpha1.Threshold{ConfidenceBelow: &v1alpha1.ConfidenceFloor{Percent: percent, Questions: questions}, Outcome: outcome}
}

// Above compares with greater than.
func Above(q v1alpha1.QuestionName, n int32) v1alpha1.Condition {
	return v1alpha1.Condition{Question: q, Above: &n}
}

// AtLeast compares with greater or equal.
func AtLeast(q v1alpha1.QuestionName, n int32) v1alpha1.Condition {
	return v1alpha1.Condition{Question: q, AtLeast: &n}
}

// Below compares with less than.
func Below(q v1alpha1.QuestionName, n int32) v1alpha1.Condition {
	return v1alpha1.Condition{Question: q, Below: &n}
}

// AtMost compares with less or equal.
func AtMost(q v1alpha1.QuestionName, n int32) v1alpha1.Condition {
	return v1alpha1.Condition{Question: q, AtMost: &n}
}

// Is compares the chosen option.
func Is(q v1alpha1.QuestionName, option string) v1alpha1.Condition {
	return v1alpha1.Condition{Question: q, Is: option}
}

// OfOption compares the probability of one option of a Choice.
func OfOption(option string, c v1alpha1.Condition) v1alpha1.Condition {
	c.Option = option
	return c
}

// OfLevel compares the probability of one level of a Score.
func OfLevel(level int32, c v1alpha1.Condition) v1alpha1.Condition {
	c.Level = &level
	return c
}
