package objects_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/kubetest"
)

// A service account that a policy selects cannot change it, however much RBAC lets it.
func TestASelectedServiceAccountDoesNotChangeItsPolicies(t *testing.T) {
	s := kubetest.Start(t)
	s.Apply(t, "config/admission/self-protection.yaml")
	policy := func(namespace, name string, subjects ...any) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"subjects": append([]any{}, subjects...)}}}
		o.SetAPIVersion(v1alpha1.GroupVersion.String())
		o.SetKind(v1alpha1.KindToolPolicy)
		o.SetNamespace(namespace)
		o.SetName(name)
		return o
	}
	for name, test := range map[string]struct {
		subjects []any
		account  string
		isThere  bool
		want     string
	}{
		"selected by name":                       {[]any{"agent", "other"}, "agent", true, "a service account that a policy selects"},
		"selected as all are":                    {nil, "agent", true, "a service account that a policy selects"},
		"not selected, as what applies policies": {[]any{"agent"}, "deployer", true, ""},
		"without any policy yet":                 {nil, "deployer", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := s.Namespace(t)
			binding := &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: "all"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
				Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: test.account}},
			}
			if _, err := s.Client(t).RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			client := dynamic.NewForConfigOrDie(s.ServiceAccount(t, namespace, test.account)).Resource(v1alpha1.GroupVersion.WithResource("toolpolicies")).Namespace(namespace)
			if test.isThere {
				s.ApplyObjects(t, policy(namespace, "guard", test.subjects...))
			}
			attempt := func() error {
				_, err := client.Create(t.Context(), policy(namespace, "mine", "nobody"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				if err == nil && test.isThere {
					err = client.Delete(t.Context(), "guard", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
				}
				return err
			}
			if test.want == "" {
				if err := attempt(); err != nil {
					t.Error(err)
				}
				return
			}
			// An API server learns of a policy, and of what it is evaluated with, a moment later.
			eventually(t, "it is refused", func() bool {
				err := attempt()
				return err != nil && strings.Contains(err.Error(), test.want)
			})
			if err := client.Delete(t.Context(), "guard", metav1.DeleteOptions{}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Delete: %v, want %q", err, test.want)
			}
		})
	}
}
