package controllers

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/policy"
	"gatewright.dev/gatewright/internal/served"
)

const (
	// deciderIndex finds the policies that refer to a DeciderModel.
	deciderIndex = "spec.deciderRef.name"
	// compilationsKept is for how many policies what compiling tells is remembered. One takes a few hundred bytes.
	compilationsKept = 8192
	// policiesAtOnce are reconciled at a time. Most of the work is compiling.
	policiesAtOnce = 4
)

// policyKind is what the two kinds of policies differ in.
type policyKind[T client.Object] struct {
	new     func() T
	list    func() client.ObjectList
	items   func(client.ObjectList) []T
	compile func(T) (*policy.Compiled, field.ErrorList)
	key     func(T) string
	rules   func(T) *v1alpha1.PolicyRules
	status  func(T) *v1alpha1.PolicyStatus
	// namespaces that a policy is for; empty is all.
	namespaces func(T) []string
}

// PolicyReconciler keeps the status of one kind of policies.
type PolicyReconciler[T client.Object] struct {
	*parts
	client   client.Client
	kind     policyKind[T]
	compiled *lru.Cache
}

// +kubebuilder:rbac:groups=gatewright.dev,resources=toolpolicies;clustertoolpolicies;decidermodels,verbs=get;list;watch
// +kubebuilder:rbac:groups=gatewright.dev,resources=toolpolicies/status;clustertoolpolicies/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

func setupPolicies(mgr ctrl.Manager, p *parts) error {
	asItIs := func(r reconcile.Reconciler) reconcile.Reconciler { return r }
	if err := setupPolicyKind(mgr, p, toolPolicies(), asItIs); err != nil {
		return err
	}
	return setupPolicyKind(mgr, p, clusterToolPolicies(), asItIs)
}

// setupPolicyKind registers the controller of one kind. Wrap may look at its passes.
func setupPolicyKind[T client.Object](mgr ctrl.Manager, p *parts, kind policyKind[T], wrap func(reconcile.Reconciler) reconcile.Reconciler) error {
	r := newPolicyReconciler(mgr.GetClient(), p, kind)
	index := func(o client.Object) []string { return decidersOf(kind.rules(o.(T))) } //nolint:forcetypeassert // it indexes this type only
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), kind.new(), deciderIndex, index); err != nil {
		return fmt.Errorf("indexing policies by decider: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(kind.new(), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.DeciderModel{}, handler.EnqueueRequestsFromMapFunc(r.referringTo), builder.WithPredicates(deciderChanged())).
		WatchesRawSource(p.gates.Changes(r.affectedBy)).
		WithOptions(controller.Options{MaxConcurrentReconciles: policiesAtOnce}).
		Complete(wrap(reconcile.AsReconciler(mgr.GetClient(), r)))
}

func newPolicyReconciler[T client.Object](c client.Client, p *parts, kind policyKind[T]) *PolicyReconciler[T] {
	return &PolicyReconciler[T]{parts: p, client: c, kind: kind, compiled: lru.New(compilationsKept)}
}

func decidersOf(r *v1alpha1.PolicyRules) []string {
	if r.DeciderRef == nil {
		return nil
	}
	return []string{string(r.DeciderRef.Name)}
}

// Reconcile writes the status of a policy if it has to change.
func (r *PolicyReconciler[T]) Reconcile(ctx context.Context, p T) (ctrl.Result, error) {
	if !p.GetDeletionTimestamp().IsZero() {
		return ctrl.Result{}, nil
	}
	facts, err := r.observe(ctx, p)
	if err != nil {
		return ctrl.Result{}, err
	}
	before := p.DeepCopyObject().(T) //nolint:forcetypeassert // a copy has the type of what is copied
	status := r.kind.status(p)
	setConditions(&status.Conditions, p.GetGeneration(), metav1.NewTime(r.Clock.Now()), assessPolicy(facts))
	status.ObservedGeneration = p.GetGeneration()
	if err := patchStatus(ctx, r.client, before, p); err != nil {
		return ctrl.Result{}, err
	}
	recordTransitions(r.events, p, facts.before, status.Conditions)
	return ctrl.Result{}, nil
}

// observe reads all that the status depends on.
func (r *PolicyReconciler[T]) observe(ctx context.Context, p T) (*policyFacts, error) {
	f := &policyFacts{
		key: r.kind.key(p), generation: p.GetGeneration(), compiled: r.compile(p), reference: r.kind.rules(p).DeciderRef,
		namespaces: r.kind.namespaces(p), gates: r.gates.Observation(), before: r.kind.status(p).DeepCopy().Conditions,
	}
	if f.reference == nil {
		return f, nil
	}
	var m v1alpha1.DeciderModel
	switch err := r.client.Get(ctx, client.ObjectKey{Name: string(f.reference.Name)}, &m); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return nil, fmt.Errorf("reading the decider: %w", err)
	default:
		f.decider = &m
	}
	return f, nil
}

