package objects_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"gatewright.dev/gatewright/config/admission"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/approval/objects"
)

type (
	policy  = admissionregistrationv1.ValidatingAdmissionPolicy
	binding = admissionregistrationv1.ValidatingAdmissionPolicyBinding
)

// What the guard takes for its own policy, in an installation in another namespace than the usual one.
func TestAnAlteredPolicyIsNotInForce(t *testing.T) {
	created := metav1.NewTime(noon)
	write := func(at time.Duration, subresource string) metav1.ManagedFieldsEntry {
		written := metav1.NewTime(noon.Add(at))
		return metav1.ManagedFieldsEntry{Manager: "m", Operation: metav1.ManagedFieldsOperationApply, Time: &written, Subresource: subresource}
	}
	for name, test := range map[string]struct {
		change func(p *policy, b *binding)
		status int
		since  time.Duration
		want   error
	}{
		"as it is": {},
		"written again later": {
			change: func(_ *policy, b *binding) {
				b.ManagedFields = []metav1.ManagedFieldsEntry{write(time.Minute, ""), write(time.Second, "")}
			},
			since: time.Minute,
		},
		"its status was written later": {
			change: func(p *policy, _ *binding) {
				p.ManagedFields = []metav1.ManagedFieldsEntry{write(time.Minute, "status")}
			},
		},
		"a validation less": {
			change: func(p *policy, _ *binding) { p.Spec.Validations = p.Spec.Validations[1:] }, want: objects.ErrUnguarded,
		},
		"a validation that always holds": {
			change: func(p *policy, _ *binding) { p.Spec.Validations[3].Expression = "true" }, want: objects.ErrUnguarded,
		},
		"a variable that says another thing": {
			change: func(p *policy, _ *binding) { p.Spec.Variables[1].Expression = "true" }, want: objects.ErrUnguarded,
		},
		"failures are let through": {
			change: func(p *policy, _ *binding) {
				ignore := admissionregistrationv1.Ignore
				p.Spec.FailurePolicy = &ignore
			}, want: objects.ErrUnguarded,
		},
		"a condition that leaves requests out": {
			change: func(p *policy, _ *binding) {
				p.Spec.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "none", Expression: "false"}}
			}, want: objects.ErrUnguarded,
		},
		"deletion left out": {
			change: func(p *policy, _ *binding) {
				rule := &p.Spec.MatchConstraints.ResourceRules[0]
				rule.Operations = rule.Operations[:2]
			}, want: objects.ErrUnguarded,
		},
		"a binding that only warns": {
			change: func(_ *policy, b *binding) {
				b.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn}
			}, want: objects.ErrUnguarded,
		},
		"a binding for some namespaces": {
			change: func(_ *policy, b *binding) {
				b.Spec.MatchResources = &admissionregistrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}
			}, want: objects.ErrUnguarded,
		},
		"a policy that is being deleted": {
			change: func(p *policy, _ *binding) { p.DeletionTimestamp = &created }, want: objects.ErrUnguarded,
		},
		"no policy":           {status: http.StatusNotFound, want: objects.ErrUnguarded},
		"not to be read":      {status: http.StatusForbidden, want: approval.ErrUnavailable},
		"an unable apiserver": {status: http.StatusInternalServerError, want: approval.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			p, b, err := admission.Approvals("elsewhere")
			if err != nil {
				t.Fatal(err)
			}
			if text := p.Spec.Variables[1].Expression; !strings.Contains(text, "system:serviceaccount:elsewhere:") {
				t.Fatalf("the gate is %s", text)
			}
			p.CreationTimestamp, b.CreationTimestamp = created, created
			if test.change != nil {
				test.change(p, b)
			}
			g := serve(t, test.status, p, b)
			since, err := g.InForce(t.Context())
			if test.want == nil && (err != nil || !since.Equal(noon.Add(test.since))) {
				t.Errorf("in force since %v, %v; want %v", since, err, noon.Add(test.since))
			}
			if test.want != nil && !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
			if errors.Is(err, objects.ErrUnguarded) != errors.Is(test.want, objects.ErrUnguarded) {
				t.Errorf("error %v: whether it is missing and whether it could be read are two things", err)
			}
		})
	}
}

func TestThePolicyIsReadAgainAfterTenSeconds(t *testing.T) {
	p, b, err := admission.Approvals("elsewhere")
	if err != nil {
		t.Fatal(err)
	}
	var reads atomic.Int32
	g := serve(t, 0, p, b, func() { reads.Add(1) })
	for _, step := range []struct {
		pass time.Duration
		want int32
	}{{0, 2}, {9999 * time.Millisecond, 2}, {time.Millisecond, 4}, {-time.Hour, 4}} {
		g.Clock.SetTime(g.Clock.Now().Add(step.pass))
		if _, err := g.InForce(t.Context()); err != nil || reads.Load() != step.want {
			t.Errorf("after %s more: %d reads, %v; want %d", step.pass, reads.Load(), err, step.want)
		}
	}
}

// serve gives a guard whose API server has these objects, or answers with a status.
func serve(t *testing.T, status int, p *policy, b *binding, read ...func()) *objects.Guard {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, f := range read {
			f()
		}
		w.Header().Set("Content-Type", "application/json")
		var o any = b
		if strings.Contains(r.URL.Path, "/validatingadmissionpolicies/") {
			o = p
		}
		if status != 0 {
			reason := map[int]metav1.StatusReason{http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusForbidden: metav1.StatusReasonForbidden}[status]
			w.WriteHeader(status)
			o = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: reason, Code: int32(status)}
		}
		_ = json.NewEncoder(w).Encode(o)
	}))
	t.Cleanup(server.Close)
	g, err := objects.NewGuard(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, "elsewhere")
	if err != nil {
		t.Fatal(err)
	}
	return g
}
