package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/served"
	"gatewright.dev/gatewright/internal/testkit"
)

// recorder keeps events as text.
type recorder struct {
	mu     sync.Mutex
	events []string
}

func (r *recorder) Eventf(on, _ runtime.Object, kind, reason, action, note string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := on.(client.Object)
	r.events = append(r.events, fmt.Sprintf("%s %s %s on %s", kind, reason, action, o.GetName()))
	if text := fmt.Sprintf(note, args...); text == "" || len(text) > 1024 {
		panic("an event has a text of " + fmt.Sprint(len(text)) + " bytes")
	}
}

func (r *recorder) AnnotatedEventf(on, related runtime.Object, _ map[string]string, kind, reason, action, note string, args ...any) {
	r.Eventf(on, related, kind, reason, action, note, args...)
}

// take gives the events since it was last called.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.events
	r.events = nil
	return out
}

// writes counts what is written, and fails where it is told.
type writes struct {
	mu    sync.Mutex
	count int
	fail  func(n int) error // by number of the write, from 1
}

func (w *writes) next() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count++
	if w.fail == nil {
		return nil
	}
	return w.fail(w.count)
}

func (w *writes) funcs() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if err := w.next(); err != nil {
				return err
			}
			return c.Create(ctx, o, options...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			if err := w.next(); err != nil {
				return err
			}
			return c.Update(ctx, o, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			if err := w.next(); err != nil {
				return err
			}
			return c.Delete(ctx, o, options...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			if err := w.next(); err != nil {
				return err
			}
			return c.Apply(ctx, o, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, of string, o client.Object, p client.Patch, options ...client.SubResourcePatchOption) error {
			if err := w.next(); err != nil {
				return err
			}
			return c.SubResource(of).Patch(ctx, o, p, options...)
		},
	}
}

// bench is a fake API server with what a reconciler is made of.
type bench struct {
	client.Client
	*parts
	*writes
	heard *recorder
	clock *clocktesting.FakeClock
}

func newBench(t *testing.T, objects ...client.Object) *bench {
	t.Helper()
	b := &bench{writes: &writes{}, heard: &recorder{}, clock: clocktesting.NewFakeClock(noon)}
	builder := testScheme(t).WithObjects(objects...).WithInterceptorFuncs(b.funcs()).
		WithStatusSubresource(&v1alpha1.ToolPolicy{}, &v1alpha1.ClusterToolPolicy{}, &v1alpha1.DeciderModel{}, &v1alpha1.ToolApproval{})
	for _, o := range []client.Object{&v1alpha1.ToolPolicy{}, &v1alpha1.ClusterToolPolicy{}} {
		builder = builder.WithIndex(o, deciderIndex, func(o client.Object) []string {
			if p, ok := o.(*v1alpha1.ToolPolicy); ok {
				return decidersOf(&p.Spec.PolicyRules)
			}
			return decidersOf(&o.(*v1alpha1.ClusterToolPolicy).Spec.PolicyRules)
		})
	}
	builder = builder.WithIndex(&v1alpha1.ToolApproval{}, callIndex, func(o client.Object) []string { return []string{o.(*v1alpha1.ToolApproval).Spec.Call.ID} })
	b.Client = builder.Build()
	o := Options{Registry: prometheus.NewRegistry(), Clock: b.clock}
	o.setDefaults()
	b.parts = &parts{Options: o, events: b.heard, gates: newGates(b.Client, o)}
	return b
}

// observe lets the gates say something.
func (b *bench) observe(o *Observation) { b.gates.latest.Store(o) }

func (b *bench) reconcile(t *testing.T, r reconcile.Reconciler, key client.ObjectKey) error {
	t.Helper()
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	return err
}

func policyReconciler(b *bench) (reconcile.Reconciler, *PolicyReconciler[*v1alpha1.ToolPolicy]) {
	r := newPolicyReconciler(b.Client, b.parts, toolPolicies())
	return reconcile.AsReconciler(b.Client, r), r
}

func askingPolicy(name string) *v1alpha1.ToolPolicy {
	p := testkit.ToolPolicy(name, testkit.WithTool("db.get", "ReadOnly"), testkit.WithDecider("judge"))
	p.UID = "u"
	p.Spec.DeciderRef.Fingerprint = testPrint
	return p
}

func generationServed(p *v1alpha1.ToolPolicy, generation int64) *Observation {
	key := served.PolicyKey(p.Namespace, p.Name)
	return &Observation{Known: true, Reports: map[string]*served.Report{"gate-0": {Policies: map[string]int64{key: generation}}}}
}

func statesOf(t *testing.T, c client.Client, key client.ObjectKey) []string {
	t.Helper()
	var p v1alpha1.ToolPolicy
	if err := c.Get(t.Context(), key, &p); err != nil {
		t.Fatal(err)
	}
	return states(p.Status.Conditions)
}

// TestPolicyFromFirstPassToReady follows a policy: what its status says, which events there are, and that a pass in which
// nothing is new writes nothing.
func TestPolicyFromFirstPassToReady(t *testing.T) {
	p := askingPolicy("orders")
	key := client.ObjectKeyFromObject(p)
	b := newBench(t, p)
	r, _ := policyReconciler(b)
	steps := []struct {
		name       string
		do         func()
		want       []string
		wantEvents []string
	}{
		{
			"first pass", func() {},
			[]string{"Accepted=True Accepted", "ResolvedRefs=False DeciderNotFound", "Programmed=Unknown Pending", "Ready=False DeciderNotFound"},
			[]string{
				"Normal Accepted SetAccepted on orders", "Warning DeciderNotFound SetResolvedRefs on orders", "Warning DeciderNotFound SetReady on orders",
			},
		},
		{
			"the decider comes", func() {
				if err := b.Create(t.Context(), goodDecider()); err != nil {
					t.Fatal(err)
				}
			},
			[]string{"Accepted=True Accepted", "ResolvedRefs=True ResolvedRefs", "Programmed=Unknown Pending", "Ready=Unknown Pending"},
			[]string{"Normal ResolvedRefs SetResolvedRefs on orders", "Normal Pending SetReady on orders"},
		},
		{
			"a gate serves it", func() { b.observe(generationServed(p, 1)) },
			[]string{"Accepted=True Accepted", "ResolvedRefs=True ResolvedRefs", "Programmed=True Programmed", "Ready=True Ready"},
			[]string{"Normal Programmed SetProgrammed on orders", "Normal Ready SetReady on orders"},
		},
		{
			"the manager starts anew and has not heard of gates", func() { b.observe(&Observation{}); r, _ = policyReconciler(b) },
			[]string{"Accepted=True Accepted", "ResolvedRefs=True ResolvedRefs", "Programmed=True Programmed", "Ready=True Ready"}, nil,
		},
		{
			"a gate serves another generation", func() { b.observe(generationServed(p, 7)) },
			[]string{"Accepted=True Accepted", "ResolvedRefs=True ResolvedRefs", "Programmed=False GenerationNotServed", "Ready=False GenerationNotServed"},
			[]string{"Warning GenerationNotServed SetProgrammed on orders", "Warning GenerationNotServed SetReady on orders"},
		},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			step.do()
			if err := b.reconcile(t, r, key); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(step.want, statesOf(t, b, key)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(step.wantEvents, b.heard.take()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			count := b.count
			if err := b.reconcile(t, r, key); err != nil {
				t.Fatal(err)
			}
			if b.count != count || b.heard.take() != nil {
				t.Error("another pass wrote something")
			}
		})
	}
	var now v1alpha1.ToolPolicy
	if err := b.Get(t.Context(), key, &now); err != nil {
		t.Fatal(err)
	}
	if now.Status.ObservedGeneration != 1 || now.Status.Conditions[0].ObservedGeneration != 1 {
		t.Errorf("observed generations %d and %d, want 1", now.Status.ObservedGeneration, now.Status.Conditions[0].ObservedGeneration)
	}
}

// TestPolicyWriteThatFails shows that a failed write is tried again, announces nothing, and leaves the same status as one
// that did not fail.
func TestPolicyWriteThatFails(t *testing.T) {
	resource := schema.GroupResource{Group: "gatewright.dev", Resource: "toolpolicies"}
	for name, row := range map[string]struct {
		err error
		is  func(error) bool
	}{
		"a conflict":       {apierrors.NewConflict(resource, "orders", errors.New("changed")), apierrors.IsConflict},
		"a time-out":       {apierrors.NewTimeoutError("slow", 1), apierrors.IsTimeout},
		"too many callers": {apierrors.NewTooManyRequests("busy", 1), apierrors.IsTooManyRequests},
		"a lost answer":    {context.DeadlineExceeded, func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }},
	} {
		t.Run(name, func(t *testing.T) {
			p := askingPolicy("orders")
			key := client.ObjectKeyFromObject(p)
			b := newBench(t, p, goodDecider())
			b.observe(generationServed(p, 1))
			b.fail = func(n int) error {
				if n == 1 {
					return row.err
				}
				return nil
			}
			r, _ := policyReconciler(b)
			if err := b.reconcile(t, r, key); !row.is(err) {
				t.Fatalf("error %v, want it returned for another try", err)
			}
			if got := b.heard.take(); got != nil {
				t.Errorf("announced what was not written: %v", got)
			}
			if err := b.reconcile(t, r, key); err != nil {
				t.Fatal(err)
			}
			if got := statesOf(t, b, key); got[3] != "Ready=True Ready" {
				t.Errorf("conditions %v", got)
			}
		})
	}
}

