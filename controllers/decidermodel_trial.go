package controllers

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/evaluation"
	"gatewright.dev/gatewright/internal/names"
)

const rollbackAnnotation = names.RollbackAnnotation

// trial is what one revision has to pass.
type trial struct {
	*deciderFacts
	of *revisionFacts
	// isActive says that it serves already, hasActive that some revision does.
	isActive, hasActive bool

	available, verified, evaluated finding
	// shadowed is the comparison on live calls, once it is over. Empty: gates are to compare. nil: nothing is compared.
	shadowed *v1alpha1.ShadowResult
}

func (t *trial) run() {
	t.available = t.isAvailable()
	t.verified = t.isVerified()
	t.evaluated = t.isEvaluated()
}

// passes says whether a candidate may take over. What its hash is and cannot be known, for foreign images and servers, the
// gate knows too: it allows nothing by them unless that is optional.
func (t *trial) passes() bool {
	return t.available.isTrue() && t.evaluated.isTrue() &&
		(t.verified.isTrue() || t.verified.reason == v1alpha1.ReasonSelfReported) && t.of.seen != nil
}

// obstacle is what a candidate waits for, or why it does not take over.
func (t *trial) obstacle() finding {
	for _, f := range []finding{t.verified, t.available, t.evaluated} {
		if f.status == metav1.ConditionFalse {
			return f
		}
	}
	for _, f := range []finding{t.available, t.verified, t.evaluated} {
		if !f.isTrue() && f.reason != v1alpha1.ReasonSelfReported {
			return waits(v1alpha1.ReasonPending, "%s", f.message)
		}
	}
	return holds(v1alpha1.ReasonReady, "")
}

// describe writes into the status what is known of the revision.
func (t *trial) describe(to *v1alpha1.DeciderRevision) {
	if t.of == nil {
		return
	}
	if s := t.of.seen; s != nil && s.mismatch == "" {
		to.Fingerprint, to.SHA256 = s.fingerprint, ""
		if a := t.of.revision.Spec.Artifact; a != nil && a.SHA256 == s.sha256 {
			to.SHA256 = s.sha256
		}
	}
	to.Evaluation = ""
	if t.of.evaluation != nil {
		to.Evaluation = v1alpha1.ObjectName(t.of.evaluation.Name)
	}
	if t.shadowed != nil || to.IsCompared() {
		to.Shadow = t.shadowed
	}
}

// isAvailable says whether the revision answers.
func (t *trial) isAvailable() finding {
	r := t.of
	switch {
	case r == nil:
		return waits(v1alpha1.ReasonPending, "its revision is not written yet")
	case r.problem != "":
		return fails(v1alpha1.ReasonUnavailable, "%s", r.problem)
	case r.taken != "":
		return fails(v1alpha1.ReasonNameTaken, "%s belongs to somebody else and is left alone: delete it, or rename the DeciderModel", r.taken)
	case r.seen != nil && r.seen.mismatch != "":
		return fails(v1alpha1.ReasonDeciderMismatch, "%s", r.seen.mismatch)
	}
	switch r.revision.Spec.Runtime {
	case v1alpha1.RuntimeEmbedded:
		return t.inGates()
	case v1alpha1.RuntimeExternal:
		return t.outside()
	case v1alpha1.RuntimeLlamaCpp, v1alpha1.RuntimeContainer:
	}
	return t.inPods()
}

// inPods looks at the pods. A candidate needs all of them: it takes over the whole load at once.
func (t *trial) inPods() finding {
	r := t.of
	switch {
	case r.revision.Replicas == 0:
		return fails(v1alpha1.ReasonUnavailable, "spec.pod.replicas is 0")
	case r.pods.ready == 0 && r.pods.trouble != "":
		return fails(v1alpha1.ReasonUnavailable, "revision %s does not start: %s", r.revision.Name, r.pods.trouble)
	case r.pods.ready == 0 && t.isActive:
		return fails(v1alpha1.ReasonUnavailable, "no pod of revision %s is ready", r.revision.Name)
	case r.pods.ready == 0, !t.isActive && !r.pods.complete:
		return waits(v1alpha1.ReasonPending, "%d of %d pods of revision %s are ready", r.pods.ready, r.revision.Replicas, r.revision.Name)
	case r.seen == nil:
		return waits(v1alpha1.ReasonPending, "revision %s is ready and could not be asked who it is: %s", r.revision.Name, r.silent)
	}
	return holds(v1alpha1.ReasonAvailable, fmt.Sprintf("revision %s answers in %d of %d pods", r.revision.Name, min(r.pods.ready, r.revision.Replicas), r.revision.Replicas))
}

