package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/kubetest"
	"gatewright.dev/gatewright/internal/names"
)

// The steps share a gate and what waits there: both take a while.
func TestPeopleDecideOnTheWebPageWithTheirOwnRights(t *testing.T) {
	d := newDesk(t)
	d.server.ApplyObjects(t, d.binding(t, d.mine, "carol", "ClusterRole", "gatewright-approver"))
	d.role(t, d.mine, "dave", "get", "list", "update", "patch")
	d.role(t, d.other, "dave", "get", "list", "update", "patch")
	d.role(t, d.mine, "eve", "get", "list")
	d.role(t, d.other, "heidi", "get", "list")
	heidi := d.signedIn(t, "heidi")
	if code, page := heidi.see(""); code != http.StatusOK || !strings.Contains(page, d.others.Name) {
		t.Fatalf("HTTP %d %s", code, page)
	}
	d.deleteAccount(t, d.people, "heidi") // the API server goes by what it knew for a while

	t.Run("who has no token of the API server does not get in", func(t *testing.T) { testNotIn(t, d) })
	t.Run("requests by another name or from another page are refused", func(t *testing.T) { testOwnNames(t, d) })
	t.Run("a person sees what RBAC lets them list", func(t *testing.T) { testSeen(t, d) })
	t.Run("who lacks a right is told so by the API server", func(t *testing.T) { testRefused(t, d) })
	t.Run("decisions are shown to who may get them", func(t *testing.T) { testDecisions(t, d) })
	t.Run("decisions are labelled by who may label them", func(t *testing.T) { testLabels(t, d) })
	t.Run("the decision is the person's", func(t *testing.T) { testDecided(t, d) })
	t.Run("who is deleted is signed out", func(t *testing.T) { testDeleted(t, d, heidi) })
	t.Run("no token is in the log of the gate", func(t *testing.T) {
		if log := d.gate.log.String(); strings.Contains(log, "eyJ") || !strings.Contains(log, "signed in to the console") {
			t.Error(log)
		}
	})
}

// Four attempts may fail here: a fifth would keep the others out for a while.
func testNotIn(t *testing.T, d *desk) {
	for name, token := range map[string]string{
		"with a token for the gate":   d.agent,
		"with one for somebody else":  d.server.Token(t, d.people, "carol", "vault"),
		"with one that was altered":   d.server.Token(t, d.people, "carol") + "AAAA",
		"with one that ends a header": "a\r\nImpersonate-User: carol",
	} {
		t.Run(name, func(t *testing.T) {
			b := d.gate.browser(t)
			if code, page := b.signIn(token); code != http.StatusUnauthorized || strings.Contains(page, token) {
				t.Errorf("HTTP %d %s", code, page)
			}
			if code, _ := b.see(""); code != http.StatusSeeOther {
				t.Errorf("the list: HTTP %d", code)
			}
		})
	}
}

func testOwnNames(t *testing.T, d *desk) {
	b := d.signedIn(t, "carol")
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for name, test := range map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"by another name":                    {host("evil.example:8443"), http.StatusMisdirectedRequest},
		"from a page elsewhere":              {header("Origin", "https://evil.example"), http.StatusMisdirectedRequest},
		"from a page without an origin":      {header("Origin", "null"), http.StatusMisdirectedRequest},
		"from a page of this host, no TLS":   {header("Origin", "http://127.0.0.1:1"), http.StatusMisdirectedRequest},
		"from another port of this host":     {header("Origin", "https://127.0.0.1:1"), http.StatusForbidden},
		"from elsewhere, says the browser":   {header("Sec-Fetch-Site", "cross-site"), http.StatusForbidden},
		"with a form that is not the page's": {func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(strings.NewReader("csrf=x")), 6 }, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			if code, page := b.decide(d.waits.Name, d.waits.Spec.Call.ID, "approve", test.change); code != test.want {
				t.Errorf("HTTP %d %s, want %d", code, page, test.want)
			}
			if a := d.approval(t, d.mine, d.waits.Name); a.Spec.Decision != nil {
				t.Errorf("it was decided: %+v", a.Spec.Decision)
			}
		})
	}
	for _, name := range []string{"localhost:8443", "[::1]:8443", names.GateService + "." + names.Namespace + ".svc"} {
		if code, _ := b.do(http.MethodGet, "login", nil, host(name)); code != http.StatusOK {
			t.Errorf("by %s: HTTP %d", name, code)
		}
	}
}

