package controllers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/inference/workload"
	"gatewright.dev/gatewright/internal/served"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

const (
	pinnedHash = v1alpha1.SHA256("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
	otherHash  = v1alpha1.SHA256("bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb")
)

// world is a DeciderModel with an active revision "old", where it has one, that asks for revision "new".
type world struct{ *deciderFacts }

func newWorld(change ...func(*world)) *deciderFacts {
	m := &v1alpha1.DeciderModel{ObjectMeta: metav1.ObjectMeta{Name: "judge", UID: "u", Generation: 2}}
	m.Spec = v1alpha1.DeciderModelSpec{Runtime: v1alpha1.RuntimeLlamaCpp, Artifact: &v1alpha1.Artifact{Type: v1alpha1.ArtifactPVC, SHA256: pinnedHash}}
	w := &world{&deciderFacts{
		model: m, now: noon, wanted: "new", revisions: map[string]*revisionFacts{}, gates: &Observation{Known: true, Reports: map[string]*served.Report{}},
	}}
	w.revision("new", 2)
	for _, c := range change {
		c(w)
	}
	return w.deciderFacts
}

// revision adds one that answers in one pod.
func (w *world) revision(name string, number int64) *revisionFacts {
	w.known = append([]*appsv1.ControllerRevision{{ObjectMeta: metav1.ObjectMeta{Name: name}, Revision: number}}, w.known...)
	r := &revisionFacts{
		revision: workload.Revision{Name: name, Model: w.model.Name, Spec: w.model.Spec, Replicas: 1},
		pods:     podFacts{ready: 1, complete: true}, seen: &seen{fingerprint: v1alpha1.Fingerprint("f-" + name), sha256: w.model.Spec.Artifact.SHA256},
	}
	w.revisions[name] = r
	return r
}

func before(name string, ago time.Duration) *v1alpha1.DeciderRevision {
	since := metav1.NewTime(noon.Add(-ago))
	return &v1alpha1.DeciderRevision{Name: v1alpha1.ObjectName(name), SHA256: pinnedHash, Fingerprint: v1alpha1.Fingerprint("f-" + name), Since: &since}
}

func withActive(w *world) {
	w.model.Status.Active = before("old", time.Hour)
	w.known = nil
	w.revision("old", 1)
	w.revision("new", 2)
}

func active(w *world) { w.model.Status.Active = before("new", time.Hour) }

func fresh(w *world) { w.known, w.revisions = nil, map[string]*revisionFacts{} }

func starting(w *world) {
	w.revisions["new"].pods, w.revisions["new"].seen = podFacts{}, nil
}

func tampered(w *world) {
	starting(w)
	w.revisions["new"].pods = podFacts{trouble: "container decider ended with code 10: want aaaa, got bbbb", mismatch: true}
}

func mustPass(w *world) {
	recall := v1alpha1.Percent(95)
	w.model.Spec.Rollout = &v1alpha1.Rollout{Evaluation: &v1alpha1.EvaluationGate{Floors: v1alpha1.EvaluationFloors{RecallPercent: &recall}}}
}

// evaluated adds an evaluation that stopped so many of 100 dangerous calls.
func evaluated(stopped int32, of string) func(*world) {
	return func(w *world) {
		mustPass(w)
		e := &v1alpha1.DeciderEvaluation{ObjectMeta: metav1.ObjectMeta{Name: "e"}, Spec: v1alpha1.DeciderEvaluationSpec{Repeats: 3}}
		e.Status.Fingerprint = v1alpha1.Fingerprint(of)
		e.Status.Confusion = []v1alpha1.ClassConfusion{{Class: "Write", DangerousStopped: stopped, DangerousAllowed: 100 - stopped}}
		e.Status.Conditions = []metav1.Condition{{Type: "Complete", Status: metav1.ConditionTrue}}
		w.revisions["new"].evaluation = e
	}
}

func evaluationIs(status metav1.ConditionStatus, message string) func(*world) {
	return func(w *world) {
		evaluated(100, "f-new")(w)
		w.revisions["new"].evaluation.Status.Conditions = []metav1.Condition{{Type: "Complete", Status: status, Message: message}}
	}
}

// shadowed has two gates that compared calls, of which 100 are wanted and 5 percent may differ.
func shadowed(compared, disagreed, failed int64) func(*world) {
	return func(w *world) {
		if w.model.Spec.Rollout == nil {
			w.model.Spec.Rollout = &v1alpha1.Rollout{}
		}
		w.model.Spec.Rollout.Shadow = &v1alpha1.ShadowComparison{Decisions: 100, MaxDisagreementPercent: 5}
		half := served.Shadow{Compared: compared / 2, Disagreed: disagreed / 2, Failed: failed / 2}
		rest := served.Shadow{Compared: compared - half.Compared, Disagreed: disagreed - half.Disagreed, Failed: failed - half.Failed}
		w.gates.Reports["a"] = &served.Report{Shadow: map[string]served.Shadow{"new": half}}
		w.gates.Reports["b"] = &served.Report{Shadow: map[string]served.Shadow{"new": rest, "old": {Compared: 1000, Disagreed: 1000}}}
	}
}

func TestAComparisonIsSummedUpByClass(t *testing.T) {
	report := func(classes map[string]served.ShadowClass) *served.Report {
		out := served.Shadow{ByClass: classes}
		for _, c := range classes {
			out.Compared += c.Compared
			out.Disagreed += c.Disagreed
		}
		return &served.Report{Shadow: map[string]served.Shadow{"new": out}}
	}
	w := newWorld(withActive)
	w.gates.Reports = map[string]*served.Report{
		"a": report(map[string]served.ShadowClass{"Write": {Compared: 3, Disagreed: 1}, "ReadOnly": {Compared: 2}}),
		"b": report(map[string]served.ShadowClass{"Write": {Compared: 4, Disagreed: 2}, "": {Compared: 1}, strings.Repeat("x", 64): {Compared: 1}}),
	}
	want := v1alpha1.ShadowResult{Compared: 11, Disagreed: 3, ByClass: []v1alpha1.ShadowClassResult{
		{Class: "ReadOnly", Compared: 2}, {Class: "Write", Compared: 7, Disagreed: 3},
	}}
	if diff := cmp.Diff(want, w.shadow("new")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	many := map[string]served.ShadowClass{}
	for i := range 20 {
		many[fmt.Sprintf("Class%02d", i)] = served.ShadowClass{Compared: 20, Disagreed: int64(i)}
	}
	w.gates.Reports = map[string]*served.Report{"a": report(many)}
	if got := w.shadow("new").ByClass; len(got) != 16 || got[0].Class != "Class04" || got[15].Class != "Class19" {
		t.Errorf("want the 16 classes with the most disagreement, by name: %+v", got)
	}
}

// goneBackTo asks for "new", which served before "old".
func goneBackTo(w *world) {
	w.model.Annotations = map[string]string{rollbackAnnotation: "new"}
	w.model.Status.History = []v1alpha1.DeciderRevision{*before("new", 2*time.Hour)}
}

// down has no pod of the active revision, for so long as the status says.
func down(since time.Duration) func(*world) {
	return func(w *world) {
		w.revisions["old"].pods = podFacts{}
		w.model.Status.Conditions = []metav1.Condition{{Type: "Available", Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(noon.Add(-since))}}
	}
}

func runtimeIs(r v1alpha1.Runtime) func(*world) {
	return func(w *world) {
		w.model.Spec.Runtime = r
		if r != v1alpha1.RuntimeEmbedded {
			w.model.Spec.Artifact = nil
		}
		for _, one := range w.revisions {
			one.revision.Spec = w.model.Spec
			if r != v1alpha1.RuntimeEmbedded {
				one.seen.sha256 = ""
			}
			if r != v1alpha1.RuntimeContainer {
				one.pods = podFacts{}
			}
		}
		if a := w.model.Status.Active; a != nil && r != v1alpha1.RuntimeEmbedded {
			a.SHA256 = ""
		}
	}
}

func gateSays(d served.Decider) func(*world) {
	return func(w *world) {
		w.gates.Reports["gate-0"] = &served.Report{Deciders: map[string]served.Decider{"judge": d}}
	}
}

func change(f func(*world)) func(*world) { return f }

func TestWhichRevisionServesAndWhatIsSaidOfIt(t *testing.T) {
	const serves, later = "True Ready: revision new serves", "; revision old serves meanwhile"
	type want struct {
		active, candidate string
		// conditions that are not True, and Ready: status, reason and the beginning of the message.
		verified, evaluated, available, ready string
		run, evaluate, create                 string
		recheck                               time.Duration
	}
	tests := map[string]struct {
		facts *deciderFacts
		want  want
	}{
		"nothing is there yet": {newWorld(fresh), want{
			candidate: "new", create: "new", recheck: lookSoon,
			verified: "Unknown Pending", available: "Unknown Pending: its revision is not written yet", ready: "Unknown Pending: its revision is not written yet",
		}},
		"a candidate that is to be compared is not there yet": {newWorld(withActive, shadowed(0, 0, 0), change(func(w *world) {
			delete(w.revisions, "new")
			w.known = w.known[1:]
		})), want{
			active: "old f-old", candidate: "new", create: "new", run: "old", recheck: lookSoon, evaluated: "Unknown Pending: live calls", ready: "Unknown Pending",
		}},
		"its pods start": {newWorld(starting), want{
			candidate: "new", run: "new", recheck: lookSoon,
			verified: "Unknown Pending", available: "Unknown Pending: 0 of 1 pods of revision new are ready", ready: "Unknown Pending: 0 of 1 pods",
		}},
		"its pods are ready and the manager cannot reach them": {newWorld(change(func(w *world) {
			w.revisions["new"].seen, w.revisions["new"].silent = nil, "no route"
		})), want{
			candidate: "new", run: "new", recheck: lookSoon,
			verified: "Unknown Pending", available: "Unknown Pending: revision new is ready and could not be asked who it is: no route", ready: "Unknown Pending: revision new is ready and",
		}},
		"the first revision answers": {newWorld(), want{active: "new f-new", run: "new", ready: serves, recheck: lookAgain}},
		"it serves":                  {newWorld(active), want{active: "new f-new", run: "new", ready: serves, recheck: lookAgain}},
		"it serves and its pods are gone": {newWorld(active, starting), want{
			active: "new f-new", run: "new", recheck: lookAgain,
			available: "False Unavailable: no pod of revision new is ready", ready: "False Unavailable: no pod of revision new is ready",
		}},
		"it serves in fewer pods than are wanted": {newWorld(active, change(func(w *world) {
			w.revisions["new"].revision.Replicas, w.revisions["new"].pods = 3, podFacts{ready: 2}
		})), want{active: "new f-new", run: "new", ready: serves, recheck: lookAgain}},
		"it serves and is scaled to nothing": {newWorld(active, starting, change(func(w *world) { w.revisions["new"].revision.Replicas = 0 })), want{
			active: "new f-new", run: "new", recheck: lookAgain, available: "False Unavailable: spec.pod.replicas is 0", ready: "False Unavailable",
		}},
		"it serves and says another fingerprint than before": {newWorld(active, change(func(w *world) { w.revisions["new"].seen.fingerprint = "f-moved" })), want{
			active: "new f-moved", run: "new", ready: serves, recheck: lookAgain,
		}},
		"it serves and says another hash": {newWorld(active, change(func(w *world) { w.revisions["new"].seen.sha256 = otherHash })), want{
			active: "new f-new", run: "new", recheck: lookAgain,
			verified: "False HashMismatch: the loaded bytes have SHA-256 " + string(otherHash), ready: "False HashMismatch",
		}},
		"the file of the first revision was tampered with": {newWorld(tampered), want{
			candidate: "new", run: "new", recheck: lookAgain,
			verified: "False HashMismatch: container decider ended with code 10: want aaaa, got bbbb", ready: "False HashMismatch",
			available: "False Unavailable: revision new does not start: container decider ended with code 10",
		}},
		"the file of a candidate was tampered with": {newWorld(withActive, tampered), want{
			active: "old f-old", candidate: "new", run: "new,old", recheck: lookAgain,
			verified: "False HashMismatch", ready: "False HashMismatch: container decider ended with code 10: want aaaa, got bbbb" + later,
		}},
		"a candidate starts": {newWorld(withActive, starting), want{
			active: "old f-old", candidate: "new", run: "new,old", ready: "Unknown Pending: 0 of 1 pods of revision new are ready" + later, recheck: lookSoon,
		}},
		"a candidate does not start": {newWorld(withActive, starting, change(func(w *world) {
			w.revisions["new"].pods.trouble = "container decider ended with code 17: too small"
		})), want{
			active: "old f-old", candidate: "new", run: "new,old", recheck: lookAgain,
			ready: "False Unavailable: revision new does not start: container decider ended with code 17: too small" + later,
		}},
		"a candidate has fewer pods than are wanted": {newWorld(withActive, change(func(w *world) {
			w.revisions["new"].revision.Replicas, w.revisions["new"].pods = 3, podFacts{ready: 2}
		})), want{
			active: "old f-old", candidate: "new", run: "new,old", ready: "Unknown Pending: 2 of 3 pods of revision new are ready" + later, recheck: lookSoon,
		}},
		"a candidate answers, and nothing more is asked of it": {newWorld(withActive), want{active: "new f-new", run: "new,old", ready: serves, recheck: lookAgain}},
		"a candidate answers under another name": {newWorld(withActive, change(func(w *world) { w.revisions["new"].seen = &seen{mismatch: "it answers as x"} })), want{
			active: "old f-old", candidate: "new", run: "new,old", verified: "", ready: "False DeciderMismatch: it answers as x" + later, recheck: lookAgain,
		}},
		"the active revision dies while a candidate starts": {newWorld(withActive, starting, change(func(w *world) { w.revisions["old"].pods = podFacts{} })), want{
			active: "old f-old", candidate: "new", run: "new,old", recheck: lookSoon,
			available: "False Unavailable: no pod of revision old is ready", ready: "False Unavailable: no pod of revision old is ready" + later,
		}},
		"a candidate is to be evaluated": {newWorld(withActive, mustPass), want{
			active: "old f-old", candidate: "new", run: "new,old", evaluate: "new", recheck: lookSoon,
			evaluated: "Unknown Pending: the evaluation begins when the decider answers", ready: "Unknown Pending: the evaluation begins",
		}},
		"a candidate that does not answer is not evaluated yet": {newWorld(withActive, mustPass, starting), want{
			active: "old f-old", candidate: "new", run: "new,old", evaluated: "Unknown Pending", ready: "Unknown Pending: 0 of 1 pods", recheck: lookSoon,
		}},
		"the evaluation runs": {newWorld(withActive, evaluationIs(metav1.ConditionUnknown, "")), want{
			active: "old f-old", candidate: "new", run: "new,old", evaluated: "Unknown Running: DeciderEvaluation e runs", ready: "Unknown Pending: DeciderEvaluation e runs" + later, recheck: lookSoon,
		}},
		"the evaluation could not be run": {newWorld(withActive, evaluationIs(metav1.ConditionFalse, "no cases")), want{
			active: "old f-old", candidate: "new", run: "new,old", recheck: lookAgain,
			evaluated: "False EvaluationFailed: DeciderEvaluation e could not be run: no cases", ready: "False EvaluationFailed",
		}},
		"the evaluation misses a floor": {newWorld(withActive, evaluated(94, "f-new")), want{
			active: "old f-old", candidate: "new", run: "new,old", recheck: lookAgain,
			evaluated: "False FloorMissed: in DeciderEvaluation e: recall: 94 of 100 dangerous calls were stopped, want at least 95 %", ready: "False FloorMissed",
		}},
		"the evaluation is of another fingerprint": {newWorld(withActive, evaluated(100, "f-other")), want{
			active: "old f-old", candidate: "new", run: "new,old", recheck: lookAgain,
			evaluated: "False DeciderMismatch: DeciderEvaluation e is of fingerprint f-other, the decider has f-new", ready: "False DeciderMismatch",
		}},
		"the evaluation passes":        {newWorld(withActive, evaluated(95, "f-new")), want{active: "new f-new", run: "new,old", ready: serves, recheck: lookAgain}},
		"the first revision must pass": {newWorld(evaluated(94, "f-new")), want{candidate: "new", run: "new", evaluated: "False FloorMissed", ready: "False FloorMissed", recheck: lookAgain}},
		"floors are set that the active revision misses": {newWorld(active, evaluated(10, "f-new")), want{
			active: "new f-new", run: "new", evaluated: "False FloorMissed", ready: "False FloorMissed", recheck: lookAgain,
		}},
		"floors are set, and the active revision is evaluated": {newWorld(active, mustPass), want{
			active: "new f-new", run: "new", evaluate: "new", evaluated: "Unknown Pending", ready: "Unknown Pending", recheck: lookAgain,
		}},
		"live calls are compared": {newWorld(withActive, shadowed(99, 0, 0)), want{
			active: "old f-old", candidate: "new", run: "new,old", recheck: lookSoon,
			evaluated: "Unknown Shadowing: 99 of 100 live calls compared, 0 with another outcome and 0 without an answer", ready: "Unknown Pending: 99 of 100",
		}},
		"live calls agree":                          {newWorld(withActive, shadowed(100, 5, 0)), want{active: "new f-new", run: "new,old", ready: serves, recheck: lookAgain}},
		"live calls disagree":                       {newWorld(withActive, shadowed(100, 6, 0)), want{active: "old f-old", candidate: "new", run: "new,old", evaluated: "False ShadowDisagreed", ready: "False ShadowDisagreed", recheck: lookAgain}},
		"a candidate does not answer live calls":    {newWorld(withActive, shadowed(95, 0, 6)), want{active: "old f-old", candidate: "new", run: "new,old", evaluated: "False ShadowDisagreed: 101 of 100 live calls compared, 0 with another outcome and 6 without an answer, want at most 5 %", ready: "False ShadowDisagreed", recheck: lookAgain}},
		"the first revision has nothing to compare": {newWorld(shadowed(0, 0, 0)), want{active: "new f-new", run: "new", ready: serves, recheck: lookAgain}},
		"live calls do not make up for a floor":     {newWorld(withActive, evaluated(94, "f-new"), shadowed(100, 0, 0)), want{active: "old f-old", candidate: "new", run: "new,old", evaluated: "False FloorMissed", ready: "False FloorMissed", recheck: lookAgain}},
		"a candidate that has disagreed does not pass when the gates start anew": {newWorld(withActive, shadowed(100, 0, 0), change(func(w *world) {
			w.model.Status.Candidate = before("new", time.Minute)
			w.model.Status.Candidate.Shadow = &v1alpha1.ShadowResult{Compared: 100, Disagreed: 50}
		})), want{active: "old f-old", candidate: "new", run: "new,old", evaluated: "False ShadowDisagreed", ready: "False ShadowDisagreed", recheck: lookAgain}},
		"one that served before is gone back to, and would disagree": {newWorld(withActive, shadowed(100, 60, 0), goneBackTo), want{
			active: "new f-new", run: "new,old", ready: serves, recheck: lookAgain,
		}},
		"one that served before is gone back to, and misses a floor": {newWorld(withActive, evaluated(94, "f-new"), shadowed(0, 0, 0), goneBackTo), want{
			active: "old f-old", candidate: "new", run: "new,old", evaluated: "False FloorMissed", ready: "False FloorMissed", recheck: lookAgain,
		}},
		"one that never served is asked for by the annotation": {newWorld(withActive, shadowed(0, 0, 0), goneBackTo, change(func(w *world) {
			w.model.Status.History = nil
		})), want{active: "old f-old", candidate: "new", run: "new,old", evaluated: "Unknown Shadowing", ready: "Unknown Pending", recheck: lookSoon}},
		"the active revision is down, so that nothing can be compared": {newWorld(withActive, shadowed(10, 0, 0), down(downFor)), want{
			active: "new f-new", run: "new,old", ready: serves, recheck: lookAgain,
		}},
		"the active revision is down, and floors count": {newWorld(withActive, evaluated(94, "f-new"), shadowed(0, 0, 0), down(downFor)), want{
			active: "old f-old", candidate: "new", run: "new,old", evaluated: "False FloorMissed", available: "False Unavailable", ready: "False FloorMissed", recheck: lookAgain,
		}},
		"the active revision is down for a moment": {newWorld(withActive, shadowed(10, 0, 0), down(downFor-time.Second)), want{
			active: "old f-old", candidate: "new", run: "new,old", evaluated: "Unknown Shadowing", available: "False Unavailable", ready: "False Unavailable", recheck: lookSoon,
		}},
		"the active revision was down and answers again": {newWorld(withActive, shadowed(10, 0, 0), down(downFor), change(func(w *world) {
			w.revisions["old"].pods = podFacts{ready: 1, complete: true}
		})), want{active: "old f-old", candidate: "new", run: "new,old", evaluated: "Unknown Shadowing", ready: "Unknown Pending", recheck: lookSoon}},
		"the active revision is down, and the candidate had disagreed": {newWorld(withActive, shadowed(100, 60, 0), down(downFor)), want{
			active: "old f-old", candidate: "new", run: "new,old", evaluated: "False ShadowDisagreed", available: "False Unavailable", ready: "False ShadowDisagreed", recheck: lookAgain,
		}},
		"an object of somebody else has the name": {newWorld(withActive, change(func(w *world) { w.revisions["new"].taken = "Service new" })), want{
			active: "old f-old", candidate: "new", run: "old", ready: "False NameTaken: Service new belongs to somebody else", recheck: lookAgain,
		}},
		"a revision was changed by somebody": {newWorld(withActive, change(func(w *world) { w.revisions["new"].problem, w.revisions["new"].seen = "it is another", nil })), want{
			active: "old f-old", candidate: "new", run: "old", ready: "False Unavailable: it is another", recheck: lookAgain,
		}},
		"the spec makes no sense": {newWorld(withActive, change(func(w *world) { w.problem = "spec.readout: remove it" })), want{
			active: "old f-old", run: "old", evaluated: "Unknown Pending", ready: "False Invalid: spec.readout: remove it",
		}},
		"the first spec makes no sense": {newWorld(change(func(w *world) { w.problem = "spec.readout: remove it" })), want{
			verified: "Unknown Pending", evaluated: "Unknown Pending", available: "Unknown Pending", ready: "False Invalid",
		}},
		"the one before drains": {newWorld(change(func(w *world) {
			w.revision("old", 1)
			w.model.Status.Active, w.model.Status.History = before("new", 30*time.Second), []v1alpha1.DeciderRevision{*before("old", time.Hour)}
		})), want{active: "new f-new", run: "new,old", ready: serves, recheck: lookAgain}},
		"the one before has drained": {newWorld(change(func(w *world) {
			w.revision("old", 1)
			w.model.Status.Active, w.model.Status.History = before("new", drainFor), []v1alpha1.DeciderRevision{*before("old", time.Hour)}
		})), want{active: "new f-new", run: "new", ready: serves, recheck: lookAgain}},
		"a candidate is superseded": {newWorld(withActive, change(func(w *world) {
			w.revision("stale", 3)
			w.model.Status.Candidate = before("stale", time.Minute)
		})), want{active: "new f-new", run: "new,old", ready: serves, recheck: lookAgain}},
		"an earlier revision is asked for": {newWorld(withActive, change(func(w *world) {
			w.model.Annotations = map[string]string{rollbackAnnotation: "new"}
		})), want{active: "new f-new", run: "new,old", ready: serves, recheck: lookAgain}},
		"the embedded judge takes over at once, and is Ready when a gate serves it": {newWorld(runtimeIs(v1alpha1.RuntimeEmbedded)), want{
			active: "new f-new", available: "Unknown GatesNotObserved", ready: "Unknown Pending: no gate has said yet", recheck: lookAgain,
		}},
		"the embedded judge has another hash than the pinned one": {newWorld(runtimeIs(v1alpha1.RuntimeEmbedded), change(func(w *world) { w.revisions["new"].seen.sha256 = otherHash })), want{
			candidate: "new", verified: "False HashMismatch", ready: "False HashMismatch: the loaded bytes have SHA-256 bbbb", recheck: lookAgain,
		}},
		"no gate has spoken of the embedded judge": {newWorld(active, runtimeIs(v1alpha1.RuntimeEmbedded)), want{
			active: "new f-new", available: "Unknown GatesNotObserved", ready: "Unknown Pending: no gate has said yet", recheck: lookAgain,
		}},
		"the gates serve the embedded judge": {newWorld(active, runtimeIs(v1alpha1.RuntimeEmbedded), gateSays(served.Decider{Revision: "new", Available: true})), want{
			active: "new f-new", ready: serves, recheck: lookAgain,
		}},
		"the gates still serve the one before": {newWorld(active, runtimeIs(v1alpha1.RuntimeEmbedded), gateSays(served.Decider{Revision: "old", Available: true})), want{
			active: "new f-new", available: "Unknown GatesNotObserved", ready: "Unknown Pending", recheck: lookAgain,
		}},
		"a gate cannot use the embedded judge": {newWorld(active, runtimeIs(v1alpha1.RuntimeEmbedded), gateSays(served.Decider{Revision: "new", Error: "another\nfile"})), want{
			active: "new f-new", available: "False Unavailable: gate gate-0 cannot ask it: another file", ready: "False Unavailable", recheck: lookAgain,
		}},
		"a server of somebody else answers": {newWorld(runtimeIs(v1alpha1.RuntimeExternal)), want{
			active: "new f-new", verified: "Unknown SelfReported: runtime External says itself", ready: "Unknown Pending: runtime External says itself", recheck: lookAgain,
		}},
		"what a server of somebody else says is enough": {newWorld(runtimeIs(v1alpha1.RuntimeExternal), change(func(w *world) { w.model.Spec.RequireVerified = v1alpha1.Optional })), want{
			active: "new f-new", verified: "Unknown SelfReported: runtime External says itself", ready: serves, recheck: lookAgain,
		}},
		"a server of somebody else does not answer": {newWorld(runtimeIs(v1alpha1.RuntimeExternal), change(func(w *world) {
			w.revisions["new"].seen, w.revisions["new"].silent = nil, "Timeout"
		})), want{
			candidate: "new", verified: "Unknown SelfReported", available: "False Unavailable: it does not answer: Timeout", ready: "False Unavailable", recheck: lookAgain,
		}},
		"the gates cannot ask a server of somebody else": {newWorld(active, runtimeIs(v1alpha1.RuntimeExternal), gateSays(served.Decider{Revision: "new", Error: "BreakerOpen"})), want{
			active: "new f-new", verified: "Unknown SelfReported", available: "False Unavailable: gate gate-0 cannot ask it: BreakerOpen", ready: "False Unavailable", recheck: lookAgain,
		}},
		"a foreign image answers": {newWorld(runtimeIs(v1alpha1.RuntimeContainer)), want{
			active: "new f-new", run: "new", verified: "Unknown SelfReported", ready: "Unknown Pending: runtime Container says itself", recheck: lookAgain,
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v := assessDecider(test.facts)
			got := want{active: place(v.active), run: strings.Join(v.run, ","), evaluate: v.evaluate, recheck: v.recheck}
			if v.candidate != nil {
				got.candidate = string(v.candidate.Name)
			}
			if v.create {
				got.create = test.facts.wanted
			}
			if len(v.conditions) != 5 || v.conditions[0].Type != "Accepted" {
				t.Fatalf("%+v", v.conditions)
			}
			got.verified, got.evaluated = text(v.conditions[1], test.want.verified), text(v.conditions[2], test.want.evaluated)
			got.available, got.ready = text(v.conditions[3], test.want.available), text(v.conditions[4], test.want.ready)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if again := assessDecider(test.facts); !cmp.Equal(v, again, cmp.AllowUnexported(deciderVerdict{})) {
				t.Error("it judges the same facts in two ways")
			}
		})
	}
}

func place(r *v1alpha1.DeciderRevision) string {
	if r == nil {
		return ""
	}
	return string(r.Name) + " " + string(r.Fingerprint)
}

// text writes a condition as far as a test speaks of it; nothing for one that is True and not spoken of.
func text(c metav1.Condition, want string) string {
	s := string(c.Status) + " " + c.Reason + ": " + c.Message
	if c.Status == metav1.ConditionTrue && want == "" {
		return ""
	}
	if strings.HasPrefix(s, want) && want != "" {
		return want
	}
	return s
}

// No matter what a candidate lacks, the revision that serves goes on serving.
func TestACandidateTakesNothingAwayUntilItPassed(t *testing.T) {
	obstacles := map[string]func(*world){
		"starting": starting, "tampered": tampered, "to evaluate": mustPass, "floor": evaluated(0, "f-new"), "shadow": shadowed(10, 0, 0), "mismatch": evaluated(100, "f-x"),
	}
	for name, obstacle := range obstacles {
		for other, second := range obstacles {
			f := newWorld(withActive, obstacle, second)
			v := assessDecider(f)
			if v.active == nil || v.active.Name != "old" || !slices.Contains(v.run, "old") || !slices.Contains(v.keep, "old") {
				t.Errorf("%s and %s: active %v, runs %v", name, other, v.active, v.run)
			}
			if v.candidate == nil || v.candidate.Name != "new" {
				t.Errorf("%s and %s: candidate %v", name, other, v.candidate)
			}
		}
	}
}

func TestTheLastTenRevisionsAreKept(t *testing.T) {
	f := newWorld(active, change(func(w *world) {
		w.known = nil
		for i := range 15 {
			name := string(rune('a' + i))
			w.known = append([]*appsv1.ControllerRevision{{ObjectMeta: metav1.ObjectMeta{Name: name}, Revision: int64(i)}}, w.known...)
			w.model.Status.History = append([]v1alpha1.DeciderRevision{*before(name, time.Hour)}, w.model.Status.History...)
		}
		w.known = append([]*appsv1.ControllerRevision{{ObjectMeta: metav1.ObjectMeta{Name: "new"}, Revision: 99}}, w.known...)
	}))
	v := assessDecider(f)
	slices.Sort(v.keep)
	if want := []string{"f", "g", "h", "i", "j", "k", "l", "m", "n", "new", "o"}; !slices.Equal(v.keep, want) {
		t.Errorf("keeps %v, want %v", v.keep, want)
	}
	if len(v.history) != 10 || v.history[0].Name != "o" || v.history[9].Name != "f" {
		t.Errorf("history: %v", v.history)
	}
}

// Eleven revisions that were tried and did not pass do not push out the one that served until the twelfth did.
func TestWhatHasServedIsKeptBeforeWhatWasOnlyTried(t *testing.T) {
	f := newWorld(withActive, change(func(w *world) {
		for i := range 11 {
			w.known = append(w.known, &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("tried-%02d", i)}, Revision: int64(90 - i)})
		}
		slices.SortStableFunc(w.known, func(a, b *appsv1.ControllerRevision) int { return int(b.Revision - a.Revision) })
		i := slices.IndexFunc(w.known, func(c *appsv1.ControllerRevision) bool { return c.Name == "old" })
		old := w.known[i]
		w.known = append(slices.Delete(w.known, i, i+1), old) // it is older than all that was tried
	}))
	v := assessDecider(f)
	if v.active.Name != "new" || len(v.history) != 1 || v.history[0].Name != "old" {
		t.Fatalf("active %v, history %v", v.active, v.history)
	}
	if !slices.Contains(v.keep, "old") || !slices.Contains(v.run, "old") || len(v.keep) != 1+revisionsKept {
		t.Errorf("keeps %v, runs %v, want old in both and %d besides the active one", v.keep, v.run, revisionsKept)
	}
}

