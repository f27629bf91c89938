package controllers

import (
	"context"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/approval/decided"
	"gatewright.dev/gatewright/internal/approval/objects"
	"gatewright.dev/gatewright/internal/names"
)

// callIndex finds the approval of a call by the id that its Lease is named by.
const callIndex = "spec.call.id"

// ToolApprovalReconciler mirrors into the status of approvals what has happened to them, and deletes them an hour after
// their end. Nothing goes by what it writes: a gate looks at the Lease.
type ToolApprovalReconciler struct {
	client    client.Client
	namespace string
	clock     clock.PassiveClock
	events    events.EventRecorder
	decided   *decided.Metrics
}

// +kubebuilder:rbac:groups=gatewright.dev,resources=toolapprovals,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=gatewright.dev,resources=toolapprovals/status,verbs=patch
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=gatewright-system,resources=leases,verbs=get;list;watch;delete

func setupApprovals(mgr ctrl.Manager, p *parts) error {
	index := func(o client.Object) []string { return []string{o.(*v1alpha1.ToolApproval).Spec.Call.ID} } //nolint:forcetypeassert // it indexes this type only
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.ToolApproval{}, callIndex, index); err != nil {
		return fmt.Errorf("indexing approvals by call: %w", err)
	}
	r := newToolApprovalReconciler(mgr.GetClient(), p)
	err := ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.ToolApproval{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&coordinationv1.Lease{}, handler.EnqueueRequestsFromMapFunc(r.usedBy), builder.WithPredicates(isMade())).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).Named("leases").
		For(&coordinationv1.Lease{}, builder.WithPredicates(isMade())).
		Complete(reconcile.AsReconciler(mgr.GetClient(), &LeaseReconciler{client: mgr.GetClient(), clock: p.Clock}))
}

func newToolApprovalReconciler(c client.Client, p *parts) *ToolApprovalReconciler {
	r := &ToolApprovalReconciler{client: c, namespace: p.Namespace, clock: p.Clock, events: p.events, decided: decided.NewMetrics()}
	r.decided.MustRegister(p.Registry)
	return r
}

// isMade lets through the Leases of gates as they are made: they never change.
func isMade() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return e.Object.GetLabels()[names.LeaseLabel] != "" },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// usedBy gives the approval that a Lease says was used.
func (r *ToolApprovalReconciler) usedBy(ctx context.Context, lease client.Object) []reconcile.Request {
	id, isUse := strings.CutPrefix(lease.GetName(), names.UseLeasePrefix)
	if !isUse || lease.GetLabels()[names.LeaseLabel] != names.LeaseUse {
		return nil
	}
	var list v1alpha1.ToolApprovalList
	if err := r.client.List(ctx, &list, client.MatchingFields{callIndex: id}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "approvals cannot be listed") // the cache answers from memory
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}

// Reconcile mirrors one approval, or deletes it when its time has come.
func (r *ToolApprovalReconciler) Reconcile(ctx context.Context, a *v1alpha1.ToolApproval) (ctrl.Result, error) {
	if !a.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	used, err := r.used(ctx, a)
	if err != nil {
		return ctrl.Result{}, err
	}
	now := r.clock.Now()
	if objects.IsForgotten(a, used, now) {
		err := r.client.Delete(ctx, a, client.Preconditions{UID: &a.UID})
		if client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, fmt.Errorf("deleting an approval that has ended: %w", err)
		}
		if err == nil {
			before := a.DeepCopy()
			assessApproval(a, used, now)
			r.count(before, a)
		}
		return ctrl.Result{}, nil
	}
	before := a.DeepCopy()
	assessApproval(a, used, now)
	if err := patchStatus(ctx, r.client, before, a); err != nil {
		return ctrl.Result{}, err
	}
	recordTransitions(r.events, a, before.Status.Conditions, a.Status.Conditions)
	r.count(before, a)
	return ctrl.Result{RequeueAfter: max(approvalChangesAt(a, used, now).Sub(now), time.Second)}, nil
}

