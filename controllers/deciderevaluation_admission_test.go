package controllers

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/kubetest"
	"gatewright.dev/gatewright/internal/names"
)

// Whoever may write evaluations, and be it all of them, forges none that the manager would take for its own.
func TestOnlyTheManagerWritesEvaluationsOfARollOut(t *testing.T) {
	s := kubetest.Start(t)
	s.EnsureNamespace(t, names.Namespace)
	s.Apply(t, "config/admission/evaluations.yaml", "config/rbac/manager.yaml", "config/rbac/accounts.yaml")
	as := func(config *rest.Config) client.Client {
		c, err := client.New(config, client.Options{Scheme: schemeOf(t)})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	admin, manager := as(s.Config()), as(s.ServiceAccount(t, names.Namespace, names.ManagerServiceAccount))
	collector := as(s.User(t, "system:kube-controller-manager", "system:masters")) // where controllers have no accounts of their own
	i := 0
	evaluation := func(owner ...metav1.OwnerReference) *v1alpha1.DeciderEvaluation {
		i++
		e := &v1alpha1.DeciderEvaluation{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("forged-%d", i), OwnerReferences: owner}}
		e.Spec.DeciderRef.Name = "judge"
		e.Spec.CaseSet = v1alpha1.CaseSet{Type: v1alpha1.CaseSetConfigMap, ConfigMapName: "cases", SHA256: pinnedHash}
		return e
	}
	isController := true
	controller := metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.KindDeciderModel, Name: "judge", UID: "1", Controller: &isController}
	plain := controller
	plain.Controller = nil
	other := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "cases", UID: "2"}
	const belongs = "belongs to a DeciderModel is part of its roll-out"
	made := func(e *v1alpha1.DeciderEvaluation, by client.Client) *v1alpha1.DeciderEvaluation {
		t.Helper()
		if err := by.Create(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		return e
	}
	waitFor(t, true, func() error { return admin.Create(t.Context(), evaluation(controller)) })
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() { // other tests of this package write results as they like
		meta := metav1.ObjectMeta{Name: names.EvaluationPolicy}
		for _, o := range []client.Object{&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta}, &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta}} {
			if err := admin.Delete(ctx, o); err != nil {
				t.Error(err)
			}
		}
		waitFor(t, false, func() error { return admin.Create(ctx, evaluation(controller), client.DryRunAll) })
	})
	for name, test := range map[string]struct {
		do   func() error
		want string
	}{
		"anybody makes one of their own":              {func() error { return admin.Create(t.Context(), evaluation()) }, ""},
		"with an owner of another kind":               {func() error { return admin.Create(t.Context(), evaluation(other)) }, ""},
		"with the controller that the manager writes": {func() error { return admin.Create(t.Context(), evaluation(controller)) }, belongs},
		"with an owner that is no controller":         {func() error { return admin.Create(t.Context(), evaluation(other, plain)) }, belongs},
		"that is given its owner later": {func() error {
			e := made(evaluation(), admin)
			e.OwnerReferences = []metav1.OwnerReference{controller}
			return admin.Update(t.Context(), e)
		}, belongs},
		"whose owner is taken away": {func() error {
			e := made(evaluation(controller), manager)
			e.OwnerReferences = nil
			return admin.Update(t.Context(), e)
		}, belongs},
		"whose owner is taken away by the garbage collector": {func() error {
			e := made(evaluation(controller), manager)
			e.OwnerReferences = nil
			return collector.Update(t.Context(), e)
		}, ""},
		"that gets a label": {func() error {
			e := made(evaluation(controller), manager)
			e.Labels = map[string]string{"a": "b"}
			return admin.Update(t.Context(), e)
		}, ""},
		"the manager makes those of a roll-out": {func() error { return manager.Create(t.Context(), evaluation(controller)) }, ""},
		"with a result that somebody writes": {func() error {
			e := made(evaluation(), admin)
			e.Status.Flapped = 1
			return admin.Status().Update(t.Context(), e)
		}, "only the manager writes what came of an evaluation"},
		"with the result that the manager writes": {func() error {
			e := made(evaluation(), admin)
			before := e.DeepCopy()
			e.Status.Flapped = 1
			return manager.Status().Patch(t.Context(), e, client.MergeFrom(before))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.do()
			if test.want == "" && err != nil {
				t.Errorf("refused: %v", err)
			}
			if test.want != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// waitFor waits until an API server refuses what a policy forbids that was just written, or no longer does.
func waitFor(t *testing.T, isRefused bool, try func() error) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		err := try()
		if apierrors.IsForbidden(err) == isRefused {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("refused, want %t: %v", isRefused, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