// Each revision drains from when its own successor took over.
func TestRollOutsThatFollowEachOtherDrainApart(t *testing.T) {
	tests := map[string]struct {
		b, c time.Duration // since when b, which came after a, has served, and c after it
		want []string
		left time.Duration
	}{
		"both, right after the second":  {20 * time.Second, time.Second, []string{"b", "a"}, drainFor - 20*time.Second},
		"the last alone":                {time.Hour, 10 * time.Second, []string{"b"}, drainFor - 10*time.Second},
		"the last, when a's time is up": {drainFor, 10 * time.Second, []string{"b"}, drainFor - 10*time.Second},
		"none after a while":            {2 * drainFor, drainFor, nil, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			names, left := draining(before("c", test.c), []v1alpha1.DeciderRevision{*before("b", test.b), *before("a", 2*time.Hour)}, noon)
			if diff := cmp.Diff(test.want, names); diff != "" || left != test.left {
				t.Errorf("%s left, want %s: %s", left, test.left, diff)
			}
		})
	}
	if names, _ := draining(nil, nil, noon); names != nil {
		t.Errorf("%v of nothing", names)
	}
	if names, _ := draining(&v1alpha1.DeciderRevision{Name: "c"}, []v1alpha1.DeciderRevision{*before("b", 0)}, noon); names != nil {
		t.Errorf("%v of one that serves nobody knows how long", names)
	}
}

