package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gatewright.dev/gatewright/internal/names"
	"gatewright.dev/gatewright/internal/pki"
)

// BundleReconciler gives the namespaces with agents the certificates by which they know the gate.
type BundleReconciler struct {
	client    client.Client
	namespace string
	events    events.EventRecorder
}

// What is watched is one name in every namespace, so that the manager reads no other ConfigMap of them.
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=create
// +kubebuilder:rbac:groups="",resources=configmaps,resourceNames=gatewright-ca,verbs=get;list;watch;patch;delete

func setupBundles(mgr ctrl.Manager, p *parts) error {
	r := &BundleReconciler{client: mgr.GetClient(), namespace: p.Namespace, events: p.events}
	return ctrl.NewControllerManagedBy(mgr).Named("bundles").
		WatchesMetadata(&corev1.Namespace{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(predicate.LabelChangedPredicate{})).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(itsNamespace), builder.WithPredicates(isBundle())).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.injected), builder.WithPredicates(named(p.Namespace, names.GateTLSSecret))).
		Complete(r)
}

func itsNamespace(_ context.Context, o client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: o.GetNamespace()}}}
}

func isBundle() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == names.AuthorityConfigMap })
}

// injected gives all namespaces with agents.
func (r *BundleReconciler) injected(ctx context.Context, _ client.Object) []reconcile.Request {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := r.client.List(ctx, list, client.MatchingLabels{names.InjectLabel: names.InjectEnabled}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "namespaces cannot be listed") // the cache answers from memory
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Name: list.Items[i].Name}})
	}
	return out
}

// Reconcile brings the ConfigMap of one namespace in line. One that is no longer wanted is deleted if the manager made it:
// pods that run keep what they have mounted.
func (r *BundleReconciler) Reconcile(ctx context.Context, request reconcile.Request) (ctrl.Result, error) {
	bundle, err := r.bundle(ctx)
	if err != nil || bundle == "" {
		return ctrl.Result{}, err // the certificate that is made next wakes us
	}
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := r.client.Get(ctx, client.ObjectKey{Name: request.Name}, ns); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !ns.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	var held *corev1.ConfigMap
	found := &corev1.ConfigMap{}
	switch err := r.client.Get(ctx, client.ObjectKey{Namespace: ns.Name, Name: names.AuthorityConfigMap}, found); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("reading ConfigMap %s: %w", names.AuthorityConfigMap, err)
	default:
		held = found
	}
	return ctrl.Result{}, r.write(ctx, ns, held, bundle)
}

// bundle is what pods have to trust to know the gate: what its certificate's Secret says, whoever made that.
func (r *BundleReconciler) bundle(ctx context.Context) (string, error) {
	var s corev1.Secret
	err := r.client.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: names.GateTLSSecret}, &s)
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("reading the gate's certificate: %w", err)
	}
	if _, err := pki.ParseCertificates(s.Data[pki.KeyCA]); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "what callers have to trust cannot be read, and is not handed out", "secret", s.Name)
		return "", nil
	}
	return string(s.Data[pki.KeyCA]), nil
}

func (r *BundleReconciler) write(ctx context.Context, ns *metav1.PartialObjectMetadata, held *corev1.ConfigMap, bundle string) error {
	isWanted := ns.Labels[names.InjectLabel] == names.InjectEnabled
	isOurs := held != nil && held.Labels[managedByLabel] == managerName
	switch {
	case held != nil && !isOurs:
		if isWanted {
			r.events.Eventf(held, nil, corev1.EventTypeWarning, reasonNotOurs, "Keep",
				"was made by somebody else and is left as it is: pods of this namespace trust what it says, and cannot reach the gate if that is not its authority")
		}
		return nil
	case !isWanted:
		if !isOurs {
			return nil
		}
		return client.IgnoreNotFound(r.client.Delete(ctx, held, client.Preconditions{UID: &held.UID}))
	}
	owner, err := r.owner(ctx)
	if err != nil {
		return err
	}
	if isOurs && held.Data[pki.KeyCA] == bundle && len(held.Data) == 1 && len(held.BinaryData) == 0 && slices.ContainsFunc(held.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == *owner.UID }) {
		return nil
	}
	wanted := corev1ac.ConfigMap(names.AuthorityConfigMap, ns.Name).WithLabels(ownLabels()).WithOwnerReferences(owner).
		WithData(map[string]string{pki.KeyCA: bundle})
	if err := r.client.Apply(ctx, wanted, client.FieldOwner(managerName), client.ForceOwnership); err != nil {
		return fmt.Errorf("applying ConfigMap %s: %w", names.AuthorityConfigMap, err)
	}
	return nil
}

// owner is Gatewright's namespace: when it goes, the ConfigMaps go with it.
func (r *BundleReconciler) owner(ctx context.Context) (*metav1ac.OwnerReferenceApplyConfiguration, error) {
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := r.client.Get(ctx, client.ObjectKey{Name: r.namespace}, ns); err != nil {
		return nil, fmt.Errorf("reading Gatewright's namespace: %w", err)
	}
	if ns.UID == "" {
		return nil, reconcile.TerminalError(errors.New("a namespace has no uid"))
	}
	return metav1ac.OwnerReference().WithAPIVersion("v1").WithKind("Namespace").WithName(ns.Name).WithUID(ns.UID), nil
}
