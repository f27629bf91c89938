package webhook

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/names"
	"gatewright.dev/gatewright/internal/testkit"
)

var (
	errNotInjected = errors.New("nothing was injected")
	errTaken       = errors.New("it was taken")
)

const hash = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

// withoutAnAnswer writes while nobody answers the API server: a policy is refused, a pod starts without what is injected,
// and Gatewright's own service accounts write on.
func (a asked) withoutAnAnswer(t *testing.T) {
	t.Helper()
	namespace := a.labelledNamespace(t)
	eventually(t, "the API server to ask for policies", func() error {
		p := testkit.ToolPolicy("nobody-looked-at", testkit.InNamespace(namespace))
		if err := a.client.Create(t.Context(), p); err != nil {
			if !strings.Contains(err.Error(), "failed calling webhook") {
				t.Fatal(err)
			}
			return nil
		}
		return errors.Join(errTaken, a.client.Delete(t.Context(), p))
	})
	pod := agentPod(func(p *corev1.Pod) { p.Namespace = namespace })
	if err := a.client.Create(t.Context(), pod); err != nil {
		t.Errorf("a pod does not start: %v", err)
	} else {
		wantPlain(t, pod)
	}
	manager := a.ServiceAccount(t, names.Namespace, names.ManagerServiceAccount)
	role := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "manager-of-the-test"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{
			{Kind: "ServiceAccount", Namespace: names.Namespace, Name: names.ManagerServiceAccount}, {Kind: "ServiceAccount", Namespace: namespace, Name: "deployer"},
		},
	}
	evaluation := fromYAML(t, `{apiVersion: gatewright.dev/v1alpha1, kind: DeciderEvaluation, metadata: {name: of-the-manager}, spec: {deciderRef: {name: judge}, caseSet: {type: ConfigMap, sha256: `+hash+`, configMapName: c}}}`)
	if err := a.client.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	if err := a.as(t, manager).Create(t.Context(), evaluation); err != nil {
		t.Errorf("the manager's own writes wait for an answer: %v", err)
	}
	a.DeleteObjects(t, evaluation)
	// Any other service account is refused what nobody can look up, also of kinds that no other webhook is asked about.
	if err := a.as(t, a.ServiceAccount(t, namespace, "deployer")).Create(t.Context(), evaluation); err == nil || !strings.Contains(err.Error(), "failed calling webhook \"protect.gatewright.dev\"") {
		t.Errorf("a service account writes while nobody answers: %v", err)
	}
}

// labelledNamespace makes a namespace whose pods are injected.
func (a asked) labelledNamespace(t *testing.T) string {
	t.Helper()
	name := a.Namespace(t)
	var namespace corev1.Namespace
	if err := a.client.Get(t.Context(), client.ObjectKey{Name: name}, &namespace); err != nil {
		t.Fatal(err)
	}
	namespace.Labels[names.InjectLabel] = names.InjectEnabled
	if err := a.client.Update(t.Context(), &namespace); err != nil {
		t.Fatal(err)
	}
	return name
}

// refusesChanges updates what may not be changed.
func (a asked) refusesChanges(t *testing.T) {
	evaluation := `{apiVersion: gatewright.dev/v1alpha1, kind: DeciderEvaluation, metadata: {name: run}, spec: {deciderRef: {name: judge}, caseSet: {type: ConfigMap, sha256: ` + hash + `, configMapName: c}}}`
	tests := map[string]struct{ manifest, from, to, want string }{
		"the spec of an evaluation":  {evaluation, "name: judge", "name: other", "spec cannot be changed: create another DeciderEvaluation"},
		"the case set of evaluation": {evaluation, "configMapName: c", "configMapName: d", "spec cannot be changed: create another DeciderEvaluation"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := fromYAML(t, tt.manifest)
			if err := a.client.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { a.DeleteObjects(t, o) })
			changed := fromYAML(t, strings.Replace(tt.manifest, tt.from, tt.to, 1))
			changed.SetResourceVersion(o.GetResourceVersion())
			if err := a.client.Update(t.Context(), changed); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("err = %v, want it to hold: %s", err, tt.want)
			}
		})
	}
}

