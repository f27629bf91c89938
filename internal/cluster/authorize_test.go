package cluster

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

type accessReviewer struct {
	status authorizationv1.SubjectAccessReviewStatus
	err    error
	asked  []authorizationv1.SubjectAccessReviewSpec
}

func (r *accessReviewer) Create(_ context.Context, in *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	r.asked = append(r.asked, in.Spec)
	out := in.DeepCopy()
	out.Status = r.status
	return out, r.err
}

func TestWhetherAToolIsAuthorized(t *testing.T) {
	type status = authorizationv1.SubjectAccessReviewStatus
	for name, test := range map[string]struct {
		status    status
		err       error
		isAway    bool
		want      bool
		wantErr   bool
		remembers bool
		asks      int
	}{
		"allowed":                            {status: status{Allowed: true}, want: true, remembers: true, asks: 1},
		"no opinion":                         {status: status{}, remembers: true, asks: 1},
		"denied":                             {status: status{Denied: true}, remembers: true, asks: 1},
		"allowed and denied":                 {status: status{Allowed: true, Denied: true}, remembers: true, asks: 1},
		"allowed although something failed":  {status: status{Allowed: true, EvaluationError: "x"}, want: true, remembers: true, asks: 1},
		"not allowed as something failed":    {status: status{EvaluationError: "x"}, wantErr: true, asks: 1},
		"the API server does not answer":     {err: errors.New("away"), status: status{Allowed: true}, wantErr: true, asks: 1},
		"the API server is known to be away": {isAway: true, status: status{Allowed: true}, wantErr: true},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(noon)
			server := &accessReviewer{status: test.status, err: test.err}
			a, err := NewAuthorizer(server, func() bool { return test.isAway }, clock, prometheus.NewRegistry())
			if err != nil {
				t.Fatal(err)
			}
			for _, after := range []time.Duration{0, authorizedTTL - 1} {
				clock.Step(after)
				if got, err := a.Authorize(t.Context(), agent, "orders.delete"); got != test.want || (err != nil) != test.wantErr {
					t.Errorf("%v, %v", got, err)
				}
			}
			if asks := len(server.asked); test.remembers && asks != 1 || !test.remembers && asks != 2*test.asks {
				t.Errorf("asked %d times", asks)
			}
			clock.Step(1)
			before := len(server.asked)
			_, _ = a.Authorize(t.Context(), agent, "orders.delete")
			if len(server.asked) != before+test.asks {
				t.Error("an answer is remembered for longer than 10 s")
			}
		})
	}
}

func TestTheAccessReviewSpeaksOfTheCaller(t *testing.T) {
	server := &accessReviewer{status: authorizationv1.SubjectAccessReviewStatus{Allowed: true}}
	a, err := NewAuthorizer(server, func() bool { return false }, clocktesting.NewFakeClock(noon), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"orders.delete", "orders.read"} {
		if _, err := a.Authorize(t.Context(), agent, tool); err != nil {
			t.Fatal(err)
		}
	}
	spec := func(tool string) authorizationv1.SubjectAccessReviewSpec {
		return authorizationv1.SubjectAccessReviewSpec{
			User:   "system:serviceaccount:shop:agent",
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: "shop", Verb: "invoke", Group: "gatewright.dev", Version: "v1alpha1", Resource: "tools", Name: tool,
			},
		}
	}
	if diff := cmp.Diff([]authorizationv1.SubjectAccessReviewSpec{spec("orders.delete"), spec("orders.read")}, server.asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
