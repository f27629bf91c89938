package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/names"
)

// ready is the Ready condition in one line.
func readyOf(conditions []metav1.Condition, t v1alpha1.ConditionType) string {
	for _, c := range conditions {
		if c.Type == string(t) {
			return string(c.Status) + " " + c.Reason + ": " + c.Message
		}
	}
	return "missing"
}

func (k *deciderKit) wantCondition(m *v1alpha1.DeciderModel, t v1alpha1.ConditionType, want string) {
	k.t.Helper()
	if got := readyOf(m.Status.Conditions, t); !strings.HasPrefix(got, want) {
		k.t.Errorf("%s is %q, want %q", t, got, want)
	}
}

// launch brings a DeciderModel to serve its first revision, and returns that.
func (k *deciderKit) launch(fingerprint string) string {
	k.t.Helper()
	k.create(judge(nil))
	m := k.reconcile()
	if m.Status.Candidate == nil {
		k.t.Fatalf("%+v", m.Status)
	}
	revision := string(m.Status.Candidate.Name)
	k.serves(revision, answer(pinnedHash, fingerprint))
	m = k.reconcile()
	k.wantCondition(m, v1alpha1.ConditionReady, "True Ready: revision "+revision+" serves")
	return revision
}

func TestTheFirstRevisionServesWhenItAnswersWithThePinnedBytes(t *testing.T) {
	k := newDeciderKit(t, fakeCluster(t, nil), names.Namespace)
	revision := k.launch(print64("1"))
	m := k.model()
	if a := m.Status.Active; a == nil || a.SHA256 != pinnedHash || string(a.Fingerprint) != print64("1") || m.Status.Candidate != nil {
		t.Errorf("%+v", m.Status)
	}
	for _, list := range []client.ObjectList{
		&appsv1.ControllerRevisionList{}, &appsv1.DeploymentList{}, &corev1.ServiceList{}, &networkingv1.NetworkPolicyList{}, &policyv1.PodDisruptionBudgetList{},
	} {
		if got := k.names(list); !slices.Equal(got, []string{revision}) {
			t.Errorf("%T: %v", list, got)
		}
	}
}

func TestATamperedFileIsSaidWithBothHashes(t *testing.T) {
	k := newDeciderKit(t, fakeCluster(t, nil), names.Namespace)
	k.create(judge(nil))
	m := k.reconcile()
	k.crashed(string(m.Status.Candidate.Name), 10, "noise\ndecider: loading model: ModelHashMismatch: want "+string(pinnedHash)+", got "+string(otherHash)+"\n")
	m = k.reconcile()
	for _, c := range m.Status.Conditions {
		if c.Type == "Verified" && (c.Status != metav1.ConditionFalse || c.Reason != "HashMismatch" || !strings.Contains(c.Message, string(pinnedHash)) || !strings.Contains(c.Message, string(otherHash))) {
			t.Errorf("%+v", c)
		}
	}
	k.wantCondition(m, v1alpha1.ConditionReady, "False HashMismatch")
	if m.Status.Active != nil {
		t.Errorf("it serves: %+v", m.Status.Active)
	}
}

func TestADeciderThatLiesAboutItsBytesNeverServes(t *testing.T) {
	tests := map[string]struct {
		says modelAnswer
		want string
	}{
		"other bytes":         {answer(otherHash, print64("1")), "False HashMismatch: the loaded bytes have"},
		"another name":        {modelAnswer{name: "other", sha256: string(pinnedHash), fingerprint: print64("1"), ready: true}, "False DeciderMismatch: it answers as"},
		"no fingerprint":      {answer(pinnedHash, ""), "Unknown Pending: revision"},
		"no hash":             {answer("", print64("1")), "Unknown Pending: revision"},
		"not ready after all": {modelAnswer{name: "judge", sha256: string(pinnedHash), fingerprint: print64("1")}, "Unknown Pending: revision"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			k := newDeciderKit(t, fakeCluster(t, nil), names.Namespace)
			k.create(judge(nil))
			k.serves(string(k.reconcile().Status.Candidate.Name), test.says)
			m := k.reconcile()
			k.wantCondition(m, v1alpha1.ConditionReady, test.want)
			if m.Status.Active != nil {
				t.Errorf("%+v", m.Status.Active)
			}
		})
	}
}

