package leasestore_test

import (
	"errors"
	"net"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"gatewright.dev/gatewright/internal/kubetest"
	"gatewright.dev/gatewright/permit"
	"gatewright.dev/gatewright/permit/leasestore"
	"gatewright.dev/gatewright/permit/storetest"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

// tools is a service account that may do with Leases what the store asks for and nothing else.
func tools(t *testing.T, s *kubetest.Server) (*rest.Config, string) {
	t.Helper()
	namespace := s.Namespace(t)
	roles := s.Client(t).RbacV1()
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "permits"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, Verbs: []string{"create", "list", "delete"}}},
	}
	if _, err := roles.Roles(namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "permits"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "permits"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "tools"}},
	}
	if _, err := roles.RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return s.ServiceAccount(t, namespace, "tools"), namespace
}

func open(t *testing.T, config *rest.Config, namespace string, c clock.PassiveClock) *leasestore.Store {
	t.Helper()
	s, err := leasestore.Open(leasestore.Options{Config: config, Namespace: namespace, Identity: "tools-0", Timeout: 20 * time.Second, Clock: c})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestLeasesConform(t *testing.T) {
	s := kubetest.Start(t)
	storetest.Run(t, func(t *testing.T, c clock.PassiveClock) func() permit.Store {
		config, namespace := tools(t, s)
		return func() permit.Store { return open(t, config, namespace, c) }
	}, false)
}

func TestALeaseStaysAsLongAsItsPermitIsGoodAndSomewhatLonger(t *testing.T) {
	s := kubetest.Start(t)
	config, namespace := tools(t, s)
	c := clocktesting.NewFakePassiveClock(storetest.Noon)
	store := open(t, config, namespace, c)
	const jti = "0123456789abcdef-kept"
	if err := store.Use(t.Context(), jti, storetest.Noon.Add(5*time.Minute)); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		at   time.Duration
		want int
	}{{5 * time.Minute, 1}, {15 * time.Minute, 1}, {15*time.Minute + 2*time.Second, 0}} {
		c.SetTime(storetest.Noon.Add(step.at))
		if err := store.Tidy(t.Context()); err != nil {
			t.Fatal(err)
		}
		leases, err := s.Client(t).CoordinationV1().Leases(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(leases.Items) != step.want {
			t.Errorf("after %s: %d leases (%v), want %d", step.at, len(leases.Items), err, step.want)
		}
	}
	c.SetTime(storetest.Noon)
	if err := store.Use(t.Context(), jti, storetest.Noon.Add(5*time.Minute)); err == nil {
		t.Error("on a clock that was set back the permit is good again")
	}
	if err := store.Ready(t.Context()); err != nil {
		t.Errorf("Ready: %v", err)
	}
}

func TestNothingIsUsedThatCannotBeWrittenDown(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	gone := open(t, &rest.Config{Host: "http://" + closed.Addr().String()}, "tools", nil)
	if err := gone.Use(t.Context(), "0123456789abcdef-gone", time.Now().Add(time.Minute)); err == nil || errors.Is(err, permit.ErrUsed) {
		t.Errorf("without an API server: %v, want an error that is not ErrUsed", err)
	}
	if err := gone.Ready(t.Context()); err == nil {
		t.Error("without an API server it is ready")
	}
	if _, err := leasestore.Open(leasestore.Options{Config: &rest.Config{}}); err == nil {
		t.Error("a store without a namespace was opened")
	}
	s := kubetest.Start(t)
	_, namespace := tools(t, s)
	forbidden := open(t, s.ServiceAccount(t, namespace, "another"), namespace, nil)
	if err := forbidden.Use(t.Context(), "0123456789abcdef-forbidden", time.Now().Add(time.Minute)); err == nil || errors.Is(err, permit.ErrUsed) {
		t.Errorf("without a role: %v, want an error that is not ErrUsed", err)
	}
}
