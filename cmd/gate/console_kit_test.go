package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/console"
	"gatewright.dev/gatewright/internal/kubetest"
	"gatewright.dev/gatewright/internal/names"
)

// browser is one with the page of a gate.
type browser struct {
	t      *testing.T
	gate   *running
	client *http.Client
}

func (g *running) browser(t *testing.T) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := *g.agent
	c.Jar = jar
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &browser{t, g, &c}
}

// do sends a request as a browser does, a form if there is one.
func (b *browser) do(method, path string, form url.Values, change ...func(*http.Request)) (int, string) {
	b.t.Helper()
	var body io.Reader = http.NoBody
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.gate.url+console.Path+path, body)
	if err != nil {
		b.t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", b.gate.url)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for _, f := range change {
		f(r)
	}
	reply, err := b.client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer reply.Body.Close()
	data, err := io.ReadAll(reply.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return reply.StatusCode, string(data)
}

func (b *browser) see(path string) (int, string) {
	b.t.Helper()
	return b.do(http.MethodGet, path, nil)
}

var formToken = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

func (b *browser) formToken(page string) string {
	b.t.Helper()
	found := formToken.FindStringSubmatch(page)
	if found == nil {
		b.t.Fatalf("no form in %s", page)
	}
	return found[1]
}

// signIn gives the status of signing in with a token, and the page.
func (b *browser) signIn(token string) (int, string) {
	b.t.Helper()
	_, page := b.see("login")
	return b.do(http.MethodPost, "login", url.Values{"csrf": {b.formToken(page)}, "secret": {token}})
}

// decide sends the form of a call that the page has shown.
func (b *browser) decide(name, id, outcome string, change ...func(*http.Request)) (int, string) {
	b.t.Helper()
	_, page := b.see("")
	return b.do(http.MethodPost, "calls/"+name, url.Values{"csrf": {b.formToken(page)}, "approval": {id}, "outcome": {outcome}}, change...)
}

// desk is a gate with the page, and two namespaces in each of which a call waits.
type desk struct {
	*world
	gate          *running
	people        string // namespace of those who sign in
	mine, other   string
	agent         string // token for the gate
	waits, others *v1alpha1.ToolApproval
	forged        *v1alpha1.ToolApproval // in the namespace of the first, without a seal that counts
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	w := newWorld(t, kubetest.Start(t))
	d := &desk{world: w, gate: w.run(t, "-console", "-identity", "gate-7"), people: w.server.Namespace(t), mine: w.server.Namespace(t), other: w.server.Namespace(t)}
	d.agent = w.server.Token(t, d.mine, "assistant", names.Audience)
	stranger := w.server.Token(t, d.other, "assistant", names.Audience)
	for _, namespace := range []string{d.mine, d.other} {
		var accounts []string
		for _, name := range []string{"carol", "dave", "eve"} {
			accounts = append(accounts, d.people+"/"+name)
		}
		d.annotate(t, namespace, strings.Join(append(accounts, names.Namespace+"/"+names.GateServiceAccount), ","))
		w.policy(t, namespace, "shop", shop)
	}
	d.gate.wants(t, d.agent, call{tool: "orders.read"}, review.Allow, "RulesPassed")
	d.gate.wants(t, stranger, call{tool: "orders.read"}, review.Allow, "RulesPassed")
	time.Sleep(time.Until(w.guarded.Add(7 * time.Second))) // before that no approval counts
	d.waits, d.others = d.raise(t, d.mine, d.agent), d.raise(t, d.other, stranger)
	d.forged = d.forge(t, d.waits)
	return d
}

func (d *desk) annotate(t *testing.T, namespace, accounts string) {
	t.Helper()
	d.server.ApplyObjects(t, object(t, fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s, annotations: {%s: %q}}}", namespace, names.ApproversAnnotation, accounts)))
}

var deleteOrder = call{tool: "orders.delete", user: "delete order 7", arguments: map[string]any{"order": "7"}}

func (d *desk) raise(t *testing.T, namespace, token string) *v1alpha1.ToolApproval {
	t.Helper()
	raised := d.gate.is(t, token, deleteOrder, review.Confirm, "Irreversible")
	return d.approval(t, namespace, raised.Approval.Name)
}

func (d *desk) approval(t *testing.T, namespace, name string) *v1alpha1.ToolApproval {
	t.Helper()
	a := &v1alpha1.ToolApproval{}
	if err := d.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, a); err != nil {
		t.Fatal(err)
	}
	return a
}

func (d *desk) binding(t *testing.T, namespace, account, kind, role string) *unstructured.Unstructured {
	t.Helper()
	d.server.Token(t, d.people, account) // so that it is there
	return object(t, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %s, namespace: %s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %s, name: %s}
subjects: [{kind: ServiceAccount, name: %s, namespace: %s}]`, account, namespace, kind, role, account, d.people))
}

// role lets somebody do something with approvals in a namespace.
func (d *desk) role(t *testing.T, namespace, account string, verbs ...string) {
	t.Helper()
	d.server.ApplyObjects(t, object(t, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: %[2]s, namespace: %[1]s}
rules: [{apiGroups: [gatewright.dev], resources: [toolapprovals], verbs: [%[3]s]}]`, namespace, account, strings.Join(verbs, ", "))),
		d.binding(t, namespace, account, "Role", account))
}

// signedIn gives a browser of a service account of people.
func (d *desk) signedIn(t *testing.T, name string) *browser {
	t.Helper()
	b := d.gate.browser(t)
	if code, page := b.signIn(d.server.Token(t, d.people, name)); code != http.StatusSeeOther {
		t.Fatalf("signing in: HTTP %d %s\n%s", code, page, tail(d.gate.log.String()))
	}
	return b
}

// forge makes what only who holds the gate's account but not its key can: an approval without a seal that counts.
func (d *desk) forge(t *testing.T, a *v1alpha1.ToolApproval) *v1alpha1.ToolApproval {
	t.Helper()
	forged := &v1alpha1.ToolApproval{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: "ta-forged-1"}, Spec: *a.Spec.DeepCopy()}
	forged.Spec.Call.Message = "Nothing to worry about?"
	gate := d.as(t, d.server.ServiceAccount(t, names.Namespace, names.GateServiceAccount))
	if err := gate.Create(t.Context(), forged); err != nil {
		t.Fatal(err)
	}
	return forged
}
