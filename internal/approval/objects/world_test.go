package objects_test

import (
	"context"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/approval/objects"
	"gatewright.dev/gatewright/internal/kubetest"
	"gatewright.dev/gatewright/internal/names"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

const shop = "shop"

var (
	approvals         = v1alpha1.GroupVersion.WithResource("toolapprovals")
	admissionPolicies = admissionregistrationv1.SchemeGroupVersion.WithResource("validatingadmissionpolicies")
	admissionBindings = admissionregistrationv1.SchemeGroupVersion.WithResource("validatingadmissionpolicybindings")
)

// cluster is the server of this package with Gatewright's admission policies, service accounts and roles.
type cluster struct {
	*kubetest.Server
	gate, manager *rest.Config

	mu    sync.Mutex
	users map[string]*rest.Config
}

var (
	installing sync.Mutex
	installed  *cluster
)

// install makes the cluster once. It waits until the policies are as old as an approval has to find them.
func install(t testing.TB) *cluster {
	t.Helper()
	s := kubetest.Start(t)
	installing.Lock()
	defer installing.Unlock()
	if installed != nil {
		return installed
	}
	installed = newCluster(t, s)
	return installed
}

func newCluster(t testing.TB, s *kubetest.Server) *cluster {
	t.Helper()
	for _, namespace := range []string{names.Namespace, shop} {
		s.EnsureNamespace(t, namespace)
	}
	s.Apply(t, "config/admission/approvals.yaml", "config/admission/approver.yaml", "internal/approval/objects/testdata/rbac.yaml")
	c := &cluster{
		Server: s, users: map[string]*rest.Config{},
		gate: s.ServiceAccount(t, names.Namespace, names.GateServiceAccount), manager: s.ServiceAccount(t, names.Namespace, names.ManagerServiceAccount),
	}
	c.age(t)
	return c
}

// age waits until approvals that are made now are younger than the policies by as much as the store asks for.
func (c *cluster) age(t testing.TB) {
	t.Helper()
	client := c.Client(t).AdmissionregistrationV1()
	policy, err := client.ValidatingAdmissionPolicies().Get(t.Context(), names.ApprovalPolicy, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(lastWrite(policy).Add(7 * time.Second)))
}

func lastWrite(p *admissionregistrationv1.ValidatingAdmissionPolicy) time.Time {
	last := p.CreationTimestamp.Time
	for _, f := range p.ManagedFields {
		if f.Subresource == "" && f.Time.After(last) {
			last = f.Time.Time
		}
	}
	return last
}

// user gives the configuration of an approver.
func (c *cluster) user(t testing.TB, name string) *rest.Config {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.users[name] == nil {
		c.users[name] = c.User(t, name, "approvers")
	}
	return c.users[name]
}

// clear deletes all approvals and leases, as the manager may.
func (c *cluster) clear(t testing.TB) {
	t.Helper()
	all := dynamic.NewForConfigOrDie(c.manager).Resource(approvals)
	list, err := all.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		o := &list.Items[i]
		if err := all.Namespace(o.GetNamespace()).Delete(t.Context(), o.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	leases := c.Client(t).CoordinationV1().Leases(names.Namespace)
	if err := leases.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) leases(t testing.TB) []coordinationv1.Lease {
	t.Helper()
	list, err := kubernetes.NewForConfigOrDie(c.Config()).CoordinationV1().Leases(names.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func seals(t testing.TB, c clock.PassiveClock) *approval.Seals {
	t.Helper()
	s, err := approval.OpenSeals("", c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// open opens a store of a gate, filled.
func (c *cluster) open(t testing.TB, clock clock.PassiveClock, s *approval.Seals, change ...func(*objects.Options)) *objects.Store {
	t.Helper()
	o := objects.Options{Config: c.gate, Identity: "gate-0", Seals: s, Clock: clock, Timeout: 20 * time.Second}
	for _, f := range change {
		f(&o)
	}
	store, err := objects.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	if err := store.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store
}

// people is a store whose users decide with their own credentials, as kubectl does for them.
type people struct {
	*objects.Store
	t       testing.TB
	cluster *cluster
	clock   clock.PassiveClock
}

func (p *people) Decide(ctx context.Context, name string, d approval.Decision) error {
	if d.By.Type != approval.KubernetesUser {
		return p.Store.Decide(ctx, name, d)
	}
	a, err := p.Get(ctx, name)
	if err != nil {
		return err
	}
	if a.State == approval.Consumed {
		return approval.ErrDecided
	}
	client, err := objects.NewClient(p.cluster.user(p.t, d.By.Name))
	if err != nil {
		return err
	}
	namespace, _ := a.Call.Namespace()
	return client.Decide(ctx, namespace, name, d, p.clock.Now())
}

// mirrored gives an object as the API server has it.
func (c *cluster) object(t testing.TB, name string) *v1alpha1.ToolApproval {
	t.Helper()
	got, err := dynamic.NewForConfigOrDie(c.Config()).Resource(approvals).Namespace(shop).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o := &v1alpha1.ToolApproval{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(got.Object, o); err != nil {
		t.Fatal(err)
	}
	return o
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func atNoon() *clocktesting.FakePassiveClock { return clocktesting.NewFakePassiveClock(noon) }

// gateWithPatch is the gate's user where RBAC lets it patch as well, so that only admission holds it back.
func (c *cluster) gateWithPatch(t testing.TB) *rest.Config {
	t.Helper()
	c.Apply(t, "internal/approval/objects/testdata/patching-gate.yaml")
	return c.gate
}
