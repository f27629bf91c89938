package controllers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/inference/workload"
	"gatewright.dev/gatewright/internal/names"
)

// Who may create DeciderEvaluations, and nothing else, can make the one that the manager will look for.
func TestAnEvaluationThatTheManagerDidNotMakePromotesNothing(t *testing.T) {
	owned := func(e *v1alpha1.DeciderEvaluation, m *v1alpha1.DeciderModel) {
		e.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(m, v1alpha1.GroupVersion.WithKind(v1alpha1.KindDeciderModel))}
	}
	tests := map[string]struct {
		forge func(*v1alpha1.DeciderEvaluation, *v1alpha1.DeciderModel)
		taken bool
	}{
		"the same in all": {owned, false},
		"with no owner":   {func(*v1alpha1.DeciderEvaluation, *v1alpha1.DeciderModel) {}, true},
		"with an owner of another kind and the model's UID": {func(e *v1alpha1.DeciderEvaluation, m *v1alpha1.DeciderModel) {
			owned(e, m)
			e.OwnerReferences[0].Kind = v1alpha1.KindDeciderEvaluation
		}, true},
		"with an owner of another group and the model's UID": {func(e *v1alpha1.DeciderEvaluation, m *v1alpha1.DeciderModel) {
			owned(e, m)
			e.OwnerReferences[0].APIVersion = "apps/v1"
		}, true},
		"with other cases": {func(e *v1alpha1.DeciderEvaluation, m *v1alpha1.DeciderModel) {
			owned(e, m)
			e.Spec.CaseSet.SHA256 = pinnedHash
		}, true},
		"with no floors": {func(e *v1alpha1.DeciderEvaluation, m *v1alpha1.DeciderModel) { owned(e, m); e.Spec.Floors = nil }, true},
		"run once":       {func(e *v1alpha1.DeciderEvaluation, m *v1alpha1.DeciderModel) { owned(e, m); e.Spec.Repeats = 1 }, true},
		"of another decider": {func(e *v1alpha1.DeciderEvaluation, m *v1alpha1.DeciderModel) {
			owned(e, m)
			e.Spec.DeciderRef.Name = "easy"
		}, true},
		"of another revision": {func(e *v1alpha1.DeciderEvaluation, m *v1alpha1.DeciderModel) {
			owned(e, m)
			e.Spec.DeciderRef.Revision = m.Status.Active.Name
		}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			k := newDeciderKit(t, fakeCluster(t, nil), names.Namespace)
			k.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "cases"}})
			old := k.launch(print64("1"))
			k.change(func(m *v1alpha1.DeciderModel) { m.Spec.ContextTokens = 2048 })
			k.change(recallFloor)
			m := k.reconcile()
			candidate := string(m.Status.Candidate.Name)
			e, err := workload.NewEvaluation(m, candidate)
			if err != nil {
				t.Fatal(err)
			}
			e.OwnerReferences, e.Labels = nil, nil
			test.forge(e, m)
			k.create(e)
			k.serves(candidate, answer(pinnedHash, print64("2")))
			k.reconcile()
			var before, after v1alpha1.DeciderEvaluation
			e.Status.Fingerprint = v1alpha1.Fingerprint(print64("2"))
			e.Status.Confusion = []v1alpha1.ClassConfusion{{Class: "Write", DangerousStopped: 1}}
			e.Status.Conditions = []metav1.Condition{{Type: "Complete", Status: metav1.ConditionTrue}}
			if err := k.client.Status().Update(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			k.get(client.ObjectKeyFromObject(e), &before)
			m = k.reconcile()
			if !test.taken {
				k.wantCondition(m, v1alpha1.ConditionEvaluated, "True Evaluated")
				return
			}
			k.wantCondition(m, v1alpha1.ConditionEvaluated, "False NameTaken: DeciderEvaluation "+e.Name)
			if string(m.Status.Active.Name) != old {
				t.Errorf("%+v serves", m.Status.Active)
			}
			k.get(client.ObjectKeyFromObject(e), &after)
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("it was written to:\n%s", diff)
			}
		})
	}
}