// warns updates a policy that exists, and reads what kubectl prints.
func (a asked) warns(t *testing.T) {
	namespace := a.Namespace(t)
	const was = `{"apiVersion":"gatewright.dev/v1alpha1","kind":"ToolPolicy","metadata":{"name":"p"},"spec":{"mode":"Audit"}}`
	warnings, err := a.create(t, a.Config(), "ToolPolicy", namespace, was)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"spec.tools: lists no tool, so every call of the callers is blocked: list the tools that they may call",
		"spec.mode: Audit enforces nothing: calls are decided and recorded, and let through unless another policy objects",
	}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var p v1alpha1.ToolPolicy
	if err := a.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "p"}, &p); err != nil {
		t.Fatal(err)
	}
	if p.Spec.ClarifyLimit != 2 {
		t.Errorf("clarifyLimit = %d: the defaults are not there", p.Spec.ClarifyLimit)
	}
	out, err := a.Kubectl(t, a.KubeconfigOf(t, a.Config()), "patch", "tp", "p", "-n", namespace, "--type=merge", "-p", `{"spec":{"unknownTools":"Defer","clarifyLimit":7}}`)
	if err != nil {
		t.Fatal(out)
	}
	for _, w := range []string{"Warning: loosened: spec.unknownTools: was Block, is Defer", "Warning: loosened: spec.clarifyLimit: was 2, is 7"} {
		if !strings.Contains(out, w) {
			t.Errorf("kubectl prints\n%s\nwant it to hold: %s", out, w)
		}
	}
}

