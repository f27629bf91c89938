package webhook

import (
	"context"
	"errors"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/names"
	"gatewright.dev/gatewright/internal/policy"
	"gatewright.dev/gatewright/internal/testkit"
)

func TestAgentBy(t *testing.T) {
	caller := policy.Caller{Namespace: testkit.Namespace, ServiceAccount: testkit.ServiceAccount}
	tests := map[string]struct {
		policies []*v1alpha1.ToolPolicy
		floors   []*v1alpha1.ClusterToolPolicy
		want     string
	}{
		"without policies nobody is":                    {},
		"a policy for everybody of its namespace":       {policies: []*v1alpha1.ToolPolicy{testkit.ToolPolicy("p")}, want: "ToolPolicy/shop/p"},
		"a policy that selects it":                      {policies: []*v1alpha1.ToolPolicy{testkit.ToolPolicy("p", testkit.ForSubjects("other", testkit.ServiceAccount))}, want: "ToolPolicy/shop/p"},
		"a policy that selects another":                 {policies: []*v1alpha1.ToolPolicy{testkit.ToolPolicy("p", testkit.ForSubjects("other"))}},
		"a policy of another namespace":                 {policies: []*v1alpha1.ToolPolicy{testkit.ToolPolicy("p", testkit.InNamespace("other"))}},
		"a policy in mode Audit":                        {policies: []*v1alpha1.ToolPolicy{testkit.ToolPolicy("p", testkit.InAudit())}, want: "ToolPolicy/shop/p"},
		"a floor for all namespaces makes none":         {floors: []*v1alpha1.ClusterToolPolicy{testkit.ClusterToolPolicy("f")}},
		"a floor that lists its namespace":              {floors: []*v1alpha1.ClusterToolPolicy{testkit.ClusterToolPolicy("f", testkit.ForNamespaces(testkit.Namespace))}, want: "ClusterToolPolicy/f"},
		"a floor that lists another":                    {floors: []*v1alpha1.ClusterToolPolicy{testkit.ClusterToolPolicy("f", testkit.ForNamespaces("other"))}},
		"a floor for all that grants it something":      {floors: []*v1alpha1.ClusterToolPolicy{testkit.ClusterToolPolicy("f", testkit.Grant("a"))}, want: "ClusterToolPolicy/f"},
		"the policy of its namespace is named first":    {policies: []*v1alpha1.ToolPolicy{testkit.ToolPolicy("p")}, floors: []*v1alpha1.ClusterToolPolicy{testkit.ClusterToolPolicy("f", testkit.Grant("a"))}, want: "ToolPolicy/shop/p"},
		"of several the first that selects it is named": {policies: []*v1alpha1.ToolPolicy{testkit.ToolPolicy("a", testkit.ForSubjects("other")), testkit.ToolPolicy("b")}, want: "ToolPolicy/shop/b"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var policies []v1alpha1.ToolPolicy
			for _, p := range tt.policies {
				policies = append(policies, *p)
			}
			var floors []v1alpha1.ClusterToolPolicy
			for _, p := range tt.floors {
				floors = append(floors, *p)
			}
			if got := AgentBy(caller, policies, floors); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func testScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestProtect(t *testing.T) {
	const agent = "system:serviceaccount:shop:agent"
	errAway := errors.New("the API server is away")
	tests := map[string]struct {
		user        string
		fails       func(client.ObjectList) bool
		wantAllowed bool
		want        string
	}{
		"an agent": {user: agent, want: "SelfProtection: shop/agent is an agent by ToolPolicy/shop/p, and an agent may not update toolpolicies"},
		"a person": {user: "kim", wantAllowed: true},
		"a service account that no policy selects": {user: "system:serviceaccount:ci:deployer", wantAllowed: true},
		"the gate": {user: "system:serviceaccount:" + names.Namespace + ":" + names.GateServiceAccount, wantAllowed: true},
		"who takes away what is left of a namespace":   {user: "system:serviceaccount:kube-system:namespace-controller", wantAllowed: true},
		"the account of evaluations, as any other":     {user: "system:serviceaccount:" + names.Namespace + ":" + names.EvaluatorServiceAccount, fails: func(l client.ObjectList) bool { _, is := l.(*v1alpha1.ClusterToolPolicyList); return is }, want: "listing cluster tool policies"},
		"a name that cannot be read":                   {user: "system:serviceaccount:shop", want: "cannot be read"},
		"an agent when policies cannot be listed":      {user: agent, fails: func(l client.ObjectList) bool { _, is := l.(*v1alpha1.ToolPolicyList); return is }, want: "listing tool policies"},
		"anybody when cluster policies cannot be read": {user: "system:serviceaccount:ci:deployer", fails: func(l client.ObjectList) bool { _, is := l.(*v1alpha1.ClusterToolPolicyList); return is }, want: "listing cluster tool policies"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			reader := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(testkit.ToolPolicy("p")).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, o ...client.ListOption) error {
					if tt.fails != nil && tt.fails(l) {
						return errAway
					}
					return c.List(ctx, l, o...)
				},
			}).Build()
			p := &protector{reader: reader, exempt: ownAccounts(names.Namespace)}
			got := p.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Operation: admissionv1.Update, UserInfo: authenticationv1.UserInfo{Username: tt.user},
				Resource: metav1.GroupVersionResource{Resource: "toolpolicies"},
			}})
			if got.Allowed != tt.wantAllowed || !strings.Contains(got.Result.Message, tt.want) {
				t.Errorf("allowed %v: %s", got.Allowed, got.Result.Message)
			}
		})
	}
}