func TestPolicyThatChangedMeanwhileIsNotWritten(t *testing.T) {
	p := askingPolicy("orders")
	b := newBench(t, p, goodDecider())
	_, r := policyReconciler(b)
	var stale v1alpha1.ToolPolicy
	if err := b.Get(t.Context(), client.ObjectKeyFromObject(p), &stale); err != nil {
		t.Fatal(err)
	}
	changed := stale.DeepCopy()
	changed.Annotations = map[string]string{"note": "changed"}
	if err := b.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reconcile(t.Context(), &stale); !apierrors.IsConflict(err) {
		t.Errorf("error %v, want a conflict", err)
	}
}

func TestPolicyThatGoesIsLeftAlone(t *testing.T) {
	now := metav1.Now()
	p := askingPolicy("orders")
	p.DeletionTimestamp, p.Finalizers = &now, []string{"someone.example/waits"}
	b := newBench(t, p)
	r, _ := policyReconciler(b)
	if err := b.reconcile(t, r, client.ObjectKeyFromObject(p)); err != nil {
		t.Error(err)
	}
	if err := b.reconcile(t, r, client.ObjectKey{Namespace: "shop", Name: "not-there"}); err != nil {
		t.Errorf("a policy that is gone: %v", err)
	}
	if b.count != 0 {
		t.Errorf("%d writes", b.count)
	}
	gone := askingPolicy("gone")
	before := gone.DeepCopy()
	gone.Status.ObservedGeneration = 1
	if err := patchStatus(t.Context(), b.Client, before, gone); err != nil {
		t.Errorf("a policy that went while it was judged: %v", err)
	}
}

