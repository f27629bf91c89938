package controllers

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
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
			&v1alpha1.ToolApproval{}: {Namespaces: everywhere},
			&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{
				namespace:           {},
				cache.AllNamespaces: {FieldSelector: fields.OneTermEqualSelector("metadata.name", names.AuthorityConfigMap)},
			}},
		},
	}
}