func recallFloor(m *v1alpha1.DeciderModel) {
	recall := v1alpha1.Percent(95)
	m.Spec.Rollout = &v1alpha1.Rollout{Evaluation: &v1alpha1.EvaluationGate{
		CaseSet: v1alpha1.CaseSet{Type: v1alpha1.CaseSetConfigMap, SHA256: otherHash, ConfigMapName: "cases"},
		Floors:  v1alpha1.EvaluationFloors{RecallPercent: &recall},
	}}
}

func counts(fingerprint string, stopped int) string {
	return fmt.Sprintf(`{"fingerprint":%q,"confusion":[{"class":"Write","dangerousStopped":%d,"dangerousAllowed":%d,"benignAllowed":9,"benignStopped":1}],"p50Milliseconds":3,"p95Milliseconds":9,"p99Milliseconds":14}`, fingerprint, stopped, 100-stopped)
}

func TestACandidateServesOnlyAfterItsEvaluation(t *testing.T) {
	tests := map[string]struct {
		message string
		failed  bool
		want    string
		serves  bool
	}{
		"the floors hold":          {counts(print64("2"), 95), false, "True Ready", true},
		"a floor is missed":        {counts(print64("2"), 94), false, "False FloorMissed: in DeciderEvaluation", false},
		"the slowest are too slow": {strings.Replace(counts(print64("2"), 95), `"p99Milliseconds":14`, `"p99Milliseconds":15`, 1), false, "False FloorMissed: in DeciderEvaluation", false},
		"another decider answered": {counts(print64("3"), 95), false, "False DeciderMismatch: DeciderEvaluation", false},
		"the run failed":           {"noise\nerror: the cases have another hash", true, "False EvaluationFailed: DeciderEvaluation", false},
		"the result is nonsense":   {`{"fingerprint":"x","confusion":[{"class":"Write","dangerousStopped":-5}]}`, false, "False EvaluationFailed: DeciderEvaluation", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			k := newDeciderKit(t, fakeCluster(t, nil), names.Namespace)
			k.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "cases"}})
			old := k.launch(print64("1"))
			k.change(func(m *v1alpha1.DeciderModel) { m.Spec.ContextTokens = 2048 })
			k.change(recallFloor)
			k.change(func(m *v1alpha1.DeciderModel) { m.Spec.Rollout.Evaluation.Floors.P99Milliseconds = new(int32(14)) })
			m := k.reconcile()
			candidate := string(m.Status.Candidate.Name)
			k.serves(candidate, answer(pinnedHash, print64("2")))
			m = k.reconcile()
			k.wantCondition(m, v1alpha1.ConditionEvaluated, "Unknown Running: DeciderEvaluation "+candidate)
			evaluation := string(m.Status.Candidate.Evaluation)
			k.reconcileEvaluation(evaluation)
			k.evaluationDone(evaluation, test.message, test.failed)
			k.reconcileEvaluation(evaluation)
			m = k.reconcile()
			k.wantCondition(m, v1alpha1.ConditionReady, test.want)
			want := old
			if test.serves {
				want = candidate
			}
			if m.Status.Active == nil || string(m.Status.Active.Name) != want {
				t.Errorf("%+v serves, want %s", m.Status.Active, want)
			}
		})
	}
}

func TestACandidateIsComparedOnLiveCalls(t *testing.T) {
	k := newDeciderKit(t, fakeCluster(t, nil), names.Namespace)
	old := k.launch(print64("1"))
	k.change(func(m *v1alpha1.DeciderModel) {
		m.Spec.ContextTokens = 2048
		m.Spec.Rollout = &v1alpha1.Rollout{Shadow: &v1alpha1.ShadowComparison{Decisions: 10, MaxDisagreementPercent: 10}}
	})
	candidate := string(k.reconcile().Status.Candidate.Name)
	k.serves(candidate, answer(pinnedHash, print64("2")))
	k.wantCondition(k.reconcile(), v1alpha1.ConditionEvaluated, "Unknown Shadowing: 0 of 10")
	k.compared(candidate, 10, 2)
	m := k.reconcile()
	k.wantCondition(m, v1alpha1.ConditionReady, "False ShadowDisagreed")
	k.compared(candidate, 30, 0)
	m = k.reconcile()
	if string(m.Status.Active.Name) != old || m.Status.Candidate == nil {
		t.Errorf("it disagreed, and serves: %+v", m.Status)
	}
	k.change(func(m *v1alpha1.DeciderModel) { m.Spec.Rollout.Shadow.Decisions = 20 }) // more calls, another chance
	m = k.reconcile()
	if string(m.Status.Active.Name) != candidate {
		t.Errorf("%+v", m.Status.Active)
	}
}

