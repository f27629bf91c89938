package controllers

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/inference/workload"
	"gatewright.dev/gatewright/internal/names"
)

// TokenReconciler copies the bearer tokens for deciders of runtime External into the one Secret that gates mount. A gate
// may read no Secrets, and so can hand out none. Only what its keeper has released for the host of a revision is copied.
type TokenReconciler struct {
	client    client.Client
	namespace string
}

// +kubebuilder:rbac:groups="",resources=secrets,verbs=create;get;list;watch,namespace=gatewright-system
// +kubebuilder:rbac:groups="",resources=secrets,resourceNames=gatewright-external-tokens,verbs=patch,namespace=gatewright-system

func setupTokens(mgr ctrl.Manager, p *parts) error {
	one := handler.EnqueueRequestsFromMapFunc(theOne)
	inNamespace := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetNamespace() == p.Namespace })
	return ctrl.NewControllerManagedBy(mgr).Named("external-tokens").
		Watches(&corev1.Secret{}, one, builder.WithPredicates(inNamespace)).
		Watches(&appsv1.ControllerRevision{}, one, builder.WithPredicates(inNamespace)).
		WatchesRawSource(atStart()).
		Complete(&TokenReconciler{client: mgr.GetClient(), namespace: p.Namespace})
}

// Reconcile writes the tokens that the revisions of deciders name, and no others.
func (r *TokenReconciler) Reconcile(ctx context.Context, _ reconcile.Request) (ctrl.Result, error) {
	wanted, err := r.named(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	data := map[string][]byte{}
	for name, servers := range wanted {
		var s corev1.Secret
		switch err := r.client.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: name}, &s); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return ctrl.Result{}, fmt.Errorf("reading a token: %w", err)
		}
		for _, x := range servers {
			if token, err := workload.Token(&s, x); err == nil {
				data[workload.TokenFile(x)] = []byte(token)
			}
		}
	}
	secret := corev1ac.Secret(names.ExternalTokensSecret, r.namespace).
		WithLabels(map[string]string{managedByLabel: managerName, names.NameLabel: names.Name}).
		WithType(corev1.SecretTypeOpaque).WithData(data)
	if err := r.client.Apply(ctx, secret, client.FieldOwner(managerName), client.ForceOwnership); err != nil {
		return ctrl.Result{}, fmt.Errorf("writing the tokens for gates: %w", err)
	}
	return ctrl.Result{}, nil
}

// named lists the Secrets that the revisions of deciders name, but for the one that is written here, and for which servers.
func (r *TokenReconciler) named(ctx context.Context) (map[string][]*v1alpha1.ExternalRuntime, error) {
	var list appsv1.ControllerRevisionList
	if err := r.client.List(ctx, &list, client.InNamespace(r.namespace)); err != nil {
		return nil, fmt.Errorf("listing revisions: %w", err)
	}
	out := map[string][]*v1alpha1.ExternalRuntime{}
	for i := range list.Items {
		owner := metav1.GetControllerOf(&list.Items[i])
		var spec v1alpha1.DeciderModelSpec
		if owner == nil || owner.Kind != v1alpha1.KindDeciderModel || json.Unmarshal(list.Items[i].Data.Raw, &spec) != nil {
			continue
		}
		if x := spec.External; x != nil && x.TokenSecretRef != nil && string(x.TokenSecretRef.Name) != names.ExternalTokensSecret {
			out[string(x.TokenSecretRef.Name)] = append(out[string(x.TokenSecretRef.Name)], x)
		}
	}
	return out, nil
}
