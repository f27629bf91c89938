package controllers

import (
	"context"
	"fmt"
	"maps"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/names"
	"gatewright.dev/gatewright/internal/served"
)

// decidersAtOnce are reconciled at a time. Most of the work is waiting for an answer.
const decidersAtOnce = 16

// DeciderModelReconciler keeps the revisions of deciders, what runs them, and their status.
type DeciderModelReconciler struct {
	*parts
	client client.Client
	prober *prober
}

// +kubebuilder:rbac:groups=gatewright.dev,resources=decidermodels,verbs=get;list;watch
// +kubebuilder:rbac:groups=gatewright.dev,resources=decidermodels/status,verbs=patch
// +kubebuilder:rbac:groups=gatewright.dev,resources=decidermodels/finalizers,verbs=update
// +kubebuilder:rbac:groups=gatewright.dev,resources=deciderevaluations,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;delete,namespace=gatewright-system
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch;delete,namespace=gatewright-system
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch;delete,namespace=gatewright-system
// +kubebuilder:rbac:groups="",resources=pods;secrets,verbs=get;list;watch,namespace=gatewright-system
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;patch;delete,namespace=gatewright-system
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete,namespace=gatewright-system
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

func setupDeciders(mgr ctrl.Manager, p *parts) error {
	r := newDeciderModelReconciler(mgr.GetClient(), p)
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.DeciderModel{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		Owns(&appsv1.ControllerRevision{}).Owns(&appsv1.Deployment{}).Owns(&corev1.Service{}).
		Owns(&networkingv1.NetworkPolicy{}).Owns(&policyv1.PodDisruptionBudget{}).Owns(&v1alpha1.DeciderEvaluation{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.ofPod), builder.WithPredicates(isDeciderPod(p.Namespace))).
		WatchesRawSource(p.gates.Changes(r.affectedBy)).
		WithOptions(controller.Options{MaxConcurrentReconciles: decidersAtOnce}).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

func newDeciderModelReconciler(c client.Client, p *parts) *DeciderModelReconciler {
	return &DeciderModelReconciler{parts: p, client: c, prober: newProber(c, p.Namespace, p.Clock)}
}

// isDeciderPod lets only the pods of deciders through.
func isDeciderPod(namespace string) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool {
		return o.GetNamespace() == namespace && o.GetLabels()[names.ComponentLabel] == names.ComponentDecider && o.GetLabels()[names.RevisionLabel] != ""
	})
}

// Reconcile brings the children of a DeciderModel to what they should be, and its status to what is.
func (r *DeciderModelReconciler) Reconcile(ctx context.Context, m *v1alpha1.DeciderModel) (ctrl.Result, error) {
	if !m.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // what belongs to it goes with it
	}
	before := m.DeepCopy()
	facts, wanted, err := r.observe(ctx, m)
	if err != nil {
		return ctrl.Result{}, err
	}
	verdict := assessDecider(facts)
	if err := r.apply(ctx, facts, verdict, wanted); err != nil {
		return ctrl.Result{}, err
	}
	verdict.write(m, metav1.NewTime(r.Clock.Now()))
	if err := patchStatus(ctx, r.client, before, m); err != nil {
		return ctrl.Result{}, err
	}
	recordTransitions(r.events, m, before.Status.Conditions, m.Status.Conditions)
	// Only now does the status name nothing of what goes.
	if err := r.prune(ctx, m, verdict); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: verdict.recheck}, nil
}

// write puts the verdict into the status.
func (v *deciderVerdict) write(m *v1alpha1.DeciderModel, now metav1.Time) {
	setConditions(&m.Status.Conditions, m.Generation, now, v.conditions)
	m.Status.ObservedGeneration = m.Generation
	m.Status.Active, m.Status.Candidate, m.Status.History = v.active, v.candidate, v.history
}

// ofPod finds the DeciderModel of a pod by the revision that its label names.
func (r *DeciderModelReconciler) ofPod(ctx context.Context, pod client.Object) []reconcile.Request {
	var revision appsv1.ControllerRevision
	key := client.ObjectKey{Namespace: r.Namespace, Name: pod.GetLabels()[names.RevisionLabel]}
	if err := r.client.Get(ctx, key, &revision); err != nil {
		return nil // a pod whose revision is gone changes nothing
	}
	if owner := metav1.GetControllerOf(&revision); owner != nil && owner.Kind == v1alpha1.KindDeciderModel {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: owner.Name}}}
	}
	return nil
}

// affectedBy gives the DeciderModels of which the gates say something new.
func (r *DeciderModelReconciler) affectedBy(ctx context.Context, from, to *Observation) []reconcile.Request {
	var list v1alpha1.DeciderModelList
	if err := r.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "deciders cannot be listed") // the cache answers from memory
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		m := &list.Items[i]
		if !reflect.DeepEqual(from.about(m), to.about(m)) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(m)})
		}
	}
	return out
}

// saying is what one gate says of a DeciderModel.
type saying struct {
	decider   served.Decider
	compared  served.Shadow
	isServing bool
}

func (o *Observation) about(m *v1alpha1.DeciderModel) map[string]saying {
	out := make(map[string]saying, len(o.Reports))
	for pod, report := range maps.All(o.Reports) {
		d, ok := report.Deciders[m.Name]
		s := saying{decider: d, isServing: ok}
		if c := m.Status.Candidate; c != nil {
			s.compared = report.Shadow[string(c.Name)]
		}
		out[pod] = s
	}
	return out
}

// apply writes what has to be there, in the order in which one thing refers to another.
func (r *DeciderModelReconciler) apply(ctx context.Context, f *deciderFacts, v *deciderVerdict, wanted *appsv1.ControllerRevision) error {
	if v.create && wanted != nil {
		wanted.Revision = nextRevision(f.known)
		// One that is there was written by a pass that the cache has not heard of, or by somebody else, which the next one sees.
		err := r.client.Create(ctx, wanted, client.FieldOwner(managerName))
		if client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("creating revision %s: %w", wanted.Name, err)
		}
	}
	for _, name := range v.run {
		if err := r.runRevision(ctx, f.revisions[name]); err != nil {
			return err
		}
	}
	if v.evaluate != "" {
		return r.evaluate(ctx, f.model, v.evaluate)
	}
	return nil
}

func nextRevision(known []*appsv1.ControllerRevision) int64 {
	last := int64(0)
	for _, c := range known {
		last = max(last, c.Revision)
	}
	return last + 1
}
