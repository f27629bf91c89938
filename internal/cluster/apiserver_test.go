package cluster

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clocktesting "k8s.io/utils/clock/testing"

	"gatewright.dev/gatewright/internal/gate"
	"gatewright.dev/gatewright/internal/kubetest"
	"gatewright.dev/gatewright/internal/names"
	"gatewright.dev/gatewright/internal/policy"
)

// asGate gives a client of the gate's service account with the roles that the chart gives it.
func asGate(t *testing.T, s *kubetest.Server) kubernetes.Interface {
	t.Helper()
	s.EnsureNamespace(t, names.Namespace)
	s.Apply(t, "config/rbac/accounts.yaml", "config/rbac/gate.yaml")
	client, err := kubernetes.NewForConfig(s.ServiceAccount(t, names.Namespace, names.GateServiceAccount))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestTokensOfARealAPIServer(t *testing.T) {
	s := kubetest.Start(t)
	client, namespace := asGate(t, s), s.Namespace(t)
	clock := clocktesting.NewFakeClock(time.Now())
	keys := NewKeys(client.Discovery().RESTClient(), clock, slog.New(slog.DiscardHandler))
	if err := keys.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := &identityWorld{clock: clock}
	isAway := false
	var err error
	w.Identity, err = NewIdentity(IdentityOptions{
		Reviews: client.AuthenticationV1().TokenReviews(), Keys: keys, IsAway: func() bool { return isAway }, Audience: names.Audience,
		Limit: time.Minute, Clock: clock, Registry: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	token := s.Token(t, namespace, "agent", names.Audience)
	want := policy.Caller{Namespace: namespace, ServiceAccount: "agent"}
	known := func(step string, token string, wantErr error) {
		t.Helper()
		caller, err := w.who(t, token, address)
		if !errors.Is(err, wantErr) || (err == nil) != (wantErr == nil) || err == nil && caller != want {
			t.Fatalf("%s: %v, %v", step, caller, err)
		}
	}
	known("a token for the gate", token, nil)
	known("a token for the API server", s.Token(t, namespace, "agent"), gate.ErrUnknownCaller)
	known("a token for another server", s.Token(t, namespace, "agent", "vault"), gate.ErrUnknownCaller)
	known("a token for several, the gate among them", s.Token(t, namespace, "agent", "vault", names.Audience), nil)
	isAway = true
	known("a token that was never seen, by its signature alone", s.Token(t, namespace, "agent", names.Audience, "other"), nil)
	isAway = false

	if err := s.Client(t).CoreV1().ServiceAccounts(namespace).Delete(t.Context(), "agent", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	clock.Step(MaxTokenTTL - 1)
	// The API server goes by what it knew for 10 s of its own time.
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if _, err := w.review(t.Context(), token); errors.Is(err, refusedByServer) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the API server still knows a service account that is gone")
		}
	}
	known("what is remembered still counts", token, nil)
	clock.Step(1)
	known("a service account that is gone", token, gate.ErrUnknownCaller)
	isAway = true
	clock.Step(time.Minute)
	known("and stays gone while the API server is away", token, gate.ErrUnknownCaller)
}

func TestToolsByRBACOfARealAPIServer(t *testing.T) {
	s := kubetest.Start(t)
	client, namespace := asGate(t, s), s.Namespace(t)
	clock := clocktesting.NewFakeClock(time.Now())
	a, err := NewAuthorizer(client.AuthorizationV1().SubjectAccessReviews(), func() bool { return false }, clock, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	caller := policy.Caller{Namespace: namespace, ServiceAccount: "agent"}
	may := func(tool string, want bool) bool {
		t.Helper()
		got, err := a.Authorize(t.Context(), caller, tool)
		if err != nil {
			t.Fatal(err)
		}
		return got == want
	}
	if !may("orders.read", false) {
		t.Fatal("a tool is allowed that nobody has granted")
	}
	rbac := s.Client(t).RbacV1()
	if _, err := rbac.Roles(namespace).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"gatewright.dev"}, Resources: []string{ToolsResource}, ResourceNames: []string{"orders.read"}, Verbs: []string{InvokeVerb}}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := rbac.RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		// A whole namespace by its group: the review has to name the caller's groups.
		Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:serviceaccounts:" + namespace}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(30 * time.Second); !may("orders.read", true); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a granted tool is not allowed")
		}
		clock.Step(authorizedTTL)
	}
	if !may("orders.delete", false) {
		t.Error("another tool is allowed")
	}
	caller.Namespace = "default"
	if !may("orders.read", false) {
		t.Error("it is allowed in another namespace")
	}
}