// compile compiles a generation of a policy once.
func (r *PolicyReconciler[T]) compile(p T) compilation {
	type generation struct {
		uid        types.UID
		generation int64
	}
	key := generation{p.GetUID(), p.GetGeneration()}
	if known, ok := r.compiled.Get(key); ok {
		return known.(compilation) //nolint:forcetypeassert // nothing else is put there
	}
	compiled, errs := r.kind.compile(p)
	out := compilation{errors: errorText(errs), needsFingerprint: len(errs) == 0 && compiled.NeedsFingerprint()}
	r.compiled.Add(key, out)
	return out
}

// referringTo gives the policies that refer to a decider.
func (r *PolicyReconciler[T]) referringTo(ctx context.Context, m client.Object) []reconcile.Request {
	return r.requests(ctx, func(T) bool { return true }, client.MatchingFields{deciderIndex: m.GetName()})
}

// affectedBy gives the policies whose status follows from what the gates say now and did not before.
func (r *PolicyReconciler[T]) affectedBy(ctx context.Context, from, to *Observation) []reconcile.Request {
	return r.requests(ctx, func(p T) bool {
		key, generation := r.kind.key(p), p.GetGeneration()
		return from.programmed(key, generation) != to.programmed(key, generation)
	})
}

func (r *PolicyReconciler[T]) requests(ctx context.Context, wanted func(T) bool, options ...client.ListOption) []reconcile.Request {
	list := r.kind.list()
	if err := r.client.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		// The cache answers lists from memory once it is synced, which is before the first event.
		ctrl.LoggerFrom(ctx).Error(err, "policies cannot be listed")
		return nil
	}
	var out []reconcile.Request
	for _, p := range r.kind.items(list) {
		if wanted(p) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)})
		}
	}
	return out
}

func toolPolicies() policyKind[*v1alpha1.ToolPolicy] {
	return policyKind[*v1alpha1.ToolPolicy]{
		new:  func() *v1alpha1.ToolPolicy { return &v1alpha1.ToolPolicy{} },
		list: func() client.ObjectList { return &v1alpha1.ToolPolicyList{} },
		items: func(l client.ObjectList) []*v1alpha1.ToolPolicy {
			return pointers(l.(*v1alpha1.ToolPolicyList).Items) //nolint:forcetypeassert // it is what list makes
		},
		compile:    policy.Compile,
		key:        func(p *v1alpha1.ToolPolicy) string { return served.PolicyKey(p.Namespace, p.Name) },
		rules:      func(p *v1alpha1.ToolPolicy) *v1alpha1.PolicyRules { return &p.Spec.PolicyRules },
		status:     func(p *v1alpha1.ToolPolicy) *v1alpha1.PolicyStatus { return &p.Status },
		namespaces: func(p *v1alpha1.ToolPolicy) []string { return []string{p.Namespace} },
	}
}

func clusterToolPolicies() policyKind[*v1alpha1.ClusterToolPolicy] {
	return policyKind[*v1alpha1.ClusterToolPolicy]{
		new:  func() *v1alpha1.ClusterToolPolicy { return &v1alpha1.ClusterToolPolicy{} },
		list: func() client.ObjectList { return &v1alpha1.ClusterToolPolicyList{} },
		items: func(l client.ObjectList) []*v1alpha1.ClusterToolPolicy {
			return pointers(l.(*v1alpha1.ClusterToolPolicyList).Items) //nolint:forcetypeassert // it is what list makes
		},
		compile: policy.CompileCluster,
		key:     func(p *v1alpha1.ClusterToolPolicy) string { return served.ClusterPolicyKey(p.Name) },
		rules:   func(p *v1alpha1.ClusterToolPolicy) *v1alpha1.PolicyRules { return &p.Spec.PolicyRules },
		status:  func(p *v1alpha1.ClusterToolPolicy) *v1alpha1.PolicyStatus { return &p.Status },
		namespaces: func(p *v1alpha1.ClusterToolPolicy) (out []string) {
			for _, ns := range p.Spec.Namespaces {
				out = append(out, string(ns))
			}
			return out
		},
	}
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}
