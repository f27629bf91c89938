package controllers

import (
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/names"
)

// NewScheme knows the kinds of Gatewright and of Kubernetes.
func NewScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			return nil, fmt.Errorf("making the scheme: %w", err)
		}
	}
	return s, nil
}

// CacheOptions let a manager keep, and so read, what is in Gatewright's own namespace and no more. Of other namespaces it
// keeps Gatewright's kinds, and of ConfigMaps the one with the gate's authority.
func CacheOptions(namespace string) cache.Options {
	own := map[string]cache.Config{namespace: {}}
	everywhere := map[string]cache.Config{cache.AllNamespaces: {}}
	return cache.Options{
		DefaultNamespaces: own,
		DefaultTransform:  cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.ToolPolicy{}:   {Namespaces: everywhere},
			&v1alpha1.ToolApproval{}: {Namespaces: everywhere, Transform: withoutContent},
			&coordinationv1.Lease{}:  {Namespaces: map[string]cache.Config{namespace: {LabelSelector: ofGates()}}},
			&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{
				namespace:           {},
				cache.AllNamespaces: {FieldSelector: fields.OneTermEqualSelector("metadata.name", names.AuthorityConfigMap)},
			}},
		},
	}
}

// ofGates selects what gates make.
func ofGates() labels.Selector {
	r, err := labels.NewRequirement(names.LeaseLabel, selection.Exists, nil)
	if err != nil {
		panic(err) // the label is a constant
	}
	return labels.NewSelector().Add(*r)
}

// withoutContent keeps of an approval what the manager mirrors. What the call is about can be 32 KiB, of 10,000 calls.
func withoutContent(o any) (any, error) {
	if a, ok := o.(*v1alpha1.ToolApproval); ok {
		c := a.Spec.Call
		a.ManagedFields = nil
		a.Spec.Call = v1alpha1.PendingCall{ID: c.ID, Caller: c.Caller, RaisedAt: c.RaisedAt, ExpiresAt: c.ExpiresAt}
	}
	return o, nil
}
