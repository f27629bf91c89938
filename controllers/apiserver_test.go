package controllers

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/deciders"
	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/kubetest"
	"gatewright.dev/gatewright/internal/names"
	"gatewright.dev/gatewright/internal/served"
	"gatewright.dev/gatewright/internal/testkit"
)

// scaleVariable set to 1 lets the test of many policies take 1,000 of them and 50 deciders.
const scaleVariable = "GATEWRIGHT_SCALE"

// cluster is a real API server with the manager's controllers and fake gates.
type cluster struct {
	client.Client
	server *kubetest.Server
	gates  *fakeGates
	writes *writes
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	s := kubetest.Own(t)
	c, err := client.New(s.Config(), client.Options{Scheme: schemeOf(t)})
	if err != nil {
		t.Fatal(err)
	}
	s.EnsureNamespace(t, names.Namespace)
	return &cluster{Client: c, server: s, gates: newFakeGates(t), writes: &writes{}}
}

func schemeOf(t *testing.T) *runtime.Scheme {
	t.Helper()
	s, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// manage runs controllers until the function that it gives is called.
func (c *cluster) manage(t *testing.T, setup func(ctrl.Manager, Options) error) (stop func()) {
	t.Helper()
	skip := true
	mgr, err := ctrl.NewManager(c.server.Config(), ctrl.Options{
		Scheme: schemeOf(t), Cache: CacheOptions(names.Namespace), Logger: logr.Discard(),
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: config.Controller{SkipNameValidation: &skip},
		NewClient: func(config *rest.Config, options client.Options) (client.Client, error) {
			inner, err := client.NewWithWatch(config, options)
			if err != nil {
				return nil, err
			}
			return interceptor.NewClient(inner, c.writes.funcs()), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := setup(mgr, Options{GatePoll: 100 * time.Millisecond, Client: c.gates.client(), Registry: prometheus.NewRegistry()}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// counted are the passes of the controller of ToolPolicies, over all managers of this process.
type counted struct {
	reconciler reconcile.Reconciler
	passes     prometheus.Counter
}

func (c counted) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	c.passes.Inc()
	return c.reconciler.Reconcile(ctx, r)
}

// eventually waits for something to hold, and says what held instead.
func eventually(t *testing.T, what string, within time.Duration, check func() string) {
	t.Helper()
	deadline := time.After(within)
	for {
		wrong := check()
		if wrong == "" {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%s: after %s still %s", what, within, wrong)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// settled waits until a number has stayed the same for a while, and gives it.
func settled(t *testing.T, number func() int) int {
	t.Helper()
	last, same := number(), 0
	for same < 10 {
		<-time.After(50 * time.Millisecond)
		if now := number(); now == last {
			same++
		} else {
			last, same = now, 0
		}
	}
	return last
}

func (c *cluster) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatalf("creating %s: %v", o.GetName(), err)
		}
	}
}

// withReason counts policies by the reason of Ready.
func (c *cluster) reasons(t *testing.T) map[string]int {
	t.Helper()
	var list v1alpha1.ToolPolicyList
	if err := c.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for i := range list.Items {
		conditions := list.Items[i].Status.Conditions
		if len(conditions) == 0 {
			out["none"]++
			continue
		}
		out[conditions[len(conditions)-1].Reason]++
	}
	return out
}

// serving lets a gate serve a generation of every policy.
func (c *cluster) serving(t *testing.T, address string, generation int64) {
	t.Helper()
	var list v1alpha1.ToolPolicyList
	if err := c.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	report := &served.Report{Policies: map[string]int64{}}
	for i := range list.Items {
		report.Policies[served.PolicyKey(list.Items[i].Namespace, list.Items[i].Name)] = generation
	}
	c.gates.set(address, report)
}

// TestManyPoliciesAreReconciledOnce counts passes and writes for many policies: as many as there are changes, and none
// for what changes nothing.
func TestManyPoliciesAreReconciledOnce(t *testing.T) {
	policies, deciders := 100, 5
	if os.Getenv(scaleVariable) == "1" {
		policies, deciders = 1000, 50
	}
	c := startCluster(t)
	ns := c.server.Namespace(t)
	passes := prometheus.NewCounter(prometheus.CounterOpts{Name: "passes_total", Help: "Passes."})
	setup := func(mgr ctrl.Manager, o Options) error {
		return setupCounted(mgr, o, passes)
	}
	for i := range deciders {
		m := goodDecider()
		m.Name = fmt.Sprintf("judge-%d", i)
		m.Spec.Artifact = &v1alpha1.Artifact{Type: v1alpha1.ArtifactBundled, SHA256: pinnedHash, Bundled: &v1alpha1.BundledArtifact{Name: "judge"}}
		status := m.Status
		c.create(t, m)
		m.Status = status
		m.Status.Conditions[0].LastTransitionTime = metav1.Now()
		if err := c.Status().Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	for i := range policies {
		p := testkit.ToolPolicy(fmt.Sprintf("p-%d", i), testkit.InNamespace(ns), testkit.WithTool("db.get", "ReadOnly"))
		p.Spec.DeciderRef = &v1alpha1.DeciderReference{Name: v1alpha1.ObjectName(fmt.Sprintf("judge-%d", i%deciders)), Fingerprint: testPrint}
		c.create(t, p)
	}
	c.create(t, slice("gates", map[string]string{"gate-0": "10.0.0.1"}))
	const address = "10.0.0.1:8081"
	c.serving(t, address, 1)

	count := func() (int, int) {
		both := settled(t, func() int { return int(testutil.ToFloat64(passes))*1_000_000 + c.writes.total() })
		return both / 1_000_000, both % 1_000_000
	}
	var lastPasses, lastWrites int
	expect := func(what string, ready, minPasses, maxPasses, wantWrites int) {
		t.Helper()
		eventually(t, what, time.Minute, func() string {
			if n := c.reasons(t)[string(v1alpha1.ReasonReady)]; n != ready {
				return fmt.Sprintf("%d of %d policies are Ready, want %d: %v", n, policies, ready, c.reasons(t))
			}
			return ""
		})
		nowPasses, nowWrites := count()
		p, w := nowPasses-lastPasses, nowWrites-lastWrites
		t.Logf("%s: %d passes, %d writes", what, p, w)
		if p > maxPasses || w != wantWrites {
			t.Errorf("%s: %d passes and %d writes, want at most %d and just %d", what, p, w, maxPasses, wantWrites)
		}
		lastPasses, lastWrites = nowPasses, nowWrites
	}

	stop := c.manage(t, setup)
	// Two for each: the policy is there, and the gates were heard of. The second write is there only if the first pass came
	// before the gates had spoken.
	eventually(t, "start", time.Minute, func() string {
		if n := c.reasons(t)[string(v1alpha1.ReasonReady)]; n != policies {
			return fmt.Sprint(c.reasons(t))
		}
		return ""
	})
	lastPasses, lastWrites = count()
	t.Logf("start: %d passes, %d writes for %d policies", lastPasses, lastWrites, policies)
	if lastPasses > 2*policies+deciders || lastWrites > 2*policies || lastWrites < policies {
		t.Errorf("start: %d passes and %d writes for %d policies", lastPasses, lastWrites, policies)
	}

	share := policies / deciders
	var m v1alpha1.DeciderModel
	if err := c.Get(t.Context(), client.ObjectKey{Name: "judge-0"}, &m); err != nil {
		t.Fatal(err)
	}
	m.Labels = map[string]string{"changed": "yes"}
	if err := c.Update(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
	expect("a label of a decider changes", policies, 0, 0, 0)
	m.Status.Active.Fingerprint = "sha256:other"
	if err := c.Status().Update(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
	expect("a decider serves another fingerprint", policies-share, share, share, share)
	m.Status.Active.Fingerprint = testPrint
	if err := c.Status().Update(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
	expect("it serves the first again", policies, share, share, share)

	c.serving(t, "10.0.0.2:8081", 1)
	c.create(t, slice("more", map[string]string{"gate-1": "10.0.0.2"}))
	eventually(t, "the gate that came is asked", time.Minute, func() string {
		if c.gates.askedOf("10.0.0.2:8081") == 0 {
			return "not asked"
		}
		return ""
	})
	good := c.gates.set(address, "broken")
	asked := c.gates.askedOf(address)
	eventually(t, "the other gate fails once", time.Minute, func() string {
		if c.gates.askedOf(address) == asked {
			return "not asked"
		}
		return ""
	})
	c.gates.set(address, good)
	expect("another gate comes, and one is slow for a moment", policies, 0, 2*policies, 0)

	stop()
	c.manage(t, setup)
	expect("the manager starts anew", policies, policies, 2*policies+deciders, 0)
}

// total is how many writes there were.
func (w *writes) total() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count
}

// setupCounted sets up the controller of ToolPolicies alone, and counts its passes.
func setupCounted(mgr ctrl.Manager, o Options, passes prometheus.Counter) error {
	o.setDefaults()
	p := &parts{Options: o, events: &recorder{}, gates: newGates(mgr.GetClient(), o)}
	if err := mgr.Add(p.gates); err != nil {
		return err
	}
	return setupPolicyKind(mgr, p, toolPolicies(), func(r reconcile.Reconciler) reconcile.Reconciler { return counted{r, passes} })
}

// TestManagerOnAnAPIServer runs every controller. What it shows is that they work with real watches, real caches, real
// conflicts, and the kinds as they are installed.
func TestManagerOnAnAPIServer(t *testing.T) {
	c := startCluster(t)
	c.create(t, slice("gates", map[string]string{"gate-0": "10.0.0.1"}))
	c.gates.set("10.0.0.1:8081", &served.Report{Policies: map[string]int64{}})
	ns := c.server.Namespace(t)
	before := testkit.ToolPolicy("orders", testkit.InNamespace(ns), testkit.WithTool("db.get", "ReadOnly"))
	c.create(t, before)
	t.Run("a policy that nobody has looked at is in progress", func(t *testing.T) { c.wantStatus(t, before, status.InProgressStatus) })
	c.manage(t, Setup)

	t.Run("certificates and keys are made", func(t *testing.T) {
		for _, name := range append(leafSecrets, names.AuthoritySecret, names.GateKeysSecret) {
			eventually(t, name, 20*time.Second, func() string {
				err := c.Get(t.Context(), client.ObjectKey{Namespace: names.Namespace, Name: name}, &corev1.Secret{})
				return errorTextOf(err)
			})
		}
	})
	t.Run("a namespace gets the authority when it is labelled, and loses it", func(t *testing.T) {
		label := func(value string) {
			var n corev1.Namespace
			if err := c.Get(t.Context(), client.ObjectKey{Name: ns}, &n); err != nil {
				t.Fatal(err)
			}
			n.Labels[names.InjectLabel] = value
			if err := c.Update(t.Context(), &n); err != nil {
				t.Fatal(err)
			}
		}
		bundle := func() string {
			var m corev1.ConfigMap
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: names.AuthorityConfigMap}, &m); err != nil {
				return errorTextOf(err)
			}
			return m.Data["ca.crt"]
		}
		label(names.InjectEnabled)
		eventually(t, "labelled", 20*time.Second, func() string {
			if got := bundle(); !strings.Contains(got, "BEGIN CERTIFICATE") {
				return got
			}
			return ""
		})
		var m corev1.ConfigMap
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: names.AuthorityConfigMap}, &m); err != nil {
			t.Fatal(err)
		}
		m.Data["ca.crt"] = "trust me"
		if err := c.Update(t.Context(), &m); err != nil {
			t.Fatal(err)
		}
		eventually(t, "changed by somebody", 20*time.Second, func() string {
			if got := bundle(); !strings.Contains(got, "BEGIN CERTIFICATE") {
				return got
			}
			return ""
		})
		label("no")
		eventually(t, "not labelled", 20*time.Second, func() string {
			if got := bundle(); strings.Contains(got, "BEGIN CERTIFICATE") {
				return got
			}
			return ""
		})
	})
	t.Run("a policy is Ready when the gate serves it, and not before", func(t *testing.T) {
		eventually(t, "not served", 20*time.Second, func() string { return c.wantReason(t, before, v1alpha1.ReasonGenerationNotServed) })
		c.wantStatus(t, before, status.InProgressStatus)
		c.serving(t, "10.0.0.1:8081", 1)
		c.kubectlWait(t, "toolpolicy/orders", "-n", ns)
		c.wantStatus(t, before, status.CurrentStatus)
	})
	t.Run("a cluster policy", func(t *testing.T) {
		p := testkit.ClusterToolPolicy("floor", testkit.WithTool("db.get", "ReadOnly"))
		c.create(t, p)
		c.gates.set("10.0.0.1:8081", &served.Report{Policies: map[string]int64{
			served.PolicyKey(ns, "orders"): 1, served.ClusterPolicyKey("floor"): 1,
		}})
		c.kubectlWait(t, "clustertoolpolicy/floor")
		c.wantStatus(t, p, status.CurrentStatus)
	})
	t.Run("an edited policy is in progress until the gate serves the edit", func(t *testing.T) {
		var p v1alpha1.ToolPolicy
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(before), &p); err != nil {
			t.Fatal(err)
		}
		p.Spec.UnknownTools = v1alpha1.UnknownToolsConfirm
		if err := c.Update(t.Context(), &p); err != nil {
			t.Fatal(err)
		}
		c.wantStatus(t, &p, status.InProgressStatus)
		eventually(t, "not served", 20*time.Second, func() string { return c.wantReason(t, &p, v1alpha1.ReasonGenerationNotServed) })
		c.serving(t, "10.0.0.1:8081", 2)
		c.kubectlWait(t, "toolpolicy/orders", "-n", ns)
	})
	t.Run("an approval", func(t *testing.T) { c.approval(t, ns) })
	t.Run("a decider, and a policy that asks it", func(t *testing.T) { c.decider(t, ns) })
	t.Run("an evaluation", func(t *testing.T) { c.evaluation(t) })
}

// decider follows the judge in the gates, and a policy that was there before it.
func (c *cluster) decider(t *testing.T, ns string) {
	const address = "10.0.0.1:8081"
	p := testkit.ToolPolicy("asking", testkit.InNamespace(ns), testkit.WithTool("db.get", "ReadOnly"))
	p.Spec.DeciderRef = &v1alpha1.DeciderReference{Name: "embedded", Fingerprint: v1alpha1.Fingerprint(inference.EmbeddedFingerprint())}
	c.create(t, p)
	c.serving(t, address, 1)
	eventually(t, "without it", 20*time.Second, func() string { return c.wantReason(t, p, v1alpha1.ReasonDeciderNotFound) })
	m := &v1alpha1.DeciderModel{ObjectMeta: metav1.ObjectMeta{Name: "embedded"}}
	m.Spec = v1alpha1.DeciderModelSpec{Runtime: v1alpha1.RuntimeEmbedded, Artifact: &v1alpha1.Artifact{
		Type: v1alpha1.ArtifactBundled, SHA256: v1alpha1.SHA256(deciders.EmbeddedHash()), Bundled: &v1alpha1.BundledArtifact{Name: inference.EmbeddedName},
	}}
	c.create(t, m)
	var active *v1alpha1.DeciderRevision
	eventually(t, "it has a revision that serves", 20*time.Second, func() string {
		var now v1alpha1.DeciderModel
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(m), &now); err != nil {
			return err.Error()
		}
		if active = now.Status.Active; active == nil {
			return fmt.Sprint(states(now.Status.Conditions))
		}
		return ""
	})
	c.serving(t, address, 1)
	report := *c.gates.set(address, nil).(*served.Report)
	report.Deciders = map[string]served.Decider{"embedded": {
		Revision: string(active.Name), Fingerprint: string(active.Fingerprint), SHA256: deciders.EmbeddedHash(), Verified: true, Available: true,
	}}
	c.gates.set(address, &report)
	c.kubectlWait(t, "decidermodel/embedded")
	c.wantStatus(t, m, status.CurrentStatus)
	c.kubectlWait(t, "toolpolicy/asking", "-n", ns)
}

// evaluation follows one whose decider is missing, and gives it the status that follows from a run that ended.
func (c *cluster) evaluation(t *testing.T) {
	e := &v1alpha1.DeciderEvaluation{ObjectMeta: metav1.ObjectMeta{Name: "run"}}
	e.Spec = v1alpha1.DeciderEvaluationSpec{
		DeciderRef: v1alpha1.EvaluatedDecider{Name: "nobody"},
		CaseSet:    v1alpha1.CaseSet{Type: v1alpha1.CaseSetConfigMap, SHA256: pinnedHash, ConfigMapName: "cases"},
	}
	c.create(t, e)
	eventually(t, "it waits", 20*time.Second, func() string { return c.wantReason(t, e, v1alpha1.ReasonPending) })
	c.wantStatus(t, e, status.InProgressStatus)
	eventually(t, "its run ends", 20*time.Second, func() string {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(e), e); err != nil {
			return err.Error()
		}
		complete := condition(v1alpha1.ConditionComplete, metav1.ConditionTrue, v1alpha1.ReasonComplete, "ran")
		complete.ObservedGeneration = e.Generation
		meta.SetStatusCondition(&e.Status.Conditions, complete)
		e.Status.Confusion = []v1alpha1.ClassConfusion{{Class: "Write", DangerousStopped: 5, BenignAllowed: 5}}
		e.Status = assessEvaluation(&evaluationFacts{evaluation: e, now: time.Now()}).status
		return errorTextOf(c.Status().Update(t.Context(), e))
	})
	c.kubectlWait(t, "deciderevaluation/run")
	c.wantStatus(t, e, status.CurrentStatus)
}

// approval follows one from raised to decided and used.
func (c *cluster) approval(t *testing.T, ns string) {
	a := fullApproval(ns)
	c.create(t, a)
	eventually(t, "raised", 20*time.Second, func() string { return c.wantReason(t, a, v1alpha1.ReasonPending) })
	c.wantStatus(t, a, status.InProgressStatus)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(a), a); err != nil {
		t.Fatal(err)
	}
	a.Spec.Decision = &v1alpha1.ApprovalDecision{Outcome: v1alpha1.Approve, By: &v1alpha1.Approver{Type: v1alpha1.ApproverKubernetesUser, Name: "jane"}}
	if err := c.Update(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	c.kubectlWait(t, "toolapproval/"+a.Name, "-n", ns)
	c.wantStatus(t, a, status.CurrentStatus)
	lease := useLease(time.Now(), time.Minute)
	c.create(t, lease)
	eventually(t, "used", 20*time.Second, func() string {
		var now v1alpha1.ToolApproval
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(a), &now); err != nil {
			return err.Error()
		}
		want := []string{"Decided=True Approved", "Consumed=True Consumed", "Expired=Unknown Pending", "Ready=True Approved"}
		return cmp.Diff(want, states(now.Status.Conditions))
	})
}

