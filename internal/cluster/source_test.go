package cluster

import (
	"fmt"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/gate"
	"gatewright.dev/gatewright/internal/policy"
	"gatewright.dev/gatewright/internal/served"
)

// taker takes snapshots, and may do something meanwhile.
type taker struct {
	last      *gate.Snapshot
	meanwhile func()
}

func (k *taker) SetSnapshot(s *gate.Snapshot) {
	k.last = s
	if k.meanwhile != nil {
		k.meanwhile()
	}
}

// sourceWorld is a source whose caches a test fills by hand.
type sourceWorld struct {
	*Source
	gate  *taker
	clock *clocktesting.FakeClock
}

func newSourceWorld(t testing.TB) *sourceWorld {
	t.Helper()
	w := &sourceWorld{gate: &taker{}, clock: clocktesting.NewFakeClock(noon)}
	log := slog.New(slog.DiscardHandler)
	var err error
	w.Source, err = NewSource(SourceOptions{
		Config: &rest.Config{Host: "https://nowhere.test"}, Namespace: "gatewright-system", Gate: w.gate, Clock: w.clock, Log: log, Registry: prometheus.NewRegistry(),
		Wrap:     func(next http.RoundTripper) http.RoundTripper { return next },
		Deciders: DeciderOptions{Namespace: "gatewright-system", Pods: http.DefaultTransport, Log: log},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	return w
}

func (w *sourceWorld) put(t testing.TB, resource string, object any) {
	t.Helper()
	if err := w.informers.all[resource].GetStore().Add(object); err != nil {
		t.Fatal(err)
	}
}

// policyOf makes a ToolPolicy that lists one tool, with a rule.
func policyOf(name string, generation int64, rule string) *v1alpha1.ToolPolicy {
	p := &v1alpha1.ToolPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), Generation: generation}}
	p.Spec.Tools = []v1alpha1.ToolRule{{Name: "orders.read", Class: "ReadOnly"}}
	if rule != "" {
		p.Spec.Tools[0].Rules = []v1alpha1.CallRule{{Name: "r", When: v1alpha1.Expression(rule), Outcome: "Block", Message: "m"}}
	}
	return p
}

func byName(s *gate.Snapshot) map[string]*policy.Compiled {
	out := map[string]*policy.Compiled{}
	for _, p := range s.Policies.Policies() {
		out[p.ID.Name] = p
	}
	return out
}