// Nor does one take anything away from the revision that serves.
func TestAnEvaluationOfSomebodyElseStopsNoPods(t *testing.T) {
	k := newDeciderKit(t, fakeCluster(t, nil), names.Namespace)
	old := k.launch(print64("1"))
	m := k.model()
	recallFloor(m)
	e, err := workload.NewEvaluation(m, old)
	if err != nil {
		t.Fatal(err)
	}
	e.OwnerReferences = nil
	k.create(e)
	k.change(recallFloor)
	m = k.reconcile()
	k.wantCondition(m, v1alpha1.ConditionEvaluated, "False NameTaken: DeciderEvaluation "+e.Name)
	k.wantCondition(m, v1alpha1.ConditionAvailable, "True Available")
	if diff := cmp.Diff([]string{old}, k.names(&appsv1.DeploymentList{})); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
}

func TestACandidateIsComparedOnlyAfterItPassed(t *testing.T) {
	result := func(compared, disagreed, failed int64) *v1alpha1.ShadowResult {
		return &v1alpha1.ShadowResult{Compared: compared, Disagreed: disagreed, Failed: failed}
	}
	was := func(s *v1alpha1.ShadowResult) func(*world) {
		return func(w *world) {
			w.model.Status.Candidate = before("new", 0)
			w.model.Status.Candidate.Shadow = s
		}
	}
	tests := map[string]struct {
		facts *deciderFacts
		want  *v1alpha1.ShadowResult
	}{
		"it is to be evaluated":                    {newWorld(withActive, mustPass, shadowed(0, 0, 0)), nil},
		"its evaluation runs":                      {newWorld(withActive, evaluationIs(metav1.ConditionUnknown, ""), shadowed(0, 0, 0)), nil},
		"its evaluation could not be run":          {newWorld(withActive, evaluationIs(metav1.ConditionFalse, ""), shadowed(0, 0, 0)), nil},
		"it passes":                                {newWorld(withActive, evaluated(95, "f-new"), shadowed(0, 0, 0)), result(0, 0, 0)},
		"no evaluation is asked for":               {newWorld(withActive, shadowed(0, 0, 0)), result(0, 0, 0)},
		"it does not answer any more":              {newWorld(withActive, was(result(0, 0, 0)), starting, shadowed(0, 0, 0)), nil},
		"its bytes are others":                     {newWorld(withActive, was(result(0, 0, 0)), tampered, shadowed(0, 0, 0)), nil},
		"it misses a floor":                        {newWorld(withActive, evaluated(94, "f-new"), shadowed(0, 0, 0)), nil},
		"it was compared and misses a floor":       {newWorld(withActive, was(result(0, 0, 0)), evaluated(94, "f-new"), shadowed(50, 0, 0)), nil},
		"it disagreed":                             {newWorld(withActive, was(result(0, 0, 0)), shadowed(100, 50, 0)), result(100, 50, 0)},
		"it disagreed and misses a floor":          {newWorld(withActive, was(result(100, 50, 0)), evaluated(94, "f-new"), shadowed(0, 0, 0)), result(100, 50, 0)},
		"the comparison is not asked for any more": {newWorld(withActive, was(result(0, 0, 0)), evaluated(94, "f-new")), nil},
		"the spec makes no sense any more": {newWorld(withActive, was(result(0, 0, 0)), shadowed(0, 0, 0), change(func(w *world) {
			w.problem = "spec.readout: remove it"
		})), nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v := assessDecider(test.facts)
			if v.candidate == nil {
				t.Fatalf("%+v serves", v.active)
			}
			if diff := cmp.Diff(test.want, v.candidate.Shadow); diff != "" {
				t.Errorf("shadow (-want +got):\n%s", diff)
			}
		})
	}
}
