package doctor_test

import (
	"context"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"gatewright.dev/gatewright/internal/doctor"
	"gatewright.dev/gatewright/internal/kubetest"
	"gatewright.dev/gatewright/internal/names"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

// findings of some checks, by object.
func findings(t *testing.T, c client.Reader, checks ...doctor.Check) map[string]string {
	t.Helper()
	s, err := doctor.Gather(t.Context(), c, names.Namespace, "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range doctor.Diagnose(t.Context(), s) {
		for _, check := range checks {
			if f.Check == check {
				out[f.Object] += f.Message
			}
		}
	}
	return out
}

// What an API server makes of the manifests, defaults included, is what the doctor wants; and it sees one that was changed.
func TestInstalledAsItIsShipped(t *testing.T) {
	s := kubetest.Start(t)
	s.EnsureNamespace(t, names.Namespace)
	scheme, err := doctor.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(s.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	checks := []doctor.Check{doctor.CheckAdmission, doctor.CheckWebhooks, doctor.CheckDefinitions, doctor.CheckNotSeen, doctor.CheckDeciders}
	for _, component := range []string{names.ComponentDecider, names.ComponentGate, names.ComponentManager} {
		createPod(t, c, names.Namespace, component)
	}
	createPod(t, c, s.Namespace(t), "agent")
	got := findings(t, c, checks...)
	if len(got) < 5 || !strings.HasPrefix(got["Pod/"+names.Namespace+"/decider"], "can be reached by everybody") {
		t.Errorf("nothing is installed, and it found only %v", got)
	}
	s.Apply(t, "config/admission", "config/webhook/webhooks.yaml", "config/network-policy/network-policy.yaml")
	for object, message := range findings(t, c, checks...) {
		if !strings.HasPrefix(message, "has no authority for") || strings.Contains(message, "something else") {
			t.Errorf("%s %s", object, message)
		}
	}
	var binding admissionregistrationv1.ValidatingAdmissionPolicyBinding
	if err := c.Get(t.Context(), client.ObjectKey{Name: "gatewright-approvals"}, &binding); err != nil {
		t.Fatal(err)
	}
	binding.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Audit}
	if err := c.Update(t.Context(), &binding); err != nil {
		t.Fatal(err)
	}
	if got := findings(t, c, checks...)["ValidatingAdmissionPolicyBinding/gatewright-approvals"]; !strings.HasPrefix(got, "says something else") {
		t.Errorf("a binding that only audits: %q", got)
	}
}

// createPod makes a pod of a part of the installation, or of somebody else.
func createPod(t *testing.T, c client.Client, namespace, component string) {
	t.Helper()
	err := c.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: component, Labels: map[string]string{names.NameLabel: names.Name, names.ComponentLabel: component}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "gatewright:1"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWhatCannotBeRead(t *testing.T) {
	scheme, err := doctor.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	forbidden := func(l client.ObjectList) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "these"}, "", nil)
	}
	tests := map[string]struct {
		refuses   func(client.ObjectList) bool
		refuseGet bool
		wantErr   bool
		wantSeen  string
	}{
		"one kind is a finding":        {refuses: func(l client.ObjectList) bool { return strings.Contains(kindOf(l), "NetworkPolicy") }, wantSeen: "networkpolicies"},
		"secrets are a finding each":   {refuseGet: true, wantSeen: "secret gatewright-gate-tls"},
		"nothing at all is an error":   {refuses: func(client.ObjectList) bool { return true }, refuseGet: true, wantErr: true},
		"an empty cluster can be read": {},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, o ...client.ListOption) error {
					if tt.refuses != nil && tt.refuses(l) {
						return forbidden(l)
					}
					return nil // what is listed is not what this is about
				},
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					if tt.refuseGet {
						return forbidden(nil)
					}
					return c.Get(ctx, key, o, options...)
				},
			})
			s, err := doctor.Gather(t.Context(), b.Build(), names.Namespace, "", time.Now())
			if (err != nil) != tt.wantErr {
				t.Fatal(err)
			}
			if err != nil {
				return
			}
			seen := ""
			for _, f := range doctor.Diagnose(t.Context(), s) {
				if f.Check == doctor.CheckNotSeen {
					seen += f.Object + "\n"
				}
			}
			if (seen != "") != (tt.wantSeen != "") || !strings.Contains(seen, tt.wantSeen) {
				t.Errorf("could not see %q, want %q", seen, tt.wantSeen)
			}
		})
	}
}

func kindOf(l client.ObjectList) string {
	scheme, err := doctor.NewScheme()
	if err != nil {
		return ""
	}
	kinds, _, err := scheme.ObjectKinds(l)
	if err != nil {
		return ""
	}
	return kinds[0].Kind
}