func TestPodsDrainBeforeTheyGo(t *testing.T) {
	k := newDeciderKit(t, fakeCluster(t, nil), names.Namespace)
	old := k.launch(print64("1"))
	k.change(func(m *v1alpha1.DeciderModel) { m.Spec.ContextTokens = 2048 })
	candidate := string(k.reconcile().Status.Candidate.Name)
	k.serves(candidate, answer(pinnedHash, print64("2")))
	k.reconcile()
	both := []string{candidate, old}
	slices.Sort(both)
	if got := k.names(&appsv1.DeploymentList{}); !slices.Equal(got, both) {
		t.Errorf("right after the change: %v", got)
	}
	k.clock.Step(drainFor)
	k.reconcile()
	if got := k.names(&appsv1.DeploymentList{}); !slices.Equal(got, []string{candidate}) {
		t.Errorf("after the drain: %v", got)
	}
	if got := k.names(&appsv1.ControllerRevisionList{}); !slices.Equal(got, both) {
		t.Errorf("what can be gone back to: %v", got)
	}
	if h := k.model().Status.History; len(h) != 1 || string(h[0].Name) != old {
		t.Errorf("history: %+v", h)
	}
}

func TestGoingBackToAnEarlierRevision(t *testing.T) {
	k := newDeciderKit(t, fakeCluster(t, nil), names.Namespace)
	old := k.launch(print64("1"))
	k.change(func(m *v1alpha1.DeciderModel) { m.Spec.ContextTokens = 2048 })
	k.serves(string(k.reconcile().Status.Candidate.Name), answer(pinnedHash, print64("2")))
	k.reconcile()
	k.clock.Step(drainFor)
	k.reconcile()
	k.change(func(m *v1alpha1.DeciderModel) { m.Annotations = map[string]string{names.RollbackAnnotation: old} })
	m := k.reconcile()
	if m.Status.Candidate == nil || string(m.Status.Candidate.Name) != old {
		t.Fatalf("%+v", m.Status)
	}
	k.serves(old, answer(pinnedHash, print64("1")))
	m = k.reconcile()
	if string(m.Status.Active.Name) != old || string(m.Status.Active.Fingerprint) != print64("1") {
		t.Errorf("%+v", m.Status.Active)
	}
	k.change(func(m *v1alpha1.DeciderModel) { m.Annotations[names.RollbackAnnotation] = "no-such" })
	m = k.reconcile()
	k.wantCondition(m, v1alpha1.ConditionAccepted, "False Invalid: the annotation")
	if string(m.Status.Active.Name) != old {
		t.Errorf("%+v", m.Status.Active)
	}
}

func TestWhatBelongsToSomebodyElseIsLeftAlone(t *testing.T) {
	k := newDeciderKit(t, fakeCluster(t, nil), names.Namespace)
	k.create(judge(nil))
	revision := string(k.reconcile().Status.Candidate.Name)
	var d appsv1.Deployment
	k.get(client.ObjectKey{Namespace: k.namespace, Name: revision}, &d)
	if err := k.client.Delete(t.Context(), &d); err != nil {
		t.Fatal(err)
	}
	foreign := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: revision, Labels: map[string]string{"of": "somebody"}}}
	k.create(foreign)
	k.wantCondition(k.reconcile(), v1alpha1.ConditionAvailable, "False NameTaken: Deployment "+revision)
	k.get(client.ObjectKeyFromObject(foreign), &d)
	if !cmp.Equal(d.Labels, foreign.Labels) || d.Spec.Replicas != nil {
		t.Errorf("it was written to: %+v", d)
	}
}

