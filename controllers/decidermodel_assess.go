package controllers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/inference/workload"
)

// finding is a condition without its type.
type finding struct {
	status  metav1.ConditionStatus
	reason  v1alpha1.ConditionReason
	message string
}

func holds(r v1alpha1.ConditionReason, message string) finding {
	return finding{metav1.ConditionTrue, r, message}
}

func fails(r v1alpha1.ConditionReason, format string, args ...any) finding {
	return finding{metav1.ConditionFalse, r, fmt.Sprintf(format, args...)}
}

func waits(r v1alpha1.ConditionReason, format string, args ...any) finding {
	return finding{metav1.ConditionUnknown, r, fmt.Sprintf(format, args...)}
}

func (f finding) as(t v1alpha1.ConditionType) metav1.Condition {
	return condition(t, f.status, f.reason, f.message)
}

func (f finding) isTrue() bool { return f.status == metav1.ConditionTrue }

// assessDecider judges a DeciderModel: which revision serves, which one is on trial, and what that needs.
//
// A revision that is asked for and does not serve yet is the candidate. It is started beside the active one and takes over
// when it has the pinned bytes, answers, has passed its evaluation and its comparison on live calls. As long as one of these
// fails or is not known, the active one stays. The first revision goes the same way, and until it is through nothing serves.
func assessDecider(f *deciderFacts) *deciderVerdict {
	v := &deciderVerdict{active: f.model.Status.Active.DeepCopy(), history: slices.Clone(f.model.Status.History)}
	if f.problem != "" {
		return v.refused(f)
	}
	v.create = !slices.ContainsFunc(f.names(), func(n string) bool { return n == f.wanted })
	wanted := f.revisions[f.wanted]
	t := trial{deciderFacts: f, of: wanted, isActive: v.active != nil && string(v.active.Name) == f.wanted, hasActive: v.active != nil}
	t.run()
	v.place(f, &t)
	v.conclude(f, &t)
	v.keepWhatIsNeeded(f)
	return v
}

func (f *deciderFacts) names() []string {
	out := make([]string, len(f.known))
	for i, c := range f.known {
		out[i] = c.Name
	}
	return out
}

// refused leaves everything as it is: what serves goes on, and nothing new is tried.
func (v *deciderVerdict) refused(f *deciderFacts) *deciderVerdict {
	v.candidate = f.model.Status.Candidate.DeepCopy()
	if v.candidate.IsCompared() {
		v.candidate.Shadow = nil
	}
	accepted := condition(v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonInvalid, f.problem)
	conditions := []metav1.Condition{accepted}
	for _, t := range []v1alpha1.ConditionType{v1alpha1.ConditionVerified, v1alpha1.ConditionEvaluated, v1alpha1.ConditionAvailable} {
		conditions = append(conditions, pending(t, "is looked at when the spec is accepted"))
	}
	if v.active != nil {
		if r := f.revisions[string(v.active.Name)]; r != nil {
			t := trial{deciderFacts: f, of: r, isActive: true, hasActive: true}
			t.run()
			conditions[1], conditions[3] = t.verified.as(v1alpha1.ConditionVerified), t.available.as(v1alpha1.ConditionAvailable)
			v.run = f.withPods(string(v.active.Name))
		}
	}
	if v.candidate != nil {
		v.run = append(v.run, f.withPods(string(v.candidate.Name))...)
	}
	v.conditions = append(conditions, readyCondition(conditions, ""))
	v.keepWhatIsNeeded(f)
	return v
}

// place puts the revisions where they belong now.
func (v *deciderVerdict) place(f *deciderFacts, t *trial) {
	now := metav1.NewTime(f.now)
	was := f.model.Status.Candidate
	entry := v1alpha1.DeciderRevision{Name: v1alpha1.ObjectName(f.wanted), Since: &now}
	switch {
	case t.isActive:
		entry = *v.active
	case was != nil && string(was.Name) == f.wanted:
		entry = *was.DeepCopy()
	}
	t.describe(&entry)
	switch {
	case t.isActive:
		v.active = &entry
	case t.passes():
		if v.active != nil {
			v.history = slices.Insert(v.history, 0, *v.active)
		}
		entry.Since = &now
		v.active = &entry
		t.isActive = true
		t.available = t.isAvailable() // of the judge in the gates more is asked, now that they should serve it
	default:
		v.candidate = &entry
		if v.active != nil {
			f.refresh(v.active)
		}
	}
	v.history = slices.DeleteFunc(v.history, func(r v1alpha1.DeciderRevision) bool { return v.active != nil && r.Name == v.active.Name })
}

// refresh writes what the active revision says of itself now.
func (f *deciderFacts) refresh(active *v1alpha1.DeciderRevision) {
	if r := f.revisions[string(active.Name)]; r != nil && r.seen != nil && r.seen.mismatch == "" {
		active.Fingerprint = r.seen.fingerprint
	}
}

