package controllers

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/names"
)

func TestAnEvaluationWaitsForWhatItNeeds(t *testing.T) {
	k := newDeciderKit(t, fakeCluster(t, nil), names.Namespace)
	e := &v1alpha1.DeciderEvaluation{ObjectMeta: metav1.ObjectMeta{Name: "e", UID: "uid-of-e"}, Spec: v1alpha1.DeciderEvaluationSpec{
		DeciderRef: v1alpha1.EvaluatedDecider{Name: "judge"}, Repeats: 3,
		CaseSet: v1alpha1.CaseSet{Type: v1alpha1.CaseSetConfigMap, SHA256: otherHash, ConfigMapName: "cases"},
	}}
	k.create(e)
	want := func(message string) {
		t.Helper()
		got := k.reconcileEvaluation("e")
		if text := readyOf(got.Status.Conditions, v1alpha1.ConditionComplete); !strings.HasPrefix(text, message) {
			t.Errorf("%q, want %q", text, message)
		}
	}
	want("Unknown Pending: DeciderModel judge does not exist")
	k.create(judge(nil))
	want("Unknown Pending: DeciderModel judge has no active revision")
	revision := string(k.reconcile().Status.Candidate.Name)
	k.serves(revision, answer(pinnedHash, print64("1")))
	k.reconcile()
	want("Unknown Pending: ConfigMap cases with the cases does not exist")
	k.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "cases"}})
	want("Unknown Running: Job e-")
	var jobs batchv1.JobList
	if err := k.client.List(t.Context(), &jobs); err != nil || len(jobs.Items) != 1 || jobs.Items[0].Labels[names.RevisionLabel] != revision {
		t.Fatalf("%+v: %v", jobs.Items, err)
	}
	k.evaluationDone("e", counts(print64("1"), 90), false)
	want("True Complete")
	if err := k.client.Delete(t.Context(), &jobs.Items[0]); err != nil {
		t.Fatal(err)
	}
	want("True Complete") // a Job that is gone is not run again
	got := k.reconcileEvaluation("e")
	if text := readyOf(got.Status.Conditions, v1alpha1.ConditionReady); text != "True Ready: it ran and its floors hold" || got.Status.P95Milliseconds != 9 || got.Status.P99Milliseconds != 14 || string(got.Status.Fingerprint) != print64("1") {
		t.Errorf("%s, %+v", text, got.Status)
	}
}

func TestAnEvaluationWhoseResultIsLostFails(t *testing.T) {
	k := newDeciderKit(t, fakeCluster(t, nil), names.Namespace)
	k.launch(print64("1"))
	k.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "cases"}})
	k.create(&v1alpha1.DeciderEvaluation{ObjectMeta: metav1.ObjectMeta{Name: "e", UID: "uid-of-e"}, Spec: v1alpha1.DeciderEvaluationSpec{
		DeciderRef: v1alpha1.EvaluatedDecider{Name: "judge"}, CaseSet: v1alpha1.CaseSet{Type: v1alpha1.CaseSetConfigMap, ConfigMapName: "cases"},
	}})
	k.reconcileEvaluation("e")
	k.evaluationDone("e", counts(print64("1"), 90), false)
	var pods corev1.PodList
	if err := k.client.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(k.namespace)); err != nil {
		t.Fatal(err)
	}
	if err := k.client.List(t.Context(), &pods); err != nil || len(pods.Items) > 0 {
		t.Fatal(err, pods.Items)
	}
	if text := readyOf(k.reconcileEvaluation("e").Status.Conditions, v1alpha1.ConditionComplete); !strings.HasPrefix(text, "Unknown Running: Job e-") {
		t.Error(text)
	}
	k.clock.Step(resultWithin)
	if text := readyOf(k.reconcileEvaluation("e").Status.Conditions, v1alpha1.ConditionReady); !strings.HasPrefix(text, "False Failed: Job e-") {
		t.Error(text)
	}
}