// inGates asks the gates, in which the embedded judge runs. They can speak of it only once it is active.
func (t *trial) inGates() finding {
	if !t.isActive {
		return holds(v1alpha1.ReasonAvailable, "it runs inside the gates")
	}
	if f, ok := t.asGatesSay(); ok {
		return f
	}
	return waits(v1alpha1.ReasonGatesNotObserved, "no gate has said yet whether it serves revision %s", t.of.revision.Name)
}

// outside is a server of somebody else: what the gates have seen of it counts more than what the manager sees.
func (t *trial) outside() finding {
	if t.isActive {
		if f, ok := t.asGatesSay(); ok {
			return f
		}
	}
	if t.of.seen == nil {
		return fails(v1alpha1.ReasonUnavailable, "it does not answer: %s", t.of.silent)
	}
	return holds(v1alpha1.ReasonAvailable, "it answers")
}

// asGatesSay is what the gates that serve this revision say of it, if there is any.
func (t *trial) asGatesSay() (finding, bool) {
	serving := 0
	for pod, report := range t.gates.Reports {
		d, ok := report.Deciders[t.model.Name]
		if !ok || d.Revision != t.of.revision.Name {
			continue
		}
		if !d.Available {
			return fails(v1alpha1.ReasonUnavailable, "gate %s cannot ask it: %s", pod, short(d.Error)), true
		}
		serving++
	}
	return holds(v1alpha1.ReasonAvailable, "the gates can ask it"), serving > 0
}

// isVerified says whether the bytes that are loaded are the pinned ones.
func (t *trial) isVerified() finding {
	r := t.of
	switch {
	case r == nil:
		return waits(v1alpha1.ReasonPending, "its revision is not written yet")
	case r.pods.mismatch:
		return fails(v1alpha1.ReasonHashMismatch, "%s", r.pods.trouble)
	}
	artifact := r.revision.Spec.Artifact
	if artifact == nil {
		return waits(v1alpha1.ReasonSelfReported, "runtime %s says itself what it has loaded, and nobody can check it", r.revision.Spec.Runtime)
	}
	if r.seen != nil && r.seen.sha256 != "" {
		if r.seen.sha256 != artifact.SHA256 {
			return fails(v1alpha1.ReasonHashMismatch, "the loaded bytes have SHA-256 %s, spec.artifact.sha256 is %s", r.seen.sha256, artifact.SHA256)
		}
		return holds(v1alpha1.ReasonVerified, "the loaded bytes have the pinned hash")
	}
	// Pods that are away for a moment do not undo what was checked: they load nothing else.
	if a := t.model.Status.Active; t.isActive && a != nil && a.SHA256 != "" && a.SHA256 == artifact.SHA256 {
		return holds(v1alpha1.ReasonVerified, "the loaded bytes had the pinned hash when it was last asked")
	}
	return waits(v1alpha1.ReasonPending, "revision %s has not said yet what it has loaded", r.revision.Name)
}

// isEvaluated says whether the floors hold, and whether live calls agree. The floors are computed here, from the counts.
func (t *trial) isEvaluated() finding {
	rollout := t.model.Spec.Rollout
	if rollout == nil {
		return holds(v1alpha1.ReasonNotRequired, "spec.rollout asks for nothing")
	}
	result := holds(v1alpha1.ReasonNotRequired, "spec.rollout.evaluation is not set")
	if rollout.Evaluation != nil {
		if result = t.floors(rollout.Evaluation); !result.isTrue() {
			return result
		}
	}
	// The first revision has none to be compared with, and one that is gone back to is there because the active one is bad.
	if rollout.Shadow == nil || t.isActive || !t.hasActive || t.goesBack() {
		return result
	}
	if t.of == nil {
		return waits(v1alpha1.ReasonPending, "live calls are compared when the decider answers")
	}
	return t.compared(rollout.Shadow, result)
}