func testSeen(t *testing.T, d *desk) {
	d.server.Token(t, d.people, "erin")
	d.server.ApplyObjects(t, object(t, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: everywhere}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: gatewright-approver}
subjects: [{kind: ServiceAccount, name: frank, namespace: %s}]`, d.people)))
	for name, test := range map[string]struct {
		who             string
		mine, theOthers bool
	}{
		"in one namespace": {"carol", true, false},
		"in two":           {"dave", true, true},
		"in none":          {"erin", false, false},
		"in all of them":   {"frank", true, true},
		"without deciding": {"eve", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := d.signedIn(t, test.who)
			code, page := b.see("")
			for a, want := range map[*v1alpha1.ToolApproval]bool{d.waits: test.mine, d.others: test.theOthers, d.forged: false} {
				if strings.Contains(page, a.Name) != want || code != http.StatusOK {
					t.Errorf("HTTP %d: %s is listed: %v", code, a.Name, !want)
				}
				wantCode := http.StatusNotFound
				if want {
					wantCode = http.StatusOK
				}
				if code, page := b.see("calls/" + a.Name); code != wantCode {
					t.Errorf("%s: HTTP %d, want %d\n%s", a.Name, code, wantCode, page)
				}
			}
		})
	}
}

func testRefused(t *testing.T, d *desk) {
	gate := d.gate.browser(t)
	if code, _ := gate.signIn(d.server.Token(t, names.Namespace, names.GateServiceAccount)); code != http.StatusSeeOther {
		t.Fatalf("signing in with the gate's own token: HTTP %d", code)
	}
	for name, test := range map[string]struct {
		browser  *browser
		approval *v1alpha1.ToolApproval
		want     int
		text     string
	}{
		"without the verb approve":     {d.signedIn(t, "dave"), d.waits, http.StatusForbidden, "whoever decides needs the verb approve on toolapprovals"},
		"without the verb update":      {d.signedIn(t, "eve"), d.waits, http.StatusForbidden, "cannot update resource"},
		"in another namespace":         {d.signedIn(t, "carol"), d.others, http.StatusNotFound, "There is no such approval"},
		"as the gate itself":           {gate, d.waits, http.StatusForbidden, "whoever decides needs the verb approve on toolapprovals"},
		"where the service is unnamed": {d.signedIn(t, "frank"), d.waits, http.StatusForbidden, names.ApproversAnnotation},
	} {
		t.Run(name, func(t *testing.T) {
			code, page := test.browser.decide(test.approval.Name, test.approval.Spec.Call.ID, "approve")
			if code != test.want || !strings.Contains(page, test.text) {
				t.Errorf("HTTP %d, want %d and %q in\n%s", code, test.want, test.text, page)
			}
			if a := d.approval(t, test.approval.Namespace, test.approval.Name); a.Spec.Decision != nil {
				t.Errorf("it was decided: %+v", a.Spec.Decision)
			}
		})
	}
}

func testDecisions(t *testing.T, d *desk) {
	b := d.signedIn(t, "carol")
	if code, page := b.see("decisions"); code != http.StatusForbidden || !strings.Contains(page, "verb get on the resource decisions") {
		t.Errorf("HTTP %d %s", code, page)
	}
	if _, page := b.see(""); strings.Contains(page, "/console/decisions") || !strings.Contains(page, "verb get on the resource decisions") {
		t.Error("the list offers decisions, or does not say why not")
	}
	d.server.ApplyObjects(t, object(t, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reads-decisions}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: gatewright-auditor}
subjects: [{kind: ServiceAccount, name: grace, namespace: %s}]`, d.people)))
	d.server.Token(t, d.people, "grace")
	b = d.signedIn(t, "grace")
	code, page := b.see("decisions")
	if code != http.StatusOK || !strings.Contains(page, "orders.delete") || !strings.Contains(page, "gate-7") {
		t.Errorf("HTTP %d %s", code, page)
	}
	if _, page := b.see(""); strings.Contains(page, d.waits.Name) || !strings.Contains(page, "/console/decisions") {
		t.Error("who may see decisions sees approvals, or no link to decisions")
	}
}

func testDecided(t *testing.T, d *desk) {
	code, page := d.signedIn(t, "carol").decide(d.waits.Name, d.waits.Spec.Call.ID, "approve")
	if code != http.StatusSeeOther {
		t.Fatalf("approving: HTTP %d %s", code, page)
	}
	got := d.approval(t, d.mine, d.waits.Name).Spec.Decision
	if got == nil || got.By == nil {
		t.Fatalf("decision %+v", got)
	}
	want := v1alpha1.Approver{Type: v1alpha1.ApproverKubernetesUser, Name: "system:serviceaccount:" + d.people + ":carol"}
	if *got.By != want || got.Outcome != v1alpha1.Approve {
		t.Errorf("%s by %+v, want %+v", got.Outcome, *got.By, want)
	}
	d.gate.wants(t, d.agent, deleteOrder, review.Allow, "Approved")
}

func testDeleted(t *testing.T, d *desk, b *browser) {
	eventually(t, "heidi is signed out", func() error {
		code, page := b.see("")
		if code != http.StatusUnauthorized || !strings.Contains(page, "Sign in with a new one") || strings.Contains(page, d.others.Name) {
			return fmt.Errorf("HTTP %d", code)
		}
		return nil
	})
	if code, _ := b.see(""); code != http.StatusSeeOther {
		t.Errorf("HTTP %d after that", code)
	}
}

func TestThereIsNoWebPageUnlessAskedFor(t *testing.T) {
	g := newWorld(t, kubetest.Start(t)).run(t)
	if code, page := g.browser(t).see("login"); code != http.StatusNotFound {
		t.Errorf("HTTP %d %s", code, page)
	}
}

func TestNamesOfTheWebPage(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"a name with a port":      {[]string{"-console", "-console-host", "gate.example:443"}, "without a port"},
		"a wildcard":              {[]string{"-console", "-console-host", "*"}, "without a port"},
		"a name for no page":      {[]string{"-console-host", "gate.example"}, "-console-host needs -console"},
		"two names, one absolute": {[]string{"-console", "-console-host", "Gate.example.", "-console-host", "10.0.0.1"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := parse(test.args, io.Discard)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want %q", err, test.want)
			}
			if err == nil && (!c.isOwnName("gate.example:8443") || !c.isOwnName("10.0.0.1") || c.isOwnName("10.0.0.2") || c.isOwnName("evil.gate.example")) {
				t.Errorf("names %q", c.consoleHosts)
			}
		})
	}
}
