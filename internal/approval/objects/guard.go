package objects

import (
	"context"
	"errors"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	admissionregistration "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	"k8s.io/client-go/rest"

	"gatewright.dev/gatewright/config/admission"
	"gatewright.dev/gatewright/internal/names"
)

// ErrUnguarded says that the admission policy that keeps approvals from being forged is missing or says something else, or
// did when the approval was raised. No approval is honoured then. It is an approval.ErrUnavailable.
var ErrUnguarded error = &unavailableError{errors.New("the admission policy " + names.ApprovalPolicy + " is not in force as this gate knows it")}

// guardAge is for how long the guard goes by what it has read.
const guardAge = 10 * time.Second

// guardLag is how long API servers may take to enforce a policy after it was written.
const guardLag = 5 * time.Second

// guard looks whether the admission policy is in force.
type guard struct {
	client  admissionregistration.AdmissionregistrationV1Interface
	policy  *admissionregistrationv1.ValidatingAdmissionPolicy
	binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding
	now     func() time.Time
	lag     time.Duration

	mu     sync.Mutex
	readAt time.Time
	since  time.Time
}

func newGuard(config *rest.Config, namespace string, now func() time.Time) (*guard, error) {
	client, err := admissionregistration.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	policy, binding, err := admission.Approvals(namespace)
	if err != nil {
		return nil, err
	}
	return &guard{client: client, policy: policy, binding: binding, now: now, lag: guardLag}, nil
}

// inForce gives the time since which the policy is in force as it is. Approvals that are older may have been decided
// without it. It gives ErrUnguarded where it is not in force, and another error where that could not be read.
func (g *guard) inForce(ctx context.Context) (time.Time, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	if !g.readAt.IsZero() && now.Sub(g.readAt) < guardAge {
		return g.since, nil
	}
	g.readAt = time.Time{}
	policy, err := g.client.ValidatingAdmissionPolicies().Get(ctx, g.policy.Name, metav1.GetOptions{})
	if err != nil {
		return time.Time{}, guardErr(err)
	}
	binding, err := g.client.ValidatingAdmissionPolicyBindings().Get(ctx, g.binding.Name, metav1.GetOptions{})
	if err != nil {
		return time.Time{}, guardErr(err)
	}
	isOurs := equality.Semantic.DeepEqual(policy.Spec, g.policy.Spec) && equality.Semantic.DeepEqual(binding.Spec, g.binding.Spec)
	if !isOurs || policy.DeletionTimestamp != nil || binding.DeletionTimestamp != nil {
		return time.Time{}, ErrUnguarded
	}
	g.readAt, g.since = now, later(lastWritten(policy.ObjectMeta), lastWritten(binding.ObjectMeta))
	return g.since, nil
}

// lastWritten is when an object was last written by anybody: what it says now it may not have said before.
func lastWritten(m metav1.ObjectMeta) time.Time {
	last := m.CreationTimestamp.Time
	for _, f := range m.ManagedFields {
		if f.Subresource == "" && f.Time != nil {
			last = later(last, f.Time.Time)
		}
	}
	return last
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func guardErr(err error) error {
	if apierrors.IsNotFound(err) {
		return ErrUnguarded
	}
	return unavailable("reading admission policy", err)
}

// covers says whether the policy was in force when an object was created. Both times are the API server's.
func (g *guard) covers(since time.Time, o *metav1.ObjectMeta) bool {
	return o.CreationTimestamp.After(since.Add(g.lag))
}
