package controllers

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"gatewright.dev/gatewright/api/v1alpha1"
)

// patchStatus writes the status of an object, if it differs from what was read. It is refused where the object has
// changed meanwhile: what it says would be about another one.
func patchStatus(ctx context.Context, c client.Client, before, after client.Object) error {
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	err := client.IgnoreNotFound(c.Status().Patch(ctx, after, patch, client.FieldOwner(managerName)))
	if err != nil {
		return fmt.Errorf("writing status: %w", err)
	}
	return nil
}

// deciderView is what policies look at in a DeciderModel.
type deciderView struct {
	Spec        v1alpha1.DeciderModelSpec
	Fingerprint v1alpha1.Fingerprint
	SHA256      v1alpha1.SHA256
	Serves      bool
	Verified    [2]string // status and reason
}

func viewOf(m *v1alpha1.DeciderModel) deciderView {
	v := deciderView{Spec: v1alpha1.DeciderModelSpec{
		Runtime: m.Spec.Runtime, AllowedNamespaces: m.Spec.AllowedNamespaces, RequireVerified: m.Spec.RequireVerified,
	}}
	if m.Status.Active != nil {
		v.Serves, v.Fingerprint, v.SHA256 = true, m.Status.Active.Fingerprint, m.Status.Active.SHA256
	}
	if c := meta.FindStatusCondition(m.Status.Conditions, string(v1alpha1.ConditionVerified)); c != nil {
		v.Verified = [2]string{string(c.Status), c.Reason}
	}
	return v
}

// deciderChanged lets through what of a DeciderModel's changes concerns policies: that it came, went, or looks different.
func deciderChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			old, wasOne := e.ObjectOld.(*v1alpha1.DeciderModel)
			changed, isOne := e.ObjectNew.(*v1alpha1.DeciderModel)
			return wasOne && isOne && !equality.Semantic.DeepEqual(viewOf(old), viewOf(changed))
		},
	}
}