func TestASnapshotHoldsWhatTheCachesHold(t *testing.T) {
	w := newSourceWorld(t)
	if _, err := w.Report(noon); err == nil {
		t.Error("something is served before anything was built")
	}
	w.put(t, "toolpolicies", policyOf("good", 3, ""))
	w.put(t, "toolpolicies", policyOf("bad", 1, "args.x =="))
	w.put(t, "clustertoolpolicies", &v1alpha1.ClusterToolPolicy{ObjectMeta: metav1.ObjectMeta{Name: "floor", UID: "floor", Generation: 2}})
	w.build(t.Context())
	report, err := w.Report(noon.Add(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	want := served.Report{
		Policies:   map[string]int64{"ToolPolicy/shop/good": 3, "ToolPolicy/shop/bad": 1, "ClusterToolPolicy/floor": 2},
		SnapshotAt: noon.Add(time.Second),
	}
	if diff := cmp.Diff(want, report, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	first := byName(w.gate.last)
	if len(first) != 3 || !first["bad"].Invalid || first["good"].Invalid || testutil.ToFloat64(w.invalid) != 1 {
		t.Errorf("in the snapshot %v, %v invalid", first, testutil.ToFloat64(w.invalid))
	}

	w.put(t, "toolpolicies", policyOf("bad", 2, "args.x == 1"))
	w.build(t.Context())
	second := byName(w.gate.last)
	if second["good"] != first["good"] || second["floor"] != first["floor"] || second["bad"] == first["bad"] || second["bad"].Invalid {
		t.Error("what stayed was compiled anew, or what changed was not")
	}
	// Another object of the same name and generation is another policy.
	again := policyOf("good", 3, "true")
	again.UID = "other"
	w.put(t, "toolpolicies", again)
	if err := w.informers.all["toolpolicies"].GetStore().Delete(policyOf("bad", 2, "")); err != nil {
		t.Fatal(err)
	}
	w.build(t.Context())
	third := byName(w.gate.last)
	if len(third) != 2 || third["good"] == second["good"] || len(w.compiled) != 2 {
		t.Errorf("after one was replaced and one deleted: %v, %d kept", third, len(w.compiled))
	}
}

// A change counts as waiting from when it came until a snapshot holds it.
func TestAChangeWaitsUntilItIsInForce(t *testing.T) {
	w := newSourceWorld(t)
	if w.Pending() != 0 {
		t.Error("something waits at the start")
	}
	w.touch()
	w.clock.Step(2 * time.Second)
	w.touch()
	if w.Pending() != 2*time.Second {
		t.Errorf("waits for %s", w.Pending())
	}
	<-w.touched
	w.build(t.Context())
	w.clock.Step(time.Second)
	if w.Pending() != 0 {
		t.Errorf("after it was built, something waits for %s", w.Pending())
	}
	w.touch()
	<-w.touched
	w.gate.meanwhile = w.touch
	w.build(t.Context())
	w.clock.Step(time.Second)
	if w.Pending() != time.Second {
		t.Errorf("what came while it was built waits for %s", w.Pending())
	}
}

func TestWhatIsSaidOfACandidate(t *testing.T) {
	w := newSourceWorld(t)
	one, two := llama(nil), llama(func(m *v1alpha1.DeciderModel) { m.Spec.ContextTokens = 8192 })
	active, candidate := revise(t, one), revise(t, two)
	two.Status.Active = &v1alpha1.DeciderRevision{Name: v1alpha1.ObjectName(active.Name), SHA256: modelHash}
	two.Status.Candidate = &v1alpha1.DeciderRevision{Name: v1alpha1.ObjectName(candidate.Name)}
	w.put(t, "decidermodels", two)
	w.put(t, "controllerrevisions", active)
	w.put(t, "controllerrevisions", candidate)
	w.build(t.Context())
	if w.gate.last.Deciders["small"].Candidate != nil {
		t.Error("calls go to a candidate although spec.rollout.shadow is not set")
	}
	report, err := w.Report(noon)
	if err != nil {
		t.Fatal(err)
	}
	want := served.Report{
		Deciders:   map[string]served.Decider{"small": {Revision: active.Name, SHA256: modelHash, Verified: true, Available: true}},
		Candidates: map[string]served.Decider{"small": {Revision: candidate.Name, Available: true}},
		Shadow:     map[string]served.Shadow{candidate.Name: {}}, SnapshotAt: noon,
	}
	if diff := cmp.Diff(want, report, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatIsWatched(t *testing.T) {
	want := []string{
		"/apis/gatewright.dev/v1alpha1/toolpolicies", "/apis/gatewright.dev/v1alpha1/clustertoolpolicies",
		"/apis/gatewright.dev/v1alpha1/decidermodels", "/apis/apps/v1/namespaces/gatewright-system/controllerrevisions",
	}
	if diff := cmp.Diff(want, WatchedPaths("gatewright-system")); diff != "" {
		t.Error(diff)
	}
}

// A thousand policies are compiled once; another snapshot of which one changed costs one of them.
func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := newSourceWorld(b)
			for i := range n {
				p := policyOf(fmt.Sprint("p", i), 1, "args.x == 1")
				p.Namespace = fmt.Sprint("ns", i)
				w.put(b, "toolpolicies", p)
			}
			w.build(b.Context())
			generation := int64(1)
			for b.Loop() {
				generation++
				p := policyOf("p0", generation, "args.x == 1")
				p.Namespace = "ns0"
				w.put(b, "toolpolicies", p)
				w.build(b.Context())
			}
		})
	}
}