// conclude sets the conditions. Verified and Available speak of what serves, as long as something does: a candidate that
// is still starting takes nothing away from it. Evaluated, and a hash that differs, speak of what is asked for.
func (v *deciderVerdict) conclude(f *deciderFacts, t *trial) {
	verified, available := t.verified, t.available
	if v.active != nil && !t.isActive {
		serving := trial{deciderFacts: f, of: f.revisions[string(v.active.Name)], isActive: true, hasActive: true}
		serving.run()
		available = serving.available
		if verified.status != metav1.ConditionFalse {
			verified = serving.verified
		}
	}
	conditions := []metav1.Condition{
		condition(v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted, f.acceptedMessage()),
		verified.as(v1alpha1.ConditionVerified), t.evaluated.as(v1alpha1.ConditionEvaluated), available.as(v1alpha1.ConditionAvailable),
	}
	ready := readyCondition(f.count(conditions), "revision "+f.wanted+" serves")
	if ready.Status != metav1.ConditionFalse && v.candidate != nil {
		ready = t.obstacle().as(v1alpha1.ConditionReady)
		if ready.Status == metav1.ConditionTrue {
			ready = pending(v1alpha1.ConditionReady, "revision "+f.wanted+" is about to serve")
		}
	}
	if v.candidate != nil && v.active != nil {
		ready.Message = shorten(ready.Message + "; revision " + string(v.active.Name) + " serves meanwhile")
	}
	v.conditions = append(conditions, ready)
	v.recheck = lookAgain
	if v.candidate != nil && t.obstacle().status != metav1.ConditionFalse {
		v.recheck = lookSoon
	}
}

// count leaves out what holds nobody up: that a decider says itself what it is, where that is enough.
func (f *deciderFacts) count(conditions []metav1.Condition) []metav1.Condition {
	if f.model.Spec.RequireVerified != v1alpha1.Optional || conditions[1].Reason != string(v1alpha1.ReasonSelfReported) {
		return conditions
	}
	return slices.Delete(slices.Clone(conditions), 1, 2)
}

func (f *deciderFacts) acceptedMessage() string {
	if f.isRollback() {
		return "the annotation " + rollbackAnnotation + " asks for revision " + f.wanted + " instead of that of the spec"
	}
	return "the spec makes sense on its own"
}

func (f *deciderFacts) isRollback() bool { return f.model.Annotations[rollbackAnnotation] != "" }

// keepWhatIsNeeded says which revisions run, and which stay to be gone back to.
func (v *deciderVerdict) keepWhatIsNeeded(f *deciderFacts) {
	for _, r := range []*v1alpha1.DeciderRevision{v.active, v.candidate} {
		if r != nil {
			v.keep = append(v.keep, string(r.Name))
			v.run = append(v.run, f.withPods(string(r.Name))...)
		}
	}
	if v.candidate != nil && f.problem == "" || v.active != nil && string(v.active.Name) == f.wanted {
		v.evaluate = f.toEvaluate()
	}
	drain, left := draining(v.active, v.history, f.now)
	for _, name := range drain {
		v.run = append(v.run, f.withPods(name)...)
	}
	if left > 0 {
		v.recheck = min(cmp.Or(v.recheck, left), left)
	}
	slices.Sort(v.run)
	v.run = slices.Compact(v.run)
	v.keep = append(v.keep, v.spare(f)...)
	v.history = slices.DeleteFunc(v.history, func(r v1alpha1.DeciderRevision) bool { return !slices.Contains(v.keep, string(r.Name)) })
	v.history = v.history[:min(len(v.history), revisionsKept)]
}

// spare are the revisions that stay besides those in use: the ones that have served, the last first, since one of them is what
// somebody wants back; then those that were only tried, the newest first.
func (v *deciderVerdict) spare(f *deciderFacts) []string {
	known := f.names()
	var order, out []string
	for i := range v.history {
		order = append(order, string(v.history[i].Name))
	}
	for _, name := range append(order, known...) {
		if len(out) < revisionsKept && slices.Contains(known, name) && !slices.Contains(v.keep, name) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// draining are the revisions of a history whose pods stay a while after another took over, and how long the first of them to
// go has left. There are several where one roll-out follows another at once.
func draining(active *v1alpha1.DeciderRevision, history []v1alpha1.DeciderRevision, now time.Time) (names []string, left time.Duration) {
	successor := active
	for i := range history {
		if successor == nil || successor.Since == nil || !now.Before(successor.Since.Add(drainFor)) {
			break
		}
		left = successor.Since.Add(drainFor).Sub(now)
		successor = &history[i]
		names = append(names, string(successor.Name))
	}
	return names, left
}

// withPods is the revision, if it runs in pods and may be run.
func (f *deciderFacts) withPods(name string) []string {
	r := f.revisions[name]
	if r == nil || r.problem != "" || r.taken != "" || !workload.HasPods(&r.revision.Spec) {
		return nil
	}
	return []string{name}
}

// toEvaluate is the wanted revision, once it answers and if its evaluation is not there yet.
func (f *deciderFacts) toEvaluate() string {
	r := f.revisions[f.wanted]
	rollout := f.model.Spec.Rollout
	if rollout == nil || rollout.Evaluation == nil || r == nil || r.evaluation != nil || r.evaluationTaken != "" || r.seen == nil || r.seen.mismatch != "" {
		return ""
	}
	return f.wanted
}

// short is a text in one line.
func short(s string) string { return strings.Join(strings.Fields(s), " ") }
