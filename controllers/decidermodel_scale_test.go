package controllers

import (
	"fmt"
	"os"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/deciders"
	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/served"
)

// passesOf counts the passes of a controller in this process so far.
func passesOf(t *testing.T, controller string) int {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		if f.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "controller" && l.GetValue() == controller {
					sum += m.GetCounter().GetValue()
				}
			}
		}
	}
	return int(sum)
}

func embeddedDecider(name string) *v1alpha1.DeciderModel {
	m := &v1alpha1.DeciderModel{ObjectMeta: metav1.ObjectMeta{Name: name}}
	m.Spec = v1alpha1.DeciderModelSpec{Runtime: v1alpha1.RuntimeEmbedded, Artifact: &v1alpha1.Artifact{
		Type: v1alpha1.ArtifactBundled, SHA256: v1alpha1.SHA256(deciders.EmbeddedHash()), Bundled: &v1alpha1.BundledArtifact{Name: inference.EmbeddedName},
	}}
	return m
}

// TestManyDecidersAreReconciledOnce counts passes and writes for many deciders, as TestManyPoliciesAreReconciledOnce does.
func TestManyDecidersAreReconciledOnce(t *testing.T) {
	n := 5
	if os.Getenv(scaleVariable) == "1" {
		n = 50
	}
	c := startCluster(t)
	for i := range n {
		c.create(t, embeddedDecider(fmt.Sprintf("judge-%d", i)))
	}
	c.create(t, slice("gates", map[string]string{"gate-0": "10.0.0.1"}))
	c.gates.set("10.0.0.1:8081", &served.Report{})
	only := func(mgr ctrl.Manager, o Options) error {
		o.setDefaults()
		p := &parts{Options: o, events: &recorder{}, gates: newGates(mgr.GetClient(), o)}
		if err := mgr.Add(p.gates); err != nil {
			return err
		}
		return setupDeciders(mgr, p)
	}
	before := passesOf(t, "decidermodel")
	stop := c.manage(t, only)

	lastPasses, lastWrites := before, 0
	expect := func(what string, reasons map[string]int, maxPasses, minWrites, maxWrites int) {
		t.Helper()
		eventually(t, what, time.Minute, func() string {
			if got := c.readyReasons(t); fmt.Sprint(got) != fmt.Sprint(reasons) {
				return fmt.Sprint(got)
			}
			return ""
		})
		both := settled(t, func() int { return passesOf(t, "decidermodel")*1_000_000 + c.writes.total() })
		passes, writes := both/1_000_000, both%1_000_000
		p, w := passes-lastPasses, writes-lastWrites
		t.Logf("%s: %d passes, %d writes", what, p, w)
		if p > maxPasses || w < minWrites || w > maxWrites {
			t.Errorf("%s: %d passes and %d writes, want at most %d and %d to %d", what, p, w, maxPasses, minWrites, maxWrites)
		}
		lastPasses, lastWrites = passes, writes
	}
	ready, pending := string(v1alpha1.ReasonReady), string(v1alpha1.ReasonPending)

	// A revision and two or three statuses for each: it is a candidate, it serves, and the gates were heard of.
	expect("start", map[string]int{pending: n}, 5*n, 3*n, 4*n)
	c.servesAll(t, "10.0.0.1:8081", "")
	expect("the gate serves all", map[string]int{ready: n}, 2*n, n, n)

	var m v1alpha1.DeciderModel
	change := func(f func()) {
		t.Helper()
		if err := c.Get(t.Context(), client.ObjectKey{Name: "judge-0"}, &m); err != nil {
			t.Fatal(err)
		}
		f()
		if err := c.Update(t.Context(), &m); err != nil {
			t.Fatal(err)
		}
	}
	change(func() { m.Labels = map[string]string{"changed": "yes"} })
	expect("a label changes", map[string]int{ready: n}, 0, 0, 0)
	change(func() { m.Annotations = map[string]string{"changed": "yes"} })
	expect("an annotation changes", map[string]int{ready: n}, 1, 0, 0)
	change(func() { m.Spec.ContextTokens = 2048 })
	expect("another revision is asked for, and the gate does not serve it yet", map[string]int{ready: n - 1, pending: 1}, 6, 2, 4)
	c.servesAll(t, "10.0.0.1:8081", "")
	expect("the gate serves it", map[string]int{ready: n}, 2, 1, 1)

	c.servesAll(t, "10.0.0.2:8081", "")
	c.create(t, slice("more", map[string]string{"gate-1": "10.0.0.2"}))
	eventually(t, "the gate that came is asked", time.Minute, func() string {
		if c.gates.askedOf("10.0.0.2:8081") == 0 {
			return "not asked"
		}
		return ""
	})
	expect("another gate comes", map[string]int{ready: n}, n, 0, 0)
	c.servesAll(t, "10.0.0.2:8081", "judge-1")
	expect("one gate cannot ask one decider", map[string]int{ready: n - 1, string(v1alpha1.ReasonUnavailable): 1}, 2, 1, 1)
	c.servesAll(t, "10.0.0.2:8081", "")
	expect("it can again", map[string]int{ready: n}, 2, 1, 1)

	stop()
	c.manage(t, only)
	eventually(t, "the manager that starts anew looks at all", time.Minute, func() string {
		if p := passesOf(t, "decidermodel") - lastPasses; p < n {
			return fmt.Sprintf("%d passes", p)
		}
		return ""
	})
	expect("the manager starts anew", map[string]int{ready: n}, 3*n, 0, 0)
}

// readyReasons counts deciders by the reason of Ready.
func (c *cluster) readyReasons(t *testing.T) map[string]int {
	t.Helper()
	var list v1alpha1.DeciderModelList
	if err := c.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for i := range list.Items {
		reason := "none"
		if conditions := list.Items[i].Status.Conditions; len(conditions) > 0 {
			reason = conditions[len(conditions)-1].Reason
		}
		out[reason]++
	}
	return out
}

// servesAll lets a gate serve the active revision of every decider, and be able to ask all but one.
func (c *cluster) servesAll(t *testing.T, address, but string) {
	t.Helper()
	var list v1alpha1.DeciderModelList
	if err := c.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	report := &served.Report{Deciders: map[string]served.Decider{}}
	for i := range list.Items {
		m := &list.Items[i]
		if a := m.Status.Active; a != nil {
			report.Deciders[m.Name] = served.Decider{
				Revision: string(a.Name), Fingerprint: string(a.Fingerprint), SHA256: string(a.SHA256), Verified: true, Available: m.Name != but,
			}
		}
	}
	c.gates.set(address, report)
}
