package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/policy"
)

// What a caller needs in RBAC to use a tool, where the gate asks for it: the verb on the resource, by name of the tool.
const (
	ToolsResource = "tools"
	InvokeVerb    = "invoke"
)

const (
	// authorizedTTL is how long an answer about a tool counts.
	authorizedTTL = 10 * time.Second
	maxAuthorized = 16384
	accessTimeout = 3 * time.Second
)

// AccessReviewer asks what a user may do; client-go's SubjectAccessReviewInterface does.
type AccessReviewer interface {
	Create(ctx context.Context, r *authorizationv1.SubjectAccessReview, o metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error)
}

// errAway says that an API server is not waited for.
var errAway = errors.New("the API server is away")

// Authorizer asks the API server whether a caller may use a tool, and remembers the answer for a moment.
type Authorizer struct {
	reviews AccessReviewer
	isAway  func() bool
	clock   clock.PassiveClock
	answers *expiring[bool]
	flight  singleflight.Group
	seconds prometheus.Histogram
}

// NewAuthorizer returns an Authorizer for a gate. IsAway says that the API server was not reached a moment ago.
func NewAuthorizer(reviews AccessReviewer, isAway func() bool, c clock.PassiveClock, r prometheus.Registerer) (*Authorizer, error) {
	a := &Authorizer{
		reviews: reviews, isAway: isAway, clock: c, answers: newExpiring[bool](maxAuthorized, c),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "gatewright_access_review_seconds", Help: "Time that the API server took to say whether a service account may use a tool.", Buckets: apiBuckets,
		}),
	}
	return a, r.Register(a.seconds)
}

type accessKey struct {
	caller policy.Caller
	tool   string
}

// Authorize implements gate.Authorizer.
func (a *Authorizer) Authorize(ctx context.Context, c policy.Caller, tool string) (bool, error) {
	key := accessKey{c, tool}
	if isAllowed, ok := a.answers.get(key); ok {
		return isAllowed, nil
	}
	if a.isAway() {
		return false, errAway
	}
	result := a.flight.DoChan(c.String()+"\x00"+tool, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), accessTimeout)
		defer cancel()
		return a.ask(ctx, key)
	})
	select {
	case r := <-result:
		isAllowed, _ := r.Val.(bool)
		return isAllowed && r.Err == nil, r.Err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

func (a *Authorizer) ask(ctx context.Context, key accessKey) (bool, error) {
	timer := prometheus.NewTimer(a.seconds)
	defer timer.ObserveDuration()
	asked := a.clock.Now()
	answer, err := a.reviews.Create(ctx, accessReview(key), metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("asking whether a tool is allowed: %w", err)
	}
	isAllowed := answer.Status.Allowed && !answer.Status.Denied
	if !isAllowed && answer.Status.EvaluationError != "" {
		return false, errors.New("asking whether a tool is allowed: the API server could not say") // what it says may quote names
	}
	a.answers.put(key, isAllowed, asked.Add(authorizedTTL))
	return isAllowed, nil
}

// accessReview speaks of the caller as the API server knows it, groups included.
func accessReview(k accessKey) *authorizationv1.SubjectAccessReview {
	return &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:   "system:serviceaccount:" + k.caller.Namespace + ":" + k.caller.ServiceAccount,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + k.caller.Namespace, "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Resource: ToolsResource, Verb: InvokeVerb,
			Name: k.tool, Namespace: k.caller.Namespace,
		},
	}}
}