// count counts a decision, wherever it was made, about once: only the manager writes Ready, and it is True from the pass on
// that has seen the decision. A pass that finds the object as it was before that was written counts it again, and a manager
// that ends in between does not count it.
func (r *ToolApprovalReconciler) count(before, after *v1alpha1.ToolApproval) {
	c := meta.FindStatusCondition(after.Status.Conditions, string(v1alpha1.ConditionReady))
	if after.Spec.Decision == nil || c.Status != metav1.ConditionTrue || meta.IsStatusConditionTrue(before.Status.Conditions, c.Type) {
		return
	}
	outcome := approval.Rejected
	if after.Spec.Decision.Outcome == v1alpha1.Approve {
		outcome = approval.Approved
	}
	r.decided.Count(string(after.Spec.Call.Class), outcome, c.LastTransitionTime.Sub(after.Spec.Call.RaisedAt.Time))
}

// used says when the approval was used, by the Lease that the gate makes for it.
func (r *ToolApprovalReconciler) used(ctx context.Context, a *v1alpha1.ToolApproval) (*time.Time, error) {
	var lease coordinationv1.Lease
	err := r.client.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: objects.UseLease(a.Spec.Call.ID)}, &lease)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the Lease of an approval: %w", err)
	}
	return objects.UsedAt(&lease), nil
}

// assessApproval sets the conditions of an approval. Ready is what a person or a script waits for: that somebody decided.
func assessApproval(a *v1alpha1.ToolApproval, used *time.Time, now time.Time) {
	conditions := objects.Conditions(a, used, now)
	for _, c := range append(conditions, readyApproval(a, conditions)) {
		c.ObservedGeneration = a.Generation
		meta.SetStatusCondition(&a.Status.Conditions, c)
	}
	a.Status.ObservedGeneration = a.Generation
}

// readyApproval is True once somebody has decided, with the decision as its reason, and False for a call on which nobody
// did in time.
func readyApproval(a *v1alpha1.ToolApproval, conditions []metav1.Condition) metav1.Condition {
	c := pending(v1alpha1.ConditionReady, "waits for a person")
	c.LastTransitionTime = a.Spec.Call.RaisedAt
	decided := meta.FindStatusCondition(conditions, string(v1alpha1.ConditionDecided))
	expired := meta.FindStatusCondition(conditions, string(v1alpha1.ConditionExpired))
	switch {
	case decided.Status == metav1.ConditionTrue:
		c.Status, c.Reason, c.Message, c.LastTransitionTime = metav1.ConditionTrue, decided.Reason, decided.Message, decided.LastTransitionTime
	case expired.Status == metav1.ConditionTrue:
		c.Status, c.Reason, c.Message, c.LastTransitionTime = metav1.ConditionFalse, expired.Reason, "nobody decided in time", expired.LastTransitionTime
	}
	return c
}

// approvalChangesAt is when time alone changes an approval next: it expires, or it goes.
func approvalChangesAt(a *v1alpha1.ToolApproval, used *time.Time, now time.Time) time.Time {
	if ended := objects.EndedAt(a, used, now); ended != nil {
		return ended.Add(approval.Retention)
	}
	return a.Spec.Call.ExpiresAt.Time
}

// LeaseReconciler deletes the Leases of gates that stand for nothing any more.
type LeaseReconciler struct {
	client client.Client
	clock  clock.PassiveClock
}

// Reconcile deletes a Lease, or comes back when it is time.
func (r *LeaseReconciler) Reconcile(ctx context.Context, l *coordinationv1.Lease) (ctrl.Result, error) {
	if l.Labels[names.LeaseLabel] == "" || !l.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	if wait := objects.LeaseGoesAt(l).Sub(r.clock.Now()); wait > 0 {
		return ctrl.Result{RequeueAfter: min(wait, 24*time.Hour)}, nil
	}
	err := r.client.Delete(ctx, l, client.Preconditions{UID: &l.UID, ResourceVersion: &l.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("deleting a Lease that has ended: %w", err)
	}
	return ctrl.Result{}, nil
}
