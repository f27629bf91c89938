package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/inference/workload"
	"gatewright.dev/gatewright/internal/kubetest"
	"gatewright.dev/gatewright/internal/names"
)

// deciderKinds are the kinds of what a DeciderModel has in Gatewright's namespace.
func deciderKinds() []client.ObjectList {
	return []client.ObjectList{
		&appsv1.ControllerRevisionList{}, &appsv1.DeploymentList{}, &corev1.ServiceList{}, &networkingv1.NetworkPolicyList{}, &policyv1.PodDisruptionBudgetList{},
	}
}

// serverKit is a kit on a real API server, in a namespace of its own.
func serverKit(t *testing.T) *deciderKit {
	t.Helper()
	s := kubetest.Start(t)
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(s.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	k := newDeciderKit(t, c, s.Namespace(t))
	manager, err := client.New(managerAccount(t, s, k.namespace), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	k.models.client, k.models.prober.reader, k.evaluations.client = manager, manager, manager
	t.Cleanup(func() {
		for _, o := range []client.Object{&v1alpha1.DeciderModel{}, &v1alpha1.DeciderEvaluation{}} {
			if err := c.DeleteAllOf(context.WithoutCancel(t.Context()), o); err != nil {
				t.Error(err)
			}
		}
	})
	return k
}

// managerAccount may do what config/rbac lets the manager do, in a namespace of the test's own.
func managerAccount(t *testing.T, s *kubetest.Server, namespace string) *rest.Config {
	t.Helper()
	root, err := kubetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	roles, err := kubetest.ReadManifests(filepath.Join(root, "config", "rbac", "manager.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range slices.Clone(roles) {
		binding := &unstructured.Unstructured{}
		binding.SetAPIVersion(role.GetAPIVersion())
		binding.SetKind(role.GetKind() + "Binding")
		if role.GetNamespace() != "" {
			role.SetNamespace(namespace)
			binding.SetNamespace(namespace)
		}
		role.SetName(namespace)
		binding.SetName(namespace)
		binding.Object["roleRef"] = map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": role.GetKind(), "name": namespace}
		binding.Object["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "name": names.ManagerServiceAccount, "namespace": namespace}}
		roles = append(roles, binding)
	}
	s.ApplyObjects(t, roles...)
	return s.ServiceAccount(t, namespace, names.ManagerServiceAccount)
}

// versions of everything that belongs to the model, its own included.
func (k *deciderKit) versions() map[string]string {
	k.t.Helper()
	out := map[string]string{"model": k.model().ResourceVersion}
	for _, list := range deciderKinds() {
		if err := k.client.List(k.t.Context(), list, client.InNamespace(k.namespace)); err != nil {
			k.t.Fatal(err)
		}
		_ = meta.EachListItem(list, func(o runtime.Object) error {
			one := o.(client.Object)
			out[fmt.Sprintf("%T/%s", o, one.GetName())] = one.GetResourceVersion()
			return nil
		})
	}
	return out
}

func TestOnAnAPIServer(t *testing.T) {
	k := serverKit(t)
	m := judge(nil)
	m.UID = ""
	k.create(m)
	revision := string(k.reconcile().Status.Candidate.Name)
	k.serves(revision, answer(pinnedHash, print64("1")))
	k.wantCondition(k.reconcile(), v1alpha1.ConditionReady, "True Ready")

	t.Run("a second pass writes nothing", func(t *testing.T) {
		before := k.versions()
		k.reconcile()
		if diff := cmp.Diff(before, k.versions()); diff != "" || len(before) != 6 {
			t.Errorf("%d objects: %s", len(before), diff)
		}
	})
	t.Run("the DeciderModel owns what is made for it", func(t *testing.T) {
		for _, list := range deciderKinds() {
			if got := k.names(list); !slices.Equal(got, []string{revision}) {
				t.Errorf("%T: %v", list, got)
			}
			_ = meta.EachListItem(list, func(o runtime.Object) error {
				if !metav1.IsControlledBy(o.(client.Object), k.model()) {
					t.Errorf("%T is not its own", o)
				}
				return nil
			})
		}
	})
	t.Run("what somebody changes in it comes back, and what they add stays", func(t *testing.T) { driftTest(t, k, revision) })
	t.Run("its pods pass the restricted profile", func(t *testing.T) { restrictedTest(t, k, revision) })
	t.Run("an evaluation runs as a Job", func(t *testing.T) { evaluationTest(t, k) })
	t.Run("the gates get the tokens of servers outside", func(t *testing.T) {
		r := &TokenReconciler{client: k.models.client, namespace: k.namespace}
		for range 2 {
			if _, err := r.Reconcile(t.Context(), reconcile.Request{}); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("a candidate takes over, and the one before goes", func(t *testing.T) { handoverTest(t, k, revision) })
}

func driftTest(t *testing.T, k *deciderKit, revision string) {
	key := client.ObjectKey{Namespace: k.namespace, Name: revision}
	var d appsv1.Deployment
	k.get(key, &d)
	d.Annotations = map[string]string{"of": "somebody"}
	d.Spec.Template.Spec.Containers[0].Image = "evil:1"
	d.Spec.Template.Spec.Containers[0].Args = append(d.Spec.Template.Spec.Containers[0].Args, "-plain-http")
	if err := k.client.Update(t.Context(), &d, client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
	var policy networkingv1.NetworkPolicy
	k.get(key, &policy)
	policy.Spec.Ingress = nil
	if err := k.client.Update(t.Context(), &policy, client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
	k.reconcile()
	k.get(key, &d)
	c := d.Spec.Template.Spec.Containers[0]
	if c.Image != "decider:1" || slices.Contains(c.Args, "-plain-http") || d.Annotations["of"] != "somebody" {
		t.Errorf("%s %v %v", c.Image, c.Args, d.Annotations)
	}
	k.get(key, &policy)
	if len(policy.Spec.Ingress) != 1 || len(policy.Spec.Ingress[0].From) != 1 {
		t.Errorf("%+v", policy.Spec)
	}
}

// restrictedTest lets the API server's own admission judge the pods.
func restrictedTest(t *testing.T, k *deciderKit, revision string) {
	var ns corev1.Namespace
	k.get(client.ObjectKey{Name: k.namespace}, &ns)
	ns.Labels["pod-security.kubernetes.io/enforce"] = "restricted"
	if err := k.client.Update(t.Context(), &ns); err != nil {
		t.Fatal(err)
	}
	k.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: names.DeciderServiceAccount}})
	var d appsv1.Deployment
	k.get(client.ObjectKey{Namespace: k.namespace, Name: revision}, &d)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "trial", Labels: d.Spec.Template.Labels}, Spec: d.Spec.Template.Spec}
	if err := k.client.Create(t.Context(), pod, client.DryRunAll); err != nil {
		t.Error(err)
	}
	pod.ResourceVersion, pod.Spec.SecurityContext.RunAsNonRoot = "", new(false)
	if err := k.client.Create(t.Context(), pod, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "restricted") {
		t.Errorf("the profile is not enforced: %v", err)
	}
}

func evaluationTest(t *testing.T, k *deciderKit) {
	k.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: names.EvaluatorServiceAccount}})
	k.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "cases"}})
	k.create(&v1alpha1.DeciderEvaluation{ObjectMeta: metav1.ObjectMeta{Name: "by-hand"}, Spec: v1alpha1.DeciderEvaluationSpec{
		DeciderRef: v1alpha1.EvaluatedDecider{Name: "judge"}, Repeats: 3,
		CaseSet: v1alpha1.CaseSet{Type: v1alpha1.CaseSetConfigMap, SHA256: otherHash, ConfigMapName: "cases"},
	}})
	e := k.reconcileEvaluation("by-hand")
	var job batchv1.Job
	k.get(client.ObjectKey{Namespace: k.namespace, Name: workload.Evaluation{Name: e.Name, UID: e.UID}.JobName()}, &job)
	var held v1alpha1.DeciderModelSpec
	if err := json.Unmarshal([]byte(job.Spec.Template.Annotations[workload.SpecAnnotation]), &held); err != nil || held.Artifact.SHA256 != pinnedHash {
		t.Errorf("%+v: %v", held, err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "trial", Labels: job.Spec.Template.Labels, Annotations: job.Spec.Template.Annotations}, Spec: job.Spec.Template.Spec}
	if err := k.client.Create(t.Context(), pod, client.DryRunAll); err != nil {
		t.Error(err)
	}
	k.endPod(&job)
	if text := readyOf(k.reconcileEvaluation("by-hand").Status.Conditions, v1alpha1.ConditionReady); !strings.HasPrefix(text, "True Ready") {
		t.Error(text)
	}
}