func (t *trial) floors(gate *v1alpha1.EvaluationGate) finding {
	if t.of != nil && t.of.evaluationTaken != "" {
		return fails(v1alpha1.ReasonNameTaken, "%s is not the one that this rollout makes and is left alone: delete it", t.of.evaluationTaken)
	}
	if t.of == nil || t.of.evaluation == nil {
		return waits(v1alpha1.ReasonPending, "the evaluation begins when the decider answers")
	}
	e := t.of.evaluation
	switch complete := meta.FindStatusCondition(e.Status.Conditions, string(v1alpha1.ConditionComplete)); {
	case complete == nil || complete.Status == metav1.ConditionUnknown:
		return waits(v1alpha1.ReasonRunning, "DeciderEvaluation %s runs", e.Name)
	case complete.Status == metav1.ConditionFalse:
		return fails(v1alpha1.ReasonEvaluationFailed, "DeciderEvaluation %s could not be run: %s; delete it to try again", e.Name, complete.Message)
	}
	if s := t.of.seen; s != nil && s.fingerprint != e.Status.Fingerprint {
		return fails(v1alpha1.ReasonDeciderMismatch, "DeciderEvaluation %s is of fingerprint %s, the decider has %s; delete it to run it again",
			e.Name, orNone(string(e.Status.Fingerprint)), orNone(string(s.fingerprint)))
	}
	breaches := evaluation.FloorsOf(&gate.Floors).Check(evaluation.MeasuredOf(&e.Status, e.Spec.Repeats))
	if len(breaches) == 0 {
		return holds(v1alpha1.ReasonEvaluated, "the floors hold in DeciderEvaluation "+e.Name)
	}
	return fails(v1alpha1.ReasonFloorMissed, "in DeciderEvaluation %s: %s", e.Name, breachText(breaches))
}

func breachText(breaches []evaluation.Breach) string {
	var out []string
	for _, b := range breaches {
		out = append(out, b.Floor+": "+b.Message)
	}
	return strings.Join(out, "; ")
}

// compared judges the comparison on live calls. Once enough were compared the counts are kept: a candidate that has failed
// does not pass later by luck, and a gate that starts anew forgets its counts.
func (t *trial) compared(bar *v1alpha1.ShadowComparison, before finding) finding {
	name := t.of.revision.Name
	counts := t.shadow(name)
	if c := t.model.Status.Candidate; c != nil && string(c.Name) == name && c.Shadow != nil && c.Shadow.Compared+c.Shadow.Failed >= int64(bar.Decisions) {
		counts = *c.Shadow.DeepCopy()
	}
	// No answer is another answer: a call that waits for a person because the decider failed is one that it would have let through.
	total, other := counts.Compared+counts.Failed, counts.Disagreed+counts.Failed
	text := fmt.Sprintf("%d of %d live calls compared, %d with another outcome and %d without an answer", total, bar.Decisions, counts.Disagreed, counts.Failed)
	switch {
	case total < int64(bar.Decisions) && t.activeIsDown():
		return holds(before.reason, before.message+"; nothing is compared, as the active revision does not answer")
	case total < int64(bar.Decisions):
		if t.available.isTrue() && t.verified.status != metav1.ConditionFalse && t.of.seen != nil {
			t.shadowed = &v1alpha1.ShadowResult{}
		}
		return waits(v1alpha1.ReasonShadowing, "%s", text)
	case other*100 > int64(bar.MaxDisagreementPercent)*total:
		t.shadowed = &counts
		return fails(v1alpha1.ReasonShadowDisagreed, "%s, want at most %d %%", text, bar.MaxDisagreementPercent)
	}
	t.shadowed = &counts
	return holds(before.reason, before.message+"; "+text)
}

// goesBack says whether a revision is asked for that has served before.
func (t *trial) goesBack() bool {
	return t.isRollback() && slices.ContainsFunc(t.model.Status.History, func(r v1alpha1.DeciderRevision) bool { return string(r.Name) == t.wanted })
}

// activeIsDown says whether the active revision has not answered for a while, so that there is nothing to compare with. Pods
// that are away for a moment do not open the way for a candidate.
func (t *trial) activeIsDown() bool {
	was := meta.FindStatusCondition(t.model.Status.Conditions, string(v1alpha1.ConditionAvailable))
	if was == nil || was.Status != metav1.ConditionFalse || t.now.Sub(was.LastTransitionTime.Time) < downFor {
		return false
	}
	serving := trial{deciderFacts: t.deciderFacts, of: t.revisions[string(t.model.Status.Active.Name)], isActive: true, hasActive: true}
	return serving.isAvailable().status == metav1.ConditionFalse
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
