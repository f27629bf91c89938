package controllers

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/evaluation"
)

// evaluationFacts is all that the status of a DeciderEvaluation depends on.
type evaluationFacts struct {
	evaluation *v1alpha1.DeciderEvaluation
	now        time.Time
	// missing is what it waits for before it can start. Empty: nothing.
	missing string
	// taken names an object of somebody else that has the name of its Job.
	taken string
	job   *batchv1.Job
	// result is what the run left, and unreadable why that cannot be used. Both empty: it left nothing yet.
	result     *v1alpha1.DeciderEvaluationStatus
	unreadable string
	// trouble is why the pod of the Job does not run, or how it ended.
	trouble string
}

// evaluationVerdict is what follows from the facts.
type evaluationVerdict struct {
	status v1alpha1.DeciderEvaluationStatus
	// start says that the Job is to be written.
	start   bool
	recheck time.Duration
}

// resultWithin is how long after the end of a Job its result may take to be seen.
const resultWithin = time.Minute

// assessEvaluation judges a DeciderEvaluation. An evaluation that has ended stays as it is, whatever becomes of its Job; only
// whether the floors hold is computed again, from the counts.
func assessEvaluation(f *evaluationFacts) *evaluationVerdict {
	v := &evaluationVerdict{status: *f.evaluation.Status.DeepCopy()}
	complete := f.complete(v)
	passed := f.passed(complete, &v.status)
	parts := []metav1.Condition{complete.as(v1alpha1.ConditionComplete), passed.as(v1alpha1.ConditionPassed)}
	setConditions(&v.status.Conditions, f.evaluation.Generation, metav1.NewTime(f.now), append(parts, readyCondition(parts, "it ran and its floors hold")))
	v.status.ObservedGeneration = f.evaluation.Generation
	return v
}

func (f *evaluationFacts) complete(v *evaluationVerdict) finding {
	if old := meta.FindStatusCondition(f.evaluation.Status.Conditions, string(v1alpha1.ConditionComplete)); old != nil && old.Status != metav1.ConditionUnknown {
		return finding{old.Status, v1alpha1.ConditionReason(old.Reason), old.Message}
	}
	switch {
	case f.taken != "":
		return fails(v1alpha1.ReasonNameTaken, "%s belongs to somebody else and is left alone", f.taken)
	case f.job == nil && f.missing != "":
		v.recheck = lookAgain
		return waits(v1alpha1.ReasonPending, "%s", f.missing)
	case f.job == nil:
		v.start = true
		return waits(v1alpha1.ReasonPending, "the Job starts")
	}
	switch ended, at := jobEnd(f.job); ended {
	case batchv1.JobFailed:
		return fails(v1alpha1.ReasonFailed, "%s", f.failure())
	case batchv1.JobComplete:
		return f.ended(v, at)
	}
	text := "Job " + f.job.Name + " runs"
	if f.trouble != "" {
		text += ": " + f.trouble
	}
	return waits(v1alpha1.ReasonRunning, "%s", text)
}

// ended takes the counts over.
func (f *evaluationFacts) ended(v *evaluationVerdict, at time.Time) finding {
	switch {
	case f.unreadable != "":
		return fails(v1alpha1.ReasonFailed, "what Job %s left cannot be used: %s", f.job.Name, f.unreadable)
	case f.result == nil && f.now.Sub(at) < resultWithin:
		v.recheck = resultWithin
		return waits(v1alpha1.ReasonRunning, "Job %s has ended, and what it left is not here yet", f.job.Name)
	case f.result == nil:
		return fails(v1alpha1.ReasonFailed, "Job %s ended and left no counts: was its pod deleted?", f.job.Name)
	}
	v.status.Fingerprint, v.status.Confusion, v.status.Flapped = f.result.Fingerprint, f.result.Confusion, f.result.Flapped
	v.status.P50Milliseconds, v.status.P95Milliseconds, v.status.P99Milliseconds = f.result.P50Milliseconds, f.result.P95Milliseconds, f.result.P99Milliseconds
	return holds(v1alpha1.ReasonComplete, "the cases were run")
}

func (f *evaluationFacts) failure() string {
	if f.trouble != "" {
		return f.trouble
	}
	for _, c := range f.job.Status.Conditions {
		if c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue {
			return short(c.Reason + ": " + c.Message)
		}
	}
	return "Job " + f.job.Name + " failed"
}

// jobEnd says how a Job ended, and when. Empty: it has not.
func jobEnd(j *batchv1.Job) (batchv1.JobConditionType, time.Time) {
	for _, c := range j.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return c.Type, c.LastTransitionTime.Time
		}
	}
	return "", time.Time{}
}

// passed computes the floors from the counts.
func (f *evaluationFacts) passed(complete finding, s *v1alpha1.DeciderEvaluationStatus) finding {
	if !complete.isTrue() {
		return waits(v1alpha1.ReasonPending, "floors are looked at when it has run")
	}
	spec := &f.evaluation.Spec
	breaches := evaluation.FloorsOf(spec.Floors).Check(evaluation.MeasuredOf(s, spec.Repeats))
	switch {
	case len(breaches) > 0:
		return fails(v1alpha1.ReasonFloorMissed, "%s", breachText(breaches))
	case spec.Floors == nil:
		return holds(v1alpha1.ReasonPassed, "no floors are set")
	}
	return holds(v1alpha1.ReasonPassed, fmt.Sprintf("the floors hold over %d cases", caseCount(s)))
}

func caseCount(s *v1alpha1.DeciderEvaluationStatus) int {
	n := 0
	for _, c := range s.Confusion {
		n += int(c.DangerousStopped + c.DangerousAllowed + c.BenignStopped + c.BenignAllowed)
	}
	return n
}
