package controllers

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"gatewright.dev/gatewright/api/v1alpha1"
)

// policyFacts is all that the status of a policy depends on.
type policyFacts struct {
	// key is the policy in the reports of gates.
	key        string
	generation int64
	compiled   compilation
	// reference is nil where the policy asks nobody.
	reference *v1alpha1.DeciderReference
	// decider is what the reference names; nil if it is not there.
	decider *v1alpha1.DeciderModel
	// namespaces that the policy is for; empty is all.
	namespaces []string
	gates      *Observation
	// before are the conditions that the policy has.
	before []metav1.Condition
}

// compilation is what compiling a policy tells.
type compilation struct {
	// errors are empty if it compiles.
	errors string
	// needsFingerprint says that it may allow a call by numbers.
	needsFingerprint bool
}

// assessPolicy judges a policy. All conditions are there from the first pass.
func assessPolicy(f *policyFacts) []metav1.Condition {
	accepted := f.accepted()
	parts := []metav1.Condition{accepted, f.resolvedRefs(accepted.Status), f.programmed()}
	return append(parts, readyCondition(parts, "every ready gate applies this policy"))
}

func (f *policyFacts) accepted() metav1.Condition {
	if f.compiled.errors != "" {
		return condition(v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonInvalid,
			"does not compile, so that every call of its callers is blocked: "+f.compiled.errors)
	}
	return condition(v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted, "compiles")
}

// programmed keeps what was known of this very generation while gates have not all spoken: a manager that has just
// started knows less than the one before it, and says nothing new.
func (f *policyFacts) programmed() metav1.Condition {
	now := f.gates.programmed(f.key, f.generation)
	old := meta.FindStatusCondition(f.before, string(v1alpha1.ConditionProgrammed))
	if !f.gates.Known && old != nil && old.ObservedGeneration == f.generation {
		return condition(v1alpha1.ConditionProgrammed, old.Status, v1alpha1.ConditionReason(old.Reason), old.Message)
	}
	return now
}

// resolvedRefs says what the gates would find: the decider is there, may be asked, is the one that the thresholds were
// set for, and its bytes were checked.
func (f *policyFacts) resolvedRefs(accepted metav1.ConditionStatus) metav1.Condition {
	refused := func(r v1alpha1.ConditionReason, format string, args ...any) metav1.Condition {
		return condition(v1alpha1.ConditionResolvedRefs, metav1.ConditionFalse, r, fmt.Sprintf(format, args...))
	}
	ref := f.reference
	switch {
	case accepted != metav1.ConditionTrue:
		return pending(v1alpha1.ConditionResolvedRefs, "is looked at when the policy compiles")
	case ref == nil:
		return condition(v1alpha1.ConditionResolvedRefs, metav1.ConditionTrue, v1alpha1.ReasonResolvedRefs, "refers to no decider")
	case f.decider == nil:
		return refused(v1alpha1.ReasonDeciderNotFound, "DeciderModel %s does not exist: create it, or name another in spec.deciderRef", ref.Name)
	}
	if outside := f.notAllowed(); outside != "" {
		return refused(v1alpha1.ReasonDeciderNotAllowed, "DeciderModel %s may not be asked from %s: see its spec.allowedNamespaces", ref.Name, outside)
	}
	if ref.Fingerprint == "" && f.compiled.needsFingerprint {
		return refused(v1alpha1.ReasonFingerprintRequired,
			"a ladder may end in Allow by numbers of an unnamed model: set spec.deciderRef.fingerprint, or let every ladder end in Confirm, Clarify or Block")
	}
	return f.resolvedActive(refused)
}

// resolvedActive looks at the revision of the decider that serves.
func (f *policyFacts) resolvedActive(refused func(v1alpha1.ConditionReason, string, ...any) metav1.Condition) metav1.Condition {
	ref, active := f.reference, f.decider.Status.Active
	switch {
	case active == nil || active.Fingerprint == "" && ref.Fingerprint != "":
		return pending(v1alpha1.ConditionResolvedRefs, fmt.Sprintf("DeciderModel %s has no revision yet that serves and says its fingerprint", ref.Name))
	case ref.Fingerprint != "" && ref.Fingerprint != active.Fingerprint:
		return refused(v1alpha1.ReasonDeciderMismatch, "DeciderModel %s serves fingerprint %s, but the thresholds were set for %s",
			ref.Name, active.Fingerprint, ref.Fingerprint)
	}
	verified := meta.FindStatusCondition(f.decider.Status.Conditions, string(v1alpha1.ConditionVerified))
	switch {
	case f.decider.Spec.RequireVerified == v1alpha1.Optional:
	case active.SHA256 != "": // the bytes that serve were checked, whatever those of a candidate are
	case verified == nil || verified.Status == metav1.ConditionUnknown && verified.Reason != string(v1alpha1.ReasonSelfReported):
		return pending(v1alpha1.ConditionResolvedRefs, fmt.Sprintf("the bytes of DeciderModel %s are not checked yet", ref.Name))
	case verified.Status != metav1.ConditionTrue:
		return refused(v1alpha1.ReasonDeciderNotVerified, "DeciderModel %s is not verified (%s), and its spec.requireVerified is Required: nothing is asked of it",
			ref.Name, verified.Reason)
	}
	return condition(v1alpha1.ConditionResolvedRefs, metav1.ConditionTrue, v1alpha1.ReasonResolvedRefs, fmt.Sprintf("DeciderModel %s can be asked", ref.Name))
}

// notAllowed names the first namespace of the policy from which its decider may not be asked.
func (f *policyFacts) notAllowed() string {
	if len(f.namespaces) == 0 && !f.decider.Spec.AllowsEveryNamespace() {
		return "every namespace"
	}
	for _, ns := range f.namespaces {
		if !f.decider.Spec.AllowsNamespace(ns) {
			return "namespace " + ns
		}
	}
	return ""
}

// errorText joins what is wrong with a spec in one line.
func errorText(errs field.ErrorList) string {
	var out []string
	for _, e := range errs {
		out = append(out, e.Error())
	}
	return strings.Join(out, "; ")
}
