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

// Nor does one that a cluster policy makes an agent, in any namespace, without any webhook.
func TestAnAgentByAClusterPolicyWritesNoneOfOurKinds(t *testing.T) {
	s := kubetest.Own(t)
	s.Apply(t, "config/admission/self-protection.yaml")
	agents, elsewhere := s.Namespace(t), s.Namespace(t)
	object := func(kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		o.SetAPIVersion(v1alpha1.GroupVersion.String())
		o.SetKind(kind)
		o.SetNamespace(namespace)
		o.SetName(name)
		return o
	}
	for _, account := range []string{agents + "/agent", agents + "-2/agent", elsewhere + "/granted", agents + "-2/granted", elsewhere + "/deployer"} {
		namespace, name, _ := strings.Cut(account, "/")
		s.EnsureNamespace(t, namespace)
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "all-" + namespace + "-" + name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
		}
		if _, err := s.Client(t).RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	s.ApplyObjects(t,
		object(v1alpha1.KindClusterToolPolicy, "", "for-all", map[string]any{}),
		object(v1alpha1.KindClusterToolPolicy, "", "lists", map[string]any{"namespaces": []any{agents}}),
		object(v1alpha1.KindClusterToolPolicy, "", "grants", map[string]any{"grants": []any{
			map[string]any{"namespace": elsewhere, "serviceAccount": "granted", "scopes": []any{"refunds"}},
		}}))
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	acts := map[string]func(client dynamic.Interface) error{
		"create a policy of its namespace": func(client dynamic.Interface) error {
			_, err := client.Resource(v1alpha1.GroupVersion.WithResource("toolpolicies")).Namespace(agents).Create(t.Context(), object(v1alpha1.KindToolPolicy, agents, "mine", map[string]any{}), dry)
			return err
		},
		"create a policy of another namespace": func(client dynamic.Interface) error {
			_, err := client.Resource(v1alpha1.GroupVersion.WithResource("toolpolicies")).Namespace(elsewhere).Create(t.Context(), object(v1alpha1.KindToolPolicy, elsewhere, "mine", map[string]any{}), dry)
			return err
		},
		"create a cluster policy": func(client dynamic.Interface) error {
			_, err := client.Resource(v1alpha1.GroupVersion.WithResource("clustertoolpolicies")).Create(t.Context(), object(v1alpha1.KindClusterToolPolicy, "", "mine", map[string]any{}), dry)
			return err
		},
		"write a status": func(client dynamic.Interface) error {
			all := client.Resource(v1alpha1.GroupVersion.WithResource("clustertoolpolicies"))
			o, err := all.Get(t.Context(), "lists", metav1.GetOptions{})
			if err == nil {
				_, err = all.UpdateStatus(t.Context(), o, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
			}
			return err
		},
		"delete what makes it an agent": func(client dynamic.Interface) error {
			return client.Resource(v1alpha1.GroupVersion.WithResource("clustertoolpolicies")).Delete(t.Context(), "lists", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		},
	}
	const refused = "a service account that a cluster policy lists or grants something"
	for name, test := range map[string]struct {
		namespace, account string
		want               string
	}{
		"one whose namespace is listed":  {agents, "agent", refused},
		"one that is granted something":  {elsewhere, "granted", refused},
		"one that no policy speaks of":   {elsewhere, "deployer", ""},
		"one whose namespace is longer":  {agents + "-2", "agent", ""},
		"one that is granted as another": {agents + "-2", "granted", ""},
	} {
		t.Run(name, func(t *testing.T) {
			client := dynamic.NewForConfigOrDie(s.ServiceAccount(t, test.namespace, test.account))
			if test.want != "" {
				eventually(t, "the policy is in force", func() bool {
					err := acts["create a cluster policy"](client)
					return err != nil && strings.Contains(err.Error(), test.want)
				})
			}
			for act, do := range acts {
				err := do(client)
				if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
					t.Errorf("%s: %v, want %q", act, err, test.want)
				}
			}
		})
	}
}
