package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/inference/workload"
	"gatewright.dev/gatewright/internal/names"
)

// runRevision applies the children of a revision. The policy of the network comes before the pods that it is for.
func (r *DeciderModelReconciler) runRevision(ctx context.Context, facts *revisionFacts) error {
	if facts == nil {
		return nil // it drains, and its revision was deleted by somebody
	}
	i, rev := r.install(), facts.revision
	for _, child := range []runtime.ApplyConfiguration{
		workload.NetworkPolicy(i, rev), workload.Service(i, rev), workload.PodDisruptionBudget(i, rev), workload.Deployment(i, rev),
	} {
		if err := r.client.Apply(ctx, child, client.FieldOwner(managerName), client.ForceOwnership); err != nil {
			return fmt.Errorf("applying %T of revision %s: %w", child, rev.Name, err)
		}
	}
	return nil
}

func (r *DeciderModelReconciler) evaluate(ctx context.Context, m *v1alpha1.DeciderModel, revision string) error {
	e, err := workload.NewEvaluation(m, revision)
	if err != nil {
		return err
	}
	// One that is there was made by a pass that the cache has not heard of, or by somebody else. The next pass compares it.
	err = r.client.Create(ctx, e, client.FieldOwner(managerName))
	if err = client.IgnoreAlreadyExists(err); err != nil {
		return fmt.Errorf("creating evaluation %s: %w", e.Name, err)
	}
	return nil
}

// prune deletes the children of revisions that no longer run, and revisions that are no longer kept.
func (r *DeciderModelReconciler) prune(ctx context.Context, m *v1alpha1.DeciderModel, v *deciderVerdict) error {
	var errs []error
	for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &corev1.ServiceList{}, &policyv1.PodDisruptionBudgetList{}, &networkingv1.NetworkPolicyList{}} {
		errs = append(errs, r.deleteOthers(ctx, m, list, v.run, r.childrenOf(m)...))
	}
	errs = append(errs,
		r.deleteOthers(ctx, m, &appsv1.ControllerRevisionList{}, v.keep, r.childrenOf(m)...),
		r.deleteOthers(ctx, m, &v1alpha1.DeciderEvaluationList{}, v.keep, client.MatchingLabels{names.ModelLabel: workload.ModelLabelValue(m.Name)}))
	return errors.Join(errs...)
}

// deleteOthers deletes the children of all revisions but some.
func (r *DeciderModelReconciler) deleteOthers(ctx context.Context, m *v1alpha1.DeciderModel, list client.ObjectList, but []string, of ...client.ListOption) error {
	if err := r.client.List(ctx, list, of...); err != nil {
		return fmt.Errorf("listing children: %w", err)
	}
	return meta.EachListItem(list, func(item runtime.Object) error {
		o, ok := item.(client.Object)
		if !ok || !metav1.IsControlledBy(o, m) || !o.GetDeletionTimestamp().IsZero() || slices.Contains(but, o.GetLabels()[names.RevisionLabel]) {
			return nil
		}
		uid := o.GetUID()
		err := r.client.Delete(ctx, o, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting %T %s: %w", o, o.GetName(), err)
		}
		return nil
	})
}
