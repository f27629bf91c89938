package v1alpha1_test

import (
	"testing"

	"gatewright.dev/gatewright/api/v1alpha1"
)

func TestWhoMayReferToADecider(t *testing.T) {
	listed := &v1alpha1.NamespaceAllowance{From: v1alpha1.NamespacesListed, Namespaces: []v1alpha1.Namespace{"shop"}}
	for name, c := range map[string]struct {
		spec          v1alpha1.DeciderModelSpec
		shop, another bool
	}{
		"all by default":                     {v1alpha1.DeciderModelSpec{Runtime: v1alpha1.RuntimeLlamaCpp}, true, true},
		"none by default for one at a URL":   {v1alpha1.DeciderModelSpec{Runtime: v1alpha1.RuntimeExternal}, false, false},
		"all, said so, for one at a URL":     {v1alpha1.DeciderModelSpec{Runtime: v1alpha1.RuntimeExternal, AllowedNamespaces: &v1alpha1.NamespaceAllowance{From: v1alpha1.NamespacesAll}}, true, true},
		"those that are listed":              {v1alpha1.DeciderModelSpec{Runtime: v1alpha1.RuntimeExternal, AllowedNamespaces: listed}, true, false},
		"none":                               {v1alpha1.DeciderModelSpec{Runtime: v1alpha1.RuntimeLlamaCpp, AllowedNamespaces: &v1alpha1.NamespaceAllowance{From: v1alpha1.NamespacesNone}}, false, false},
		"a list without the word for a list": {v1alpha1.DeciderModelSpec{Runtime: v1alpha1.RuntimeLlamaCpp, AllowedNamespaces: &v1alpha1.NamespaceAllowance{Namespaces: listed.Namespaces}}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if shop, another := c.spec.AllowsNamespace("shop"), c.spec.AllowsNamespace("another"); shop != c.shop || another != c.another {
				t.Errorf("shop %t, another %t; want %t and %t", shop, another, c.shop, c.another)
			}
		})
	}
}
