package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
)

// label sends the form of a decision.
func (b *browser) label(id, outcome, message string) (int, string) {
	b.t.Helper()
	_, page := b.see("")
	return b.do(http.MethodPost, "decisions/"+id, url.Values{"csrf": {b.formToken(page)}, "outcome": {outcome}, "message": {message}})
}

// clusterRole lets somebody do something with decisions.
func (d *desk) clusterRole(t *testing.T, account, verbs string) {
	t.Helper()
	d.server.Token(t, d.people, account) // so that it is there
	d.server.ApplyObjects(t, object(t, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s-decisions}
rules: [{apiGroups: [gatewright.dev], resources: [decisions], verbs: [%[2]s]}]`, account, verbs)))
	d.clusterBinding(t, account, account+"-decisions")
}

func (d *desk) clusterBinding(t *testing.T, account, role string) {
	t.Helper()
	d.server.Token(t, d.people, account)
	d.server.ApplyObjects(t, object(t, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s-%[2]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[2]s}
subjects: [{kind: ServiceAccount, name: %[1]s, namespace: %[3]s}]`, account, role, d.people)))
}

// labels are those of a decision in the log of the gate.
func (g *running) labels(t *testing.T, id string) []audit.Label {
	t.Helper()
	found, ok, err := audit.FindMarked(t.Context(), g.config.auditLog, id)
	if err != nil || !ok {
		t.Fatalf("decision %s: %v, %v", id, ok, err)
	}
	var out []audit.Label
	for _, l := range found.Labels {
		out = append(out, *l.Label)
	}
	return out
}

func testLabels(t *testing.T, d *desk) {
	decision := d.gate.is(t, d.agent, call{tool: "orders.read"}, review.Allow, "RulesPassed").Decision
	id := decision.ID
	d.clusterBinding(t, "judy", "gatewright-auditor")
	d.clusterBinding(t, "ivan", "gatewright-labeler")
	d.clusterRole(t, "mallory", "label")
	eventually(t, "the decision is in the log", func() error {
		if _, ok, err := audit.FindDecision(t.Context(), d.gate.config.auditLog, id); err != nil || !ok {
			return fmt.Errorf("%v, %w", ok, err)
		}
		return nil
	})
	for name, test := range map[string]struct{ who, verb string }{
		"who may see decisions alone":             {"judy", "label"},
		"who may label them and not see them":     {"mallory", "get"},
		"who may decide about calls, and no more": {"carol", "get"},
	} {
		t.Run(name, func(t *testing.T) {
			b := d.signedIn(t, test.who)
			code, page := b.label(id, "Block", "no")
			if code != http.StatusForbidden || !strings.Contains(page, "the verb "+test.verb+" on the resource decisions") {
				t.Errorf("HTTP %d %s", code, page)
			}
			if _, page := b.see("decisions/" + id); strings.Contains(page, "label-form") {
				t.Errorf("it has the form: %s", page)
			}
		})
	}
	if got := d.gate.labels(t, id); len(got) != 0 {
		t.Fatalf("labels %+v", got)
	}
	const hostile = `</textarea><script>alert(1)</script>`
	b := d.signedIn(t, "ivan")
	if _, page := b.see("decisions/" + id); !strings.Contains(page, "label-form") || !strings.Contains(page, "Nobody has said") {
		t.Fatalf("no form: %s", page)
	}
	for range 2 { // the same again is counted once
		if code, page := b.label(id, "Block", hostile); code != http.StatusSeeOther {
			t.Fatalf("HTTP %d %s", code, page)
		}
	}
	name := "KubernetesUser:system:serviceaccount:" + d.people + ":ivan"
	got := d.gate.labels(t, id)
	if len(got) != 2 || got[0].MessageDigest == "" {
		t.Fatalf("labels %+v", got)
	}
	if diff := cmp.Diff(audit.Label{Decision: id, Outcome: review.Block, By: name, MessageDigest: got[0].MessageDigest}, got[0]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := d.gate.metric(t, `gatewright_labels_total{class="`+decision.Class+`",label="block",outcome="Allow"}`); got != "1" {
		t.Errorf("counted %q", got)
	}
	if code, page := b.label(id, "Perhaps", hostile); code != http.StatusBadRequest || strings.Contains(page, hostile) || !strings.Contains(page, "&lt;script&gt;alert(1)") {
		t.Errorf("HTTP %d %s", code, page)
	}
	if code, page := b.label("01a22c40-742e-78c3-acf5-00000000000f", "Block", ""); code != http.StatusNotFound || !strings.Contains(page, "The log has no decision with this id") {
		t.Errorf("HTTP %d %s", code, page)
	}
	if _, page := d.signedIn(t, "judy").see("decisions/" + id); !strings.Contains(page, name) {
		t.Errorf("who may see decisions does not see the label: %s", page)
	}
}
