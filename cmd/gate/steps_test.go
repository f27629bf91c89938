package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/inference/workload"
	"gatewright.dev/gatewright/internal/kubetest"
	"gatewright.dev/gatewright/internal/names"
)

func testApproval(t *testing.T, w *world, namespace, token string, one, two *running) {
	// API servers take a moment to enforce a policy, so what is raised at once after it was written does not count.
	time.Sleep(time.Until(w.guarded.Add(7 * time.Second)))
	c := call{tool: "orders.delete", user: "delete order 7", arguments: map[string]any{"order": "7"}}
	raised := one.is(t, token, c, review.Confirm, "Irreversible")
	if again := two.wants(t, token, c, review.Confirm, "ApprovalPending"); again.Approval == nil || again.Approval.Name != raised.Approval.Name {
		t.Fatalf("one gate asks for %+v, the other for %+v", raised.Approval, again.Approval)
	}
	w.server.ApplyObjects(t, object(t, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: approvers, namespace: %s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: gatewright-approver}
subjects: [{kind: User, name: carol, apiGroup: rbac.authorization.k8s.io}]
`, namespace)))
	carol := w.as(t, w.server.User(t, "carol"))
	eventually(t, "carol approves", func() error {
		waiting := &v1alpha1.ToolApproval{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: raised.Approval.Name}}
		return carol.Patch(t.Context(), waiting, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"decision":{"outcome":"Approve"}}}`)))
	})
	two.wants(t, token, c, review.Allow, "Approved")
	if _, r := one.ask(t, token, c); r.Outcome == review.Allow {
		t.Fatalf("the approval was used twice: %+v", r)
	}
}

// sample reads the DeciderModel of a fresh install.
func sample(t *testing.T) *v1alpha1.DeciderModel {
	t.Helper()
	root, err := kubetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(root, "config", "samples", "deciders.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := bytes.Cut(data, []byte("\n---"))
	m := &v1alpha1.DeciderModel{}
	if err := yaml.UnmarshalStrict(first, m); err != nil {
		t.Fatal(err)
	}
	return m
}

// activate does what the manager does once a revision has passed.
func (w *world) activate(t *testing.T, m *v1alpha1.DeciderModel) *appsv1.ControllerRevision {
	t.Helper()
	r, err := workload.NewRevision(workload.Install{Namespace: names.Namespace, DeciderImage: "decider:test"}, m)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.client.Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	m.Status.Active = &v1alpha1.DeciderRevision{Name: v1alpha1.ObjectName(r.Name), SHA256: m.Spec.Artifact.SHA256}
	if err := w.client.Status().Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	return r
}

func testEmbedded(t *testing.T, w *world, namespace, token string, g *running) {
	m := sample(t)
	m.Name = "embedded-" + namespace
	w.policy(t, namespace, "good", fmt.Sprintf(`
deciderRef: {name: %s, fingerprint: %q}
classes:
- name: Judged
  base: Write
  decider: Ask
  questions: [args_grounded]
  thresholds: [{when: [{question: args_grounded, atLeast: 0}], outcome: Allow, reason: Judged}]
  otherwise: {outcome: Block}
  whenDeciderUnavailable: Block
tools: [{name: orders.ship, class: Judged}]
`, m.Name, inference.EmbeddedFingerprint()))
	c := call{tool: "orders.ship", user: "ship order 7", arguments: map[string]any{"order": "7"}}
	g.wants(t, token, c, review.Block, "DeciderNotFound")
	if err := w.client.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if _, ok := g.served(t).Deciders[m.Name]; ok {
		t.Error("a decider is served although no revision is active")
	}
	r := w.activate(t, m)
	allowed := g.wants(t, token, c, review.Allow, "Judged")
	if allowed.Decision.Fingerprint != inference.EmbeddedFingerprint() {
		t.Errorf("fingerprint %s", allowed.Decision.Fingerprint)
	}
	d := g.served(t).Deciders[m.Name]
	if d.Revision != r.Name || !d.Verified || !d.Available || d.Fingerprint != inference.EmbeddedFingerprint() || d.SHA256 != string(m.Spec.Artifact.SHA256) {
		t.Errorf("served: %+v", d)
	}
	// A revision that is not what its name says was changed by somebody who is not the manager.
	if err := w.client.Delete(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	forged := r.DeepCopy()
	forged.ResourceVersion, forged.UID = "", ""
	forged.Data.Raw = []byte(strings.Replace(string(r.Data.Raw), `"contextTokens":4096`, `"contextTokens":8192`, 1))
	if bytes.Equal(forged.Data.Raw, r.Data.Raw) {
		t.Fatal("nothing was forged")
	}
	if err := w.client.Create(t.Context(), forged); err != nil {
		t.Fatal(err)
	}
	g.wants(t, token, c, review.Block, "DeciderNotFound")
	eventually(t, "the forged revision is reported", func() error {
		if d := g.served(t).Deciders[m.Name]; !strings.Contains(d.Error, "named for") || d.Available {
			return fmt.Errorf("served: %+v", d)
		}
		return nil
	})
}

// verifyLog reads the log of a gate that has ended.
func verifyLog(t *testing.T, g *running) {
	t.Helper()
	if _, err := http.Get(g.status + "/healthz"); err == nil {
		t.Error("the status address still answers")
	}
	keys, err := audit.ReadPublicKeys(g.config.audit.Key)
	if err != nil {
		t.Fatal(err)
	}
	if err := audit.CheckStanding(t.Context(), g.config.auditLog, keys, audit.Checkpoint{}); err != nil {
		t.Error(err)
	}
	data, err := os.ReadFile(g.config.auditLog)
	if err != nil || !bytes.Contains(data, []byte(`"reason":"Approved"`)) {
		t.Errorf("the log does not hold the call that was approved (%v)", err)
	}
}