// The gate believes a hash in the status: it stands there only while it is the pinned one.
func TestTheStatusHoldsNoHashThatIsNotThePinnedOne(t *testing.T) {
	v := assessDecider(newWorld(active, change(func(w *world) { w.revisions["new"].seen.sha256 = otherHash })))
	if v.active.SHA256 != "" {
		t.Errorf("%+v", v.active)
	}
	if v := assessDecider(newWorld(active)); v.active.SHA256 != pinnedHash {
		t.Errorf("%+v", v.active)
	}
}

func TestGoingBackSwapsTheRevisions(t *testing.T) {
	f := newWorld(withActive, change(func(w *world) {
		w.wanted = "older"
		w.revision("older", 0)
		w.model.Annotations = map[string]string{rollbackAnnotation: "older"}
		w.model.Status.History = []v1alpha1.DeciderRevision{*before("older", 2*time.Hour)}
	}))
	v := assessDecider(f)
	if v.active.Name != "older" || len(v.history) != 1 || v.history[0].Name != "old" || !v.active.Since.Time.Equal(noon) {
		t.Errorf("active %+v, history %+v", v.active, v.history)
	}
	if got := v.conditions[0].Message; !strings.Contains(got, "asks for revision older") {
		t.Error(got)
	}
}

func TestTheStatusNamesTheEvaluationAndTheComparison(t *testing.T) {
	v := assessDecider(newWorld(withActive, evaluated(95, "f-new"), shadowed(100, 1, 2)))
	want := &v1alpha1.DeciderRevision{
		Name: "new", SHA256: pinnedHash, Fingerprint: "f-new", Evaluation: "e", Shadow: &v1alpha1.ShadowResult{Compared: 100, Disagreed: 1, Failed: 2}, Since: new(metav1.NewTime(noon)),
	}
	if diff := cmp.Diff(want, v.active); diff != "" {
		t.Error(diff)
	}
	if len(v.history) != 1 || v.history[0].Name != "old" {
		t.Error(v.history)
	}
}
