package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/doctor"
	"gatewright.dev/gatewright/internal/kubetest"
	"gatewright.dev/gatewright/internal/names"
	"gatewright.dev/gatewright/internal/testkit"
)

// inCluster is an API server with the admission policies, a policy, and calls that wait.
type inCluster struct {
	*kubetest.Server
	client    client.Client // of the gate
	namespace string
}

func newInCluster(t *testing.T) inCluster {
	t.Helper()
	s := kubetest.Start(t)
	s.EnsureNamespace(t, names.Namespace)
	s.Apply(t, "config/admission/approvals.yaml", "config/admission/approver.yaml", "config/rbac/approver.yaml")
	scheme, err := doctor.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	admin, err := client.New(s.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	w := inCluster{Server: s, namespace: s.Namespace(t)}
	for _, o := range []client.Object{
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "gate-of-the-test"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: names.Namespace, Name: names.GateServiceAccount}},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "approvers"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "gatewright-approver"},
			Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "kim"}},
		},
		testkit.ToolPolicy("files", testkit.InNamespace(w.namespace), testkit.ForSubjects("agent"), testkit.Grant("file:read"),
			testkit.WithTool("file.read", "ReadOnly", testkit.Scopes("file:read"), testkit.Path("/path", "/srv")), testkit.WithTool("file.delete", "Destructive")),
	} {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if w.client, err = client.New(s.ServiceAccount(t, names.Namespace, names.GateServiceAccount), client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	w.waitForAdmission(t)
	return w
}

// waitForAdmission waits until decisions are taken: for some seconds after a definition was applied, an API server does not know
// its types well enough to fill in who decides, and refuses.
func (w inCluster) waitForAdmission(t *testing.T) {
	t.Helper()
	w.raise(t, "probe", "f")
	var o v1alpha1.ToolApproval
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "probe"}, &o); err != nil {
		t.Fatal(err)
	}
	kim, err := client.New(w.User(t, "kim"), client.Options{Scheme: w.client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; <-time.After(200 * time.Millisecond) {
		decided := o.DeepCopy()
		decided.Spec.Decision = &v1alpha1.ApprovalDecision{Outcome: v1alpha1.Reject}
		if err = kim.Update(t.Context(), decided, client.DryRunAll); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no decision is taken: %v", err)
		}
	}
	if err := w.client.Delete(t.Context(), &o); err != nil {
		t.Fatal(err)
	}
}

// raise lets a call wait, as the gate does.
func (w inCluster) raise(t *testing.T, name, id string) {
	t.Helper()
	digest := v1alpha1.Digest("sha256:" + strings.Repeat("ab", 32))
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	o := &v1alpha1.ToolApproval{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec: v1alpha1.ToolApprovalSpec{Seal: "s", Call: v1alpha1.PendingCall{
			ID: strings.Repeat(id, 32), CallKey: digest, Caller: w.namespace + "/agent", Tool: "file.delete", Class: "Destructive", Base: "Destructive",
			ArgumentsDigest: digest, Arguments: `{"path":"/srv/old.txt"}`, UserTurnsDigest: digest, UserRequest: "delete the old file",
			Message: "Delete the file /srv/old.txt?", ConfirmReasons: []string{"Irreversible"}, PolicyDigest: digest,
			Approvers: v1alpha1.AllowedApprovers{SelfApproval: v1alpha1.SelfApprovalForbid, Channels: []v1alpha1.ApprovalChannel{v1alpha1.ChannelKubernetes}},
			RaisedAt:  now, ExpiresAt: metav1.NewTime(now.Add(10 * time.Minute)),
		}},
	}
	if err := w.client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

func (w inCluster) decision(t *testing.T, name string) *v1alpha1.ApprovalDecision {
	t.Helper()
	var o v1alpha1.ToolApproval
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, &o); err != nil {
		t.Fatal(err)
	}
	return o.Spec.Decision
}