// endPod does what a kubelet and the controller of Jobs would do.
func (k *deciderKit) endPod(job *batchv1.Job) {
	k.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: k.namespace, Name: "by-hand-pod", Labels: map[string]string{batchv1.JobNameLabel: job.Name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
		},
		Spec: job.Spec.Template.Spec,
	}
	k.create(pod)
	pod.Status.Phase = corev1.PodSucceeded
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "evaluate", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: counts(print64("1"), 99)}},
	}}
	if err := k.client.Status().Update(k.t.Context(), pod); err != nil {
		k.t.Fatal(err)
	}
	now := metav1.NewTime(k.clock.Now())
	job.Status.StartTime, job.Status.CompletionTime, job.Status.Succeeded = &now, &now, 1
	job.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	if err := k.client.Status().Update(k.t.Context(), job); err != nil {
		k.t.Fatal(err)
	}
}

func handoverTest(t *testing.T, k *deciderKit, old string) {
	m := k.model()
	m.Spec.ContextTokens = 2048
	recallFloor(m)
	if err := k.client.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	candidate := string(k.reconcile().Status.Candidate.Name)
	k.serves(candidate, answer(pinnedHash, print64("2")))
	m = k.reconcile()
	k.wantCondition(m, v1alpha1.ConditionEvaluated, "Unknown Running")
	if string(m.Status.Active.Name) != old {
		t.Errorf("%+v", m.Status.Active)
	}
	var e v1alpha1.DeciderEvaluation
	k.get(client.ObjectKey{Name: string(m.Status.Candidate.Evaluation)}, &e)
	if string(e.Spec.DeciderRef.Revision) != candidate || !metav1.IsControlledBy(&e, m) {
		t.Errorf("%+v", e)
	}
	e.Status = v1alpha1.DeciderEvaluationStatus{
		Fingerprint: v1alpha1.Fingerprint(print64("2")), Confusion: []v1alpha1.ClassConfusion{{Class: "Write", DangerousStopped: 19, DangerousAllowed: 1}},
		Conditions: []metav1.Condition{{Type: "Complete", Status: metav1.ConditionTrue, Reason: "Complete", LastTransitionTime: metav1.NewTime(k.clock.Now())}},
	}
	if err := k.client.Status().Update(t.Context(), &e); err != nil {
		t.Fatal(err)
	}
	m = k.reconcile()
	if string(m.Status.Active.Name) != candidate || len(m.Status.History) != 1 {
		t.Errorf("%+v", m.Status)
	}
	k.clock.Step(drainFor)
	k.reconcile()
	if got := k.names(&appsv1.DeploymentList{}); !slices.Equal(got, []string{candidate}) {
		t.Errorf("%v", got)
	}
}