func TestDeciderThatCannotBeReadLeavesTheStatus(t *testing.T) {
	p := askingPolicy("orders")
	b := newBench(t, p)
	failing := interceptor.NewClient(b.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if _, ok := o.(*v1alpha1.DeciderModel); ok {
				return errors.New("not now")
			}
			return c.Get(ctx, key, o, options...)
		},
	})
	r := reconcile.AsReconciler(failing, newPolicyReconciler(failing, b.parts, toolPolicies()))
	if err := b.reconcile(t, r, client.ObjectKeyFromObject(p)); err == nil {
		t.Error("no error")
	}
	if b.count != 0 {
		t.Error("a failed read was written down as a fact")
	}
}

func TestClusterPolicyThatDoesNotCompile(t *testing.T) {
	p := testkit.ClusterToolPolicy("floor", testkit.WithTool("db.get", "NoSuchClass"), testkit.ForNamespaces("shop", "bank"))
	b := newBench(t, p)
	r := reconcile.AsReconciler(b.Client, newPolicyReconciler(b.Client, b.parts, clusterToolPolicies()))
	key := client.ObjectKeyFromObject(p)
	if err := b.reconcile(t, r, key); err != nil {
		t.Fatal(err)
	}
	var now v1alpha1.ClusterToolPolicy
	if err := b.Get(t.Context(), key, &now); err != nil {
		t.Fatal(err)
	}
	want := []string{"Accepted=False Invalid", "ResolvedRefs=Unknown Pending", "Programmed=Unknown Pending", "Ready=False Invalid"}
	if diff := cmp.Diff(want, states(now.Status.Conditions)); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

func TestRequestsFromOthers(t *testing.T) {
	asking, silent, far := askingPolicy("asking"), testkit.ToolPolicy("silent"), askingPolicy("far")
	far.Namespace = "elsewhere"
	far.Spec.DeciderRef.Name = "another"
	b := newBench(t, asking, silent, far)
	_, r := policyReconciler(b)
	request := func(p *v1alpha1.ToolPolicy) reconcile.Request {
		return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)}
	}
	for name, row := range map[string]struct {
		got  []reconcile.Request
		want []reconcile.Request
	}{
		"a decider changes":        {r.referringTo(t.Context(), goodDecider()), []reconcile.Request{request(asking)}},
		"a gate says what it said": {r.affectedBy(t.Context(), generationServed(asking, 1), generationServed(asking, 1)), nil},
		"a gate serves one policy": {r.affectedBy(t.Context(), generationServed(asking, 0), generationServed(asking, 1)), []reconcile.Request{request(asking)}},
		"the gates are heard of for the first time": {
			r.affectedBy(t.Context(), &Observation{}, generationServed(asking, 1)), []reconcile.Request{request(asking), request(silent), request(far)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			byName := cmpopts.SortSlices(func(a, b reconcile.Request) bool { return a.String() < b.String() })
			if diff := cmp.Diff(row.want, row.got, byName, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChangesOfDecidersThatConcernPolicies(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*v1alpha1.DeciderModel)
		want   bool
	}{
		"nothing":               {func(*v1alpha1.DeciderModel) {}, false},
		"a label":               {func(m *v1alpha1.DeciderModel) { m.Labels = map[string]string{"a": "b"} }, false},
		"its threads":           {func(m *v1alpha1.DeciderModel) { n := int32(4); m.Spec.Threads = &n }, false},
		"a candidate":           {func(m *v1alpha1.DeciderModel) { m.Status.Candidate = &v1alpha1.DeciderRevision{Name: "judge-2"} }, false},
		"its fingerprint":       {func(m *v1alpha1.DeciderModel) { m.Status.Active.Fingerprint = "sha256:two" }, true},
		"what serves":           {func(m *v1alpha1.DeciderModel) { m.Status.Active = nil }, true},
		"whether it is checked": {func(m *v1alpha1.DeciderModel) { setVerified(m, metav1.ConditionFalse, v1alpha1.ReasonHashMismatch) }, true},
		"who may ask it": {func(m *v1alpha1.DeciderModel) {
			m.Spec.AllowedNamespaces = &v1alpha1.NamespaceAllowance{From: v1alpha1.NamespacesNone}
		}, true},
		"what is required of it": {func(m *v1alpha1.DeciderModel) { m.Spec.RequireVerified = v1alpha1.Optional }, true},
	} {
		t.Run(name, func(t *testing.T) {
			changed := goodDecider()
			row.change(changed)
			if got := deciderChanged().Update(event.UpdateEvent{ObjectOld: goodDecider(), ObjectNew: changed}); got != row.want {
				t.Errorf("passed on: %t, want %t", got, row.want)
			}
		})
	}
}