// protects lets service accounts to which RBAC gives everything write what judges them.
func (a asked) protects(t *testing.T) {
	shop, ci := a.Namespace(t), a.Namespace(t)
	role := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "everything-" + shop}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: shop, Name: "agent"}, {Kind: "ServiceAccount", Namespace: ci, Name: "deployer"}, {Kind: "ServiceAccount", Namespace: ci, Name: "runner"}},
	}
	if err := a.client.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.client.Delete(t.Context(), role) })
	policy := testkit.ToolPolicy("p", testkit.InNamespace(shop), testkit.WithTool("db.read", "ReadOnly"))
	if err := a.client.Create(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	agent, deployer := a.ServiceAccount(t, shop, "agent"), a.ServiceAccount(t, ci, "deployer")
	weaker := `{"apiVersion":"gatewright.dev/v1alpha1","kind":"ToolPolicy","metadata":{"name":"mine"},"spec":{"mode":"Audit"}}`
	wantRefused := func(t *testing.T, err error) {
		t.Helper()
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "SelfProtection: "+shop+"/agent is an agent by ToolPolicy/"+shop+"/p") {
			t.Errorf("err = %v, want it refused as SelfProtection", err)
		}
	}
	// The manager sees the policy a moment after it is there.
	eventually(t, "the policy to be seen", func() error {
		if _, err := a.create(t, agent, "ToolPolicy", shop, weaker); err != nil {
			wantRefused(t, err)
			return nil
		}
		return a.client.Delete(t.Context(), &v1alpha1.ToolPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "mine"}})
	})
	t.Run("an agent deletes its policy", func(t *testing.T) {
		wantRefused(t, a.as(t, agent).Delete(t.Context(), policy.DeepCopy()))
	})
	t.Run("an agent writes a status", func(t *testing.T) {
		p := policy.DeepCopy()
		p.Status.ObservedGeneration = 99
		wantRefused(t, a.as(t, agent).Status().Update(t.Context(), p))
	})
	t.Run("an agent writes into another namespace", func(t *testing.T) {
		_, err := a.create(t, agent, "ToolPolicy", ci, weaker)
		wantRefused(t, err)
	})
	t.Run("an agent writes a cluster policy", func(t *testing.T) {
		_, err := a.create(t, agent, "ClusterToolPolicy", "", `{"apiVersion":"gatewright.dev/v1alpha1","kind":"ClusterToolPolicy","metadata":{"name":"mine"},"spec":{}}`)
		wantRefused(t, err)
	})
	t.Run("an agent by a cluster policy writes into another namespace", func(t *testing.T) {
		floor := testkit.ClusterToolPolicy("grants-" + ci)
		floor.Spec.Grants = []v1alpha1.Grant{{Namespace: v1alpha1.Namespace(ci), ServiceAccount: "runner", Scopes: []v1alpha1.Scope{"refunds"}}}
		if err := a.client.Create(t.Context(), floor); err != nil {
			t.Fatal(err)
		}
		a.deleteLater(t, floor)
		a.deleteLater(t, testkit.ToolPolicy("of-the-runner", testkit.InNamespace(shop)))
		a.deleteLater(t, testkit.ClusterToolPolicy("of-the-runner"))
		runner := a.ServiceAccount(t, ci, "runner")
		for kind, namespace := range map[string]string{"ToolPolicy": shop, "ClusterToolPolicy": ""} {
			eventually(t, "its write of a "+kind+" to be refused", func() error {
				_, err := a.create(t, runner, kind, namespace, `{"apiVersion":"gatewright.dev/v1alpha1","kind":"`+kind+`","metadata":{"name":"of-the-runner"},"spec":{}}`)
				if err == nil || !strings.Contains(err.Error(), "SelfProtection: "+ci+"/runner is an agent by ClusterToolPolicy/"+floor.Name) {
					return errors.Join(errTaken, err)
				}
				return nil
			})
		}
	})
	t.Run("an agent reads", func(t *testing.T) {
		if err := a.as(t, agent).Get(t.Context(), client.ObjectKeyFromObject(policy), &v1alpha1.ToolPolicy{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("who deploys is no agent", func(t *testing.T) {
		if _, err := a.create(t, deployer, "ToolPolicy", shop, weaker); err != nil {
			t.Error(err)
		}
	})
}

// deleteLater deletes an object at the end of the test, if it is there.
func (a asked) deleteLater(t *testing.T, o client.Object) {
	t.Cleanup(func() {
		if err := a.client.Delete(context.WithoutCancel(t.Context()), o); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
}

func (a asked) as(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{Scheme: a.client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// injects creates pods as a namespace's own controllers do.
func (a asked) injects(t *testing.T) {
	labelled, plain := a.labelledNamespace(t), a.Namespace(t)
	create := func(t *testing.T, p *corev1.Pod, namespace string) *corev1.Pod {
		t.Helper()
		p.Namespace, p.ResourceVersion, p.UID = namespace, "", ""
		if err := a.client.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	var first *corev1.Pod
	t.Run("a pod of a labelled namespace gets all", func(t *testing.T) {
		eventually(t, "the label to be seen", func() error {
			first = create(t, agentPod(func(p *corev1.Pod) { p.Name, p.GenerateName = "", "agent-" }), labelled)
			if first.Annotations[names.InjectedAnnotation] == "" {
				return errNotInjected
			}
			return nil
		})
		wantEnv := []corev1.EnvVar{
			{Name: "GATEWRIGHT_URL", Value: "https://gatewright-gate.gatewright-system.svc"},
			{Name: "GATEWRIGHT_CA_FILE", Value: "/var/run/secrets/gatewright.dev/ca.crt"},
			{Name: "GATEWRIGHT_TOKEN_FILE", Value: "/var/run/secrets/gatewright.dev/token"},
		}
		if diff := cmp.Diff(wantEnv, first.Spec.Containers[0].Env); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		want := volume()
		mode := corev1.ProjectedVolumeSourceDefaultMode
		want.Projected.DefaultMode = &mode
		if diff := cmp.Diff([]corev1.Volume{want}, first.Spec.Volumes); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("a pod that was given everything is not given more", func(t *testing.T) {
		again := first.DeepCopy()
		again.Name = "again"
		again = create(t, again, labelled)
		if diff := cmp.Diff(first.Spec, again.Spec); diff != "" {
			t.Errorf("(-first +again):\n%s", diff)
		}
	})
	t.Run("a pod that says no is left alone", func(t *testing.T) {
		p := create(t, agentPod(func(p *corev1.Pod) {
			p.Name, p.Labels = "no", map[string]string{names.InjectLabel: names.InjectDisabled}
		}), labelled)
		wantPlain(t, p)
	})
	t.Run("a pod of another namespace is left alone", func(t *testing.T) {
		wantPlain(t, create(t, agentPod(), plain))
	})
}

func wantPlain(t *testing.T, p *corev1.Pod) {
	t.Helper()
	if len(p.Spec.Volumes)+len(p.Spec.Containers[0].Env)+len(p.Annotations) > 0 {
		t.Errorf("it was given %+v", p.Spec)
	}
}