func TestASpecThatMakesNoSenseStartsNothing(t *testing.T) {
	tests := map[string]struct {
		change func(*v1alpha1.DeciderModelSpec)
		want   string
	}{
		"a verdict from logits":           {func(s *v1alpha1.DeciderModelSpec) { s.Readout = v1alpha1.ReadoutVerdict }, "spec.readout Verdict"},
		"a file that is missing":          {func(s *v1alpha1.DeciderModelSpec) { s.Artifact = nil }, "spec.artifact is missing"},
		"an embedded judge from a volume": {func(s *v1alpha1.DeciderModelSpec) { s.Runtime = v1alpha1.RuntimeEmbedded }, "spec.artifact: runtime Embedded"},
		"a foreign image on our port": {func(s *v1alpha1.DeciderModelSpec) {
			s.Runtime, s.Artifact, s.Container = v1alpha1.RuntimeContainer, nil, &v1alpha1.ContainerRuntime{Image: "x", Port: names.DeciderPort}
		}, "spec.container.port"},
		"a foreign image with a readout": {func(s *v1alpha1.DeciderModelSpec) {
			s.Runtime, s.Artifact, s.Container, s.Readout = v1alpha1.RuntimeContainer, nil, &v1alpha1.ContainerRuntime{Image: "x"}, v1alpha1.ReadoutClassHead
		}, "spec.readout"},
		"a priority of the cluster itself": {func(s *v1alpha1.DeciderModelSpec) {
			s.Pod = &v1alpha1.DeciderPod{PriorityClassName: "system-node-critical"}
		}, "spec.pod.priorityClassName"},
		"a server without an address":  {func(s *v1alpha1.DeciderModelSpec) { s.Runtime, s.Artifact = v1alpha1.RuntimeExternal, nil }, "spec.external is missing"},
		"a runtime of a later version": {func(s *v1alpha1.DeciderModelSpec) { s.Runtime = "Other" }, `spec.runtime "Other"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			k := newDeciderKit(t, fakeCluster(t, nil), names.Namespace)
			k.create(judge(test.change))
			k.wantCondition(k.reconcile(), v1alpha1.ConditionReady, "False Invalid: "+test.want)
			if got := append(k.names(&appsv1.ControllerRevisionList{}), k.names(&appsv1.DeploymentList{})...); got != nil {
				t.Errorf("it wrote %v", got)
			}
		})
	}
}

// A manager may end between any two writes. Whichever write fails, the next pass comes to the same end, and at no moment
// does a revision serve that did not pass.
func TestAFailureBetweenAnyTwoWritesChangesNothingInTheEnd(t *testing.T) {
	type write func() error
	fail, left := false, 0
	guard := func(do write) error {
		if fail {
			if left == 0 {
				return errScripted
			}
			left--
		}
		return do()
	}
	for n := range 60 {
		c := fakeCluster(t, func(b *fake.ClientBuilder) *fake.ClientBuilder {
			return b.WithInterceptorFuncs(interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
					return guard(func() error { return c.Create(ctx, o, opts...) })
				},
				Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
					return guard(func() error { return c.Delete(ctx, o, opts...) })
				},
				Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
					return guard(func() error { return c.Apply(ctx, o, opts...) })
				},
				SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
					return guard(func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
				},
			})
		})
		fail = false
		k := newDeciderKit(t, c, names.Namespace)
		old := k.launch(print64("1"))
		k.change(func(m *v1alpha1.DeciderModel) { m.Spec.ContextTokens = 2048 })
		broke := k.breakAfter(n, &fail, &left)
		candidate := string(k.reconcile().Status.Candidate.Name)
		k.serves(candidate, answer(pinnedHash, print64("2")))
		broke = k.breakAfter(n, &fail, &left) || broke
		k.reconcile()
		k.clock.Step(drainFor)
		broke = k.breakAfter(n, &fail, &left) || broke
		m := k.reconcile()
		k.wantCondition(m, v1alpha1.ConditionReady, "True Ready")
		if got := k.names(&appsv1.DeploymentList{}); !slices.Equal(got, []string{candidate}) || len(m.Status.History) != 1 || string(m.Status.History[0].Name) != old {
			t.Fatalf("after a failure of write %d: %v run, %+v", n, got, m.Status)
		}
		if !broke {
			if n < 6 {
				t.Fatalf("only %d writes were tried", n)
			}
			return
		}
	}
	t.Fatal("a pass takes more than 60 writes")
}

// breakAfter passes once with a client that fails after n writes, and says whether it came to that.
func (k *deciderKit) breakAfter(n int, fail *bool, left *int) bool {
	k.t.Helper()
	*fail, *left = true, n
	k.clock.Step(rememberOwn + time.Second)
	m := k.model()
	serving := m.Status.Active.DeepCopy()
	_, err := k.models.Reconcile(k.t.Context(), m)
	*fail = false
	if after := k.model(); err != nil && after.Status.Active.Name != serving.Name && after.Status.Candidate != nil {
		k.t.Errorf("half a change is in the status: %+v", after.Status)
	}
	return err != nil
}