func fullApproval(ns string) *v1alpha1.ToolApproval {
	digest := v1alpha1.Digest("sha256:" + strings.Repeat("a", 64))
	a := &v1alpha1.ToolApproval{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "call-1"}}
	a.Spec.Seal = "sealed"
	a.Spec.Call = v1alpha1.PendingCall{
		ID: callID, CallKey: digest, Caller: ns + "/agent", Tool: "db.delete", Class: "Destructive", ArgumentsDigest: digest, Arguments: "{}",
		UserTurnsDigest: digest, PolicyDigest: digest, Message: "Delete it?", ConfirmReasons: []string{"policy/rule/reason"},
		Approvers: v1alpha1.AllowedApprovers{SelfApproval: "Forbid"}, RaisedAt: metav1.Now(), ExpiresAt: metav1.NewTime(time.Now().Add(time.Hour)),
	}
	return a
}

func errorTextOf(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

// wantReason says what the reason of Ready is instead of a wanted one.
func (c *cluster) wantReason(t *testing.T, o client.Object, want v1alpha1.ConditionReason) string {
	t.Helper()
	u := c.get(t, o)
	conditions, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range conditions {
		if m, ok := one.(map[string]any); ok && m["type"] == string(v1alpha1.ConditionReady) {
			if m["reason"] == string(want) {
				return ""
			}
			return fmt.Sprint(m)
		}
	}
	return "not there"
}

func (c *cluster) get(t *testing.T, o client.Object) *unstructured.Unstructured {
	t.Helper()
	kind, err := c.GroupVersionKindFor(o)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), u); err != nil {
		t.Fatal(err)
	}
	return u
}

// wantStatus compares what tools that follow kstatus see of an object.
func (c *cluster) wantStatus(t *testing.T, o client.Object, want status.Status) {
	t.Helper()
	u := c.get(t, o)
	got, err := status.Compute(u)
	if err != nil {
		t.Fatal(err)
	}
	if got.Status != want {
		t.Errorf("%s is %s (%s), want %s: %v", o.GetName(), got.Status, got.Message, want, u.Object["status"])
	}
}

// kubectlWait waits with kubectl until an object is Ready.
func (c *cluster) kubectlWait(t *testing.T, args ...string) {
	t.Helper()
	kubeconfig := c.server.KubeconfigOf(t, c.server.Config())
	out, err := c.server.Kubectl(t, kubeconfig, append([]string{"wait", "--for=condition=Ready", "--timeout=20s"}, args...)...)
	if err != nil {
		t.Errorf("kubectl wait %s: %v: %s", strings.Join(args, " "), err, out)
	}
}
