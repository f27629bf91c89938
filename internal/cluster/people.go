package cluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/approval/objects"
	"gatewright.dev/gatewright/internal/console"
)

const (
	// personTimeout bounds one question to the API server in the name of a person.
	personTimeout = 5 * time.Second
	// personQPS and personBurst bound what is asked in the name of one person.
	personQPS, personBurst = 100, 200
)

// PeopleOptions configure People.
type PeopleOptions struct {
	// Server is where the API server is. Whatever the gate is known by there is left out.
	Server *rest.Config
	// Reviews asks whose token it is.
	Reviews Reviewer
	// Where gives the namespaces in which there are approvals of a name or, if that is empty, any.
	Where func(name string) ([]string, error)
	// Verify says whether a gate of this installation has sealed an approval.
	Verify func(*approval.Approval) error
	// Clock is the time.
	Clock clock.PassiveClock
}

// People lets people sign in to the web page with tokens of their own. What they see there and decide is asked of the API
// server with their token, so that RBAC and admission decide about it and the gate's own rights do not count.
type People struct{ options PeopleOptions }

// NewPeople makes it.
func NewPeople(o PeopleOptions) *People { return &People{o} }

// SignIn says who holds a token that is meant for the API server. It gives console.ErrUnknown for one that it does not take.
func (p *People) SignIn(ctx context.Context, token string) (console.Person, error) {
	if token == "" || len(token) > maxToken || strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return console.Person{}, console.ErrUnknown
	}
	name, err := p.review(ctx, token)
	if err != nil {
		return console.Person{}, err
	}
	config := p.config(token)
	approvals, err := objects.NewClient(config)
	if err != nil {
		return console.Person{}, fmt.Errorf("making a client for a person: %w", err)
	}
	asks, err := authorizationclient.NewForConfig(config)
	if err != nil {
		return console.Person{}, fmt.Errorf("making a client for a person: %w", err)
	}
	read := &right{verb: DecisionsVerb, reviews: asks.SelfSubjectAccessReviews(), clock: p.options.Clock}
	label := &right{verb: LabelVerb, reviews: asks.SelfSubjectAccessReviews(), clock: p.options.Clock}
	return console.Person{
		Approver:  approval.Approver{Type: approval.KubernetesUser, Name: name},
		Approvals: &ownApprovals{people: &p.options, client: approvals, refused: newExpiring[bool](maxRefusedNamespaces, p.options.Clock)},
		MayRead:   read.has, MayLabel: label.has, Until: endOf(token),
	}, nil
}

// review asks the API server whose token it is, for the audience that the API server itself has: a token that was made for
// the gate, or for anything else, is nobody's here.
func (p *People) review(ctx context.Context, token string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	answer, err := p.options.Reviews.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("asking whose token it is: %w", err)
	}
	s := &answer.Status
	if !s.Authenticated || s.Error != "" || s.User.Username == "" || s.User.Username == "system:anonymous" {
		return "", console.ErrUnknown
	}
	return s.User.Username, nil
}

// config is for a person: nothing of the gate's own is in it.
func (p *People) config(token string) *rest.Config {
	c := rest.AnonymousClientConfig(p.options.Server)
	c.BearerToken = token
	c.RateLimiter, c.QPS, c.Burst = nil, personQPS, personBurst
	c.Timeout, c.WarningHandler, c.WarningHandlerWithContext = personTimeout, rest.NoWarnings{}, nil
	c.UserAgent = p.options.Server.UserAgent + " (console)"
	return c
}

// endOf is the end that a token names; zero if it names none. It is no proof: it can only end a session sooner, which
// otherwise ends as soon as the API server does not take the token.
func endOf(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	data, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}
	}
	var claims struct {
		Expiry float64 `json:"exp"`
	}
	if json.Unmarshal(data, &claims) != nil || claims.Expiry <= 0 || claims.Expiry > maxExpiry {
		return time.Time{}
	}
	return time.Unix(int64(claims.Expiry), 0)
}

// maxExpiry is the year 9999: what is later names no end.
const maxExpiry = 253402300799

// signedOut says why the API server did not answer a person; console.ErrSignedOut if it does not take the token.
func signedOut(err error) error {
	if apierrors.IsUnauthorized(err) {
		return fmt.Errorf("%w: %w", console.ErrSignedOut, err)
	}
	return err
}
