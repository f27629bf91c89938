package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/approval/objects"
	"gatewright.dev/gatewright/internal/console"
)

// What a person needs in RBAC to see the decision record on the web page, and to say there what decisions should have been.
// Nothing is stored under the resource; it is in roles only.
const (
	DecisionsResource = "decisions"
	DecisionsVerb     = "get"
	LabelVerb         = "label"
)

const (
	// allowedTTL is how long it counts what RBAC let a person see, and what it did not.
	allowedTTL = 10 * time.Second
	// maxRefusedNamespaces bounds for how many namespaces of a person a refusal is remembered.
	maxRefusedNamespaces = 4096
)

// ownApprovals are approvals as one person sees them and decides about them: with their token, in all they ask.
type ownApprovals struct {
	people *PeopleOptions
	client *objects.Client
	// refused are namespaces in which the person may not list; empty: in all at once.
	refused *expiring[bool]
}

// List implements console.Approvals. It gives what is in namespaces in which the person may list.
func (o *ownApprovals) List(ctx context.Context) ([]approval.Approval, error) {
	all, isAllowed, err := o.listIn(ctx, "")
	if err != nil || isAllowed {
		return all, err
	}
	namespaces, err := o.people.Where("")
	if err != nil {
		return nil, err
	}
	for _, namespace := range namespaces {
		found, _, err := o.listIn(ctx, namespace)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	slices.SortFunc(all, func(a, b approval.Approval) int { return approval.CompareNames(a.Name, b.Name) })
	return all, nil
}

func (o *ownApprovals) listIn(ctx context.Context, namespace string) (found []approval.Approval, isAllowed bool, err error) {
	if _, isRefused := o.refused.get(namespace); isRefused {
		return nil, false, nil
	}
	now := o.people.Clock.Now()
	all, err := o.client.List(ctx, namespace, now)
	switch {
	case apierrors.IsForbidden(err):
		o.refused.put(namespace, true, now.Add(allowedTTL))
		return nil, false, nil
	case err != nil:
		return nil, false, signedOut(err)
	}
	return slices.DeleteFunc(all, func(a approval.Approval) bool {
		isForgotten := a.EndedAt != nil && !now.Before(a.EndedAt.Add(approval.Retention))
		return isForgotten || o.people.Verify(&a) != nil
	}), true, nil
}

// Get implements console.Approvals. What the person may not read is not there.
func (o *ownApprovals) Get(ctx context.Context, name string) (approval.Approval, error) {
	a, _, err := o.find(ctx, name)
	return a, err
}

func (o *ownApprovals) find(ctx context.Context, name string) (a approval.Approval, namespace string, err error) {
	namespaces, err := o.people.Where(name)
	if err != nil {
		return approval.Approval{}, "", err
	}
	for _, namespace := range namespaces {
		a, err := o.client.Get(ctx, namespace, name, o.people.Clock.Now())
		switch {
		case errors.Is(err, approval.ErrNotFound), apierrors.IsForbidden(err):
		case err != nil:
			return approval.Approval{}, "", signedOut(err)
		case o.people.Verify(&a) == nil:
			return a, namespace, nil
		}
	}
	return approval.Approval{}, "", approval.ErrNotFound
}

// Decide implements console.Approvals. Who may is for RBAC and admission to say, and they say it in a console.Refusal.
func (o *ownApprovals) Decide(ctx context.Context, name string, d approval.Decision) error {
	_, namespace, err := o.find(ctx, name)
	if err != nil {
		return err
	}
	err = o.client.Decide(ctx, namespace, name, d, o.people.Clock.Now())
	var status apierrors.APIStatus
	if errors.Is(err, objects.ErrRefused) && errors.As(err, &status) {
		return &console.Refusal{Text: "The API server refuses: " + status.Status().Message + "."}
	}
	return signedOut(err)
}

// selfReviewer asks what the one who asks may do; client-go's SelfSubjectAccessReviewInterface does.
type selfReviewer interface {
	Create(ctx context.Context, r *authorizationv1.SelfSubjectAccessReview, o metav1.CreateOptions) (*authorizationv1.SelfSubjectAccessReview, error)
}

// right says whether a person may do something with the decision record, and remembers it for allowedTTL.
type right struct {
	verb    string
	reviews selfReviewer
	clock   clock.PassiveClock

	mu    sync.Mutex
	may   bool
	until time.Time
}

// has implements console.Person. Records are of all namespaces, so the right has to be as well.
func (r *right) has(ctx context.Context) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	if now.Before(r.until) {
		return r.may, nil
	}
	answer, err := r.reviews.Create(ctx, &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Resource: DecisionsResource, Verb: r.verb,
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, signedOut(fmt.Errorf("asking whether the verb %s on decisions is allowed: %w", r.verb, err))
	}
	may := answer.Status.Allowed && !answer.Status.Denied
	if !may && answer.Status.EvaluationError != "" {
		return false, fmt.Errorf("asking whether the verb %s on decisions is allowed: the API server could not say", r.verb)
	}
	r.may, r.until = may, now.Add(allowedTTL)
	return may, nil
}