func TestInACluster(t *testing.T) {
	w := newInCluster(t)
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", "")
	t.Chdir(t.TempDir())
	w.raise(t, "first", "1")
	w.raise(t, "second", "2")
	kim := []string{"--kubeconfig", w.Kubeconfig(t, "kim"), "-n", w.namespace}
	lee := []string{"--kubeconfig", w.Kubeconfig(t, "lee"), "-n", w.namespace}

	t.Run("pending lists what waits", func(t *testing.T) {
		out, errs, code := command(t, "", append([]string{"pending"}, kim...)...)
		if code != exitOK || !strings.Contains(out, "first") || !strings.Contains(out, "Delete the file /srv/old.txt?") {
			t.Errorf("exit %d\n%s%s", code, out, errs)
		}
	})
	t.Run("the kubeconfig of the environment is enough", func(t *testing.T) {
		t.Setenv("KUBECONFIG", w.KubeconfigOf(t, w.Config()))
		out, errs, code := command(t, "", "pending", "-A", "-o", "json")
		var all []approval.Approval
		if err := json.Unmarshal([]byte(out), &all); code != exitOK || err != nil || len(all) != 2 {
			t.Errorf("exit %d, %v\n%s%s", code, err, out, errs)
		}
	})
	t.Run("a call is shown in full, and nothing happens without a yes", func(t *testing.T) {
		out, errs, code := command(t, "no\n", append([]string{"approve", "first"}, kim...)...)
		for _, want := range []string{`{"path":"/srv/old.txt"}`, "delete the old file   (claimed by the agent)", "also waits", "second"} {
			if !strings.Contains(out, want) {
				t.Errorf("want %q in\n%s%s", want, out, errs)
			}
		}
		if code == exitOK || w.decision(t, "first") != nil {
			t.Errorf("exit %d, decision %+v", code, w.decision(t, "first"))
		}
	})
	t.Run("who may not approve does not", func(t *testing.T) {
		if _, errs, code := command(t, "yes\n", append([]string{"approve", "first"}, lee...)...); code == exitOK || w.decision(t, "first") != nil {
			t.Errorf("exit %d %s", code, errs)
		}
	})
	t.Run("an approval is in the name of who gave it", func(t *testing.T) {
		out, errs, code := command(t, "yes\n", append([]string{"approve", "first", "-m", "go ahead"}, kim...)...)
		d := w.decision(t, "first")
		if code != exitOK || !strings.Contains(out, "first approved") || d == nil || d.Outcome != v1alpha1.Approve || d.By.Name != "kim" || d.Message != "go ahead" {
			t.Errorf("exit %d, decision %+v\n%s%s", code, d, out, errs)
		}
		if _, errs, code := command(t, "", append([]string{"approve", "first", "--yes"}, kim...)...); code == exitOK || !strings.Contains(errs, "only a pending call") {
			t.Errorf("a second time: exit %d %s", code, errs)
		}
	})
	t.Run("a rejection has the words of who gave it", func(t *testing.T) {
		_, errs, code := command(t, "", append([]string{"reject", "second", "-m", "keep it"}, kim...)...)
		if d := w.decision(t, "second"); code != exitOK || d == nil || d.Outcome != v1alpha1.Reject || d.Message != "keep it" || d.By.Name != "kim" {
			t.Errorf("exit %d, decision %+v %s", code, d, errs)
		}
	})
	t.Run("what people decided is exported", func(t *testing.T) {
		out, errs, code := command(t, "", append([]string{"labels", "export"}, kim...)...)
		if code != exitOK || strings.Count(out, "\n") != 2 || !strings.Contains(out, `"label":"allow"`) || !strings.Contains(out, `"label":"block"`) || strings.Contains(out, "/srv/old.txt") {
			t.Errorf("exit %d\n%s%s", code, out, errs)
		}
	})
	t.Run("a call that is not there", func(t *testing.T) {
		if _, errs, code := command(t, "", append([]string{"approve", "third"}, kim...)...); code != exitError || !strings.Contains(errs, "no such approval: name its namespace with -n") {
			t.Errorf("exit %d %s", code, errs)
		}
	})
	t.Run("a desk and a cluster at once", func(t *testing.T) {
		if _, errs, code := command(t, "", append([]string{"pending", "--url", "http://127.0.0.1:1"}, kim...)...); code != exitUsage {
			t.Errorf("exit %d %s", code, errs)
		}
	})
	t.Run("who decides", w.whoDecides)
	t.Run("doctor", w.doctor)
}

func (w inCluster) whoDecides(t *testing.T) {
	admin := []string{"--kubeconfig", w.KubeconfigOf(t, w.Config()), "-n", w.namespace}
	out, errs, code := command(t, "", append([]string{"who-decides", "sa/agent"}, admin...)...)
	if code != exitOK {
		t.Fatalf("exit %d %s", code, errs)
	}
	for _, want := range []string{"ToolPolicy/" + w.namespace + "/files@1", "spec.subjects names agent", "file:read", "file.delete", "Irreversible", "looks at path /path by"} {
		if !strings.Contains(out, want) {
			t.Errorf("want %q in\n%s", want, out)
		}
	}
	out, _, _ = command(t, "", append([]string{"who-decides", "sa/other", "-o", "json"}, admin...)...)
	var who doctor.Who
	if err := json.Unmarshal([]byte(out), &who); err != nil || !strings.HasPrefix(who.Verdict, "Block NoPolicy") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, errs, code := command(t, "", append([]string{"who-decides", "agent"}, admin...)...); code != exitUsage {
		t.Errorf("exit %d %s", code, errs)
	}
	lee := []string{"who-decides", "sa/agent", "--kubeconfig", w.Kubeconfig(t, "lee"), "-n", w.namespace}
	if out, errs, code := command(t, "", lee...); code != exitError || !strings.Contains(errs, "forbidden") {
		t.Errorf("who may not read policies gets exit %d\n%s%s", code, out, errs)
	}
}

func (w inCluster) doctor(t *testing.T) {
	admin := []string{"doctor", "--kubeconfig", w.KubeconfigOf(t, w.Config()), "-n", w.namespace}
	out, errs, code := command(t, "", append(admin, "-o", "json")...)
	var found []doctor.Finding
	if err := json.Unmarshal([]byte(out), &found); err != nil || code != exitFailed {
		t.Fatalf("exit %d, %v %s", code, err, errs)
	}
	byCheck := map[doctor.Check]bool{}
	for _, f := range found {
		byCheck[f.Check] = true
	}
	for check, want := range map[doctor.Check]bool{
		doctor.CheckManager: true, doctor.CheckGates: true, doctor.CheckWebhooks: true, doctor.CheckPolicies: true, doctor.CheckCertificates: true,
		doctor.CheckDefinitions: false, doctor.CheckNotSeen: false,
	} {
		if byCheck[check] != want {
			t.Errorf("%s: found %v, want %v\n%s", check, byCheck[check], want, out)
		}
	}
	if out, _, code := command(t, "", append(admin, "--fail-on", "Never")...); code != exitOK || !strings.Contains(out, "has no manager") {
		t.Errorf("exit %d\n%s", code, out)
	}
	if _, _, code := command(t, "", append(admin, "--fail-on", "always")...); code != exitUsage {
		t.Errorf("exit %d", code)
	}
	if _, errs, code := command(t, "", "doctor", "--kubeconfig", w.Kubeconfig(t, "lee")); code != exitError || !strings.Contains(errs, "forbidden") {
		t.Errorf("who may read nothing gets exit %d %s", code, errs)
	}
}
