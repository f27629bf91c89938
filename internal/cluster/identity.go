package cluster

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/gate"
	"gatewright.dev/gatewright/internal/policy"
	"gatewright.dev/gatewright/internal/shares"
)

const (
	// MaxTokenTTL is the longest time for which a token is taken without asking the API server again. The API server
	// itself goes by what it knew for another 10 s, so a service account that was deleted counts for a minute at most.
	MaxTokenTTL = 50 * time.Second
	// refusedTTL is how long a token that the API server did not know is not asked about again.
	refusedTTL = 10 * time.Second
	// offlineTTL is how long a token counts that was proven by its signature alone, so that it is asked about soon after
	// the API server is back.
	offlineTTL = 10 * time.Second
	// reviewTimeout bounds one look-up.
	reviewTimeout = 3 * time.Second
	// reviewsAtOnce bounds look-ups at a time; one address gets at most half.
	reviewsAtOnce = 64
	// unknownPerSecond and unknownBurst bound look-ups from one address of tokens whose signature is not known to be good.
	unknownPerSecond, unknownBurst = 10, 20
	// maxTokens, maxRefused and maxSources bound what is remembered: some 300 bytes each.
	maxTokens, maxRefused, maxSources = 16384, 16384, 4096
)

// Reviewer asks whose token it is; client-go's TokenReviewInterface does.
type Reviewer interface {
	Create(ctx context.Context, r *authenticationv1.TokenReview, o metav1.CreateOptions) (*authenticationv1.TokenReview, error)
}

// IdentityOptions configure an Identity.
type IdentityOptions struct {
	Reviews Reviewer
	// Keys prove tokens while the API server is away.
	Keys *Keys
	// IsAway says that the API server was not reached a moment ago; then it is not waited for. Nil: it never is.
	IsAway func() bool
	// Limit is how long tokens are proven by their signatures alone, from the first question that was not answered until
	// one is. Zero: never.
	Limit time.Duration
	// IsStale says that nothing was heard from the API server for longer than Limit, so that only reads are judged. For
	// these, signatures count on. Nil: it never is.
	IsStale func() bool
	// Audience that tokens must have.
	Audience string
	// TTL of a token that the API server knew; MaxTokenTTL by default, and at most.
	TTL time.Duration
	// Clock is the time; the system's by default.
	Clock clock.PassiveClock
	// Registry takes the metrics.
	Registry prometheus.Registerer
}

// known is a caller, by its token.
type known struct{ caller policy.Caller }

// Identity knows callers by the tokens of their service accounts. It asks the API server, remembers what it said for a
// moment, and proves tokens by their signatures while it is away.
type Identity struct {
	options IdentityOptions
	tokens  *expiring[known]
	refused *expiring[refusal]
	// denied are tokens that the API server did not take although they have not ended, such as those of service accounts
	// that were deleted. They do not come back to life when it is away.
	denied  *expiring[bool]
	sources *expiring[*rate.Limiter]
	flight  singleflight.Group
	slots   *shares.Shares
	metrics identityMetrics
	// unanswered is when the first question was put, or would have been, of those since the last that was answered. Nil:
	// the last was answered.
	unanswered atomic.Pointer[time.Time]
}

// NewIdentity returns an Identifier for a gate.
func NewIdentity(o IdentityOptions) (*Identity, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.TTL <= 0 || o.TTL > MaxTokenTTL {
		o.TTL = MaxTokenTTL
	}
	if o.IsAway == nil {
		o.IsAway = func() bool { return false }
	}
	if o.IsStale == nil {
		o.IsStale = func() bool { return false }
	}
	i := &Identity{
		options: o, slots: shares.New(reviewsAtOnce), metrics: newIdentityMetrics(),
		tokens: newExpiring[known](maxTokens, o.Clock), refused: newExpiring[refusal](maxRefused, o.Clock),
		denied: newExpiring[bool](maxRefused, o.Clock), sources: newExpiring[*rate.Limiter](maxSources, o.Clock),
	}
	return i, i.metrics.register(o.Registry)
}

// Identify implements gate.Identifier.
func (i *Identity) Identify(ctx context.Context, r *http.Request) (policy.Caller, error) {
	caller, how, err := i.identify(ctx, r)
	if err != nil {
		i.metrics.failed(err)
		return policy.Caller{}, err
	}
	i.metrics.callers.WithLabelValues(how).Inc()
	return caller, nil
}

// How a caller came to be known, or not: labels of a metric.
const (
	howCached      = "cached"
	howReviewed    = "reviewed"
	howOffline     = "offline"
	howRefused     = "refused"
	howLimited     = "limited"
	howUnavailable = "unavailable"
)

func (i *Identity) identify(ctx context.Context, r *http.Request) (policy.Caller, string, error) {
	text, ok := gate.Bearer(r)
	if !ok {
		return policy.Caller{}, "", refusedNoToken
	}
	key := sha256.Sum256([]byte(text))
	if k, ok := i.tokens.get(key); ok {
		return k.caller, howCached, nil
	}
	if _, ok := i.refused.get(key); ok {
		return policy.Caller{}, "", refusedRemembered
	}
	t, err := readToken(text, i.options.Audience, i.options.Clock.Now())
	if err != nil {
		return policy.Caller{}, "", err
	}
	source := sourceOf(r)
	if err := i.admit(t, source); err != nil {
		return policy.Caller{}, "", err
	}
	return i.lookUp(ctx, key, text, t, source)
}

// sourceOf is the address that a request came from. IPv6 addresses count by their /64, which one machine may have whole.
func sourceOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	ip := net.ParseIP(host)
	if err != nil || ip == nil {
		return ""
	}
	if ip.To4() == nil {
		ip = ip.Mask(net.CIDRMask(64, 128))
	}
	return ip.String()
}

// admit keeps tokens from the API server that it would not take. What has a good signature was issued by it; of what has a
// key that is not known, each address gets a few looked up. A bad signature is known to be bad here.
func (i *Identity) admit(t *token, source string) error {
	switch i.options.Keys.current().check(t) {
	case signatureGood:
		return nil
	case signatureBad:
		return refusedSignature
	case signatureUnknown:
		i.options.Keys.miss()
	}
	limiter, ok := i.sources.get(source)
	now := i.options.Clock.Now()
	if !ok {
		limiter = rate.NewLimiter(unknownPerSecond, unknownBurst)
	}
	i.sources.put(source, limiter, now.Add(time.Minute)) // after a minute a bucket is full again in any case
	if !limiter.AllowN(now, 1) {
		return gate.ErrTooManyUnknown
	}
	return nil
}

// found is what a look-up came to.
type found struct {
	caller policy.Caller
	how    string
}

// lookUp asks once for all who wait for the same token. Who goes away ends only the waiting.
func (i *Identity) lookUp(ctx context.Context, key [sha256.Size]byte, text string, t *token, source string) (policy.Caller, string, error) {
	result := i.flight.DoChan(string(key[:]), func() (any, error) {
		if !i.slots.Take(source) {
			return nil, gate.ErrTooManyUnknown
		}
		defer i.slots.Give(source)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewTimeout)
		defer cancel()
		return i.ask(ctx, key, text, t)
	})
	select {
	case r := <-result:
		f, _ := r.Val.(found)
		return f.caller, f.how, r.Err
	case <-ctx.Done():
		return policy.Caller{}, "", fmt.Errorf("%w: %w", gate.ErrIdentityUnavailable, ctx.Err())
	}
}

// ask asks the API server, or the token itself while that is away, and remembers the answer.
func (i *Identity) ask(ctx context.Context, key [sha256.Size]byte, text string, t *token) (found, error) {
	if i.options.IsAway() {
		return i.offline(key, t)
	}
	asked := i.options.Clock.Now()
	caller, err := i.review(ctx, text)
	switch {
	case isAway(err):
		return i.offline(key, t)
	case errors.Is(err, gate.ErrUnknownCaller):
		i.unanswered.Store(nil)
		i.refused.put(key, refusedByServer, asked.Add(refusedTTL))
		i.denied.put(key, true, t.claims.Expiry.Time())
		return found{}, err
	case err != nil:
		return found{}, fmt.Errorf("%w: %w", gate.ErrIdentityUnavailable, err)
	}
	i.unanswered.Store(nil)
	i.denied.remove(key)
	i.remember(key, caller, t, asked.Add(i.options.TTL))
	return found{caller, howReviewed}, nil
}

func (i *Identity) remember(key [sha256.Size]byte, caller policy.Caller, t *token, until time.Time) {
	if end := t.claims.Expiry.Time(); end.Before(until) {
		until = end
	}
	i.tokens.put(key, known{caller}, until)
}

// errUnanswered says that signatures alone have counted for as long as they may.
var errUnanswered = fmt.Errorf("%w: the API server has answered no TokenReview for too long", gate.ErrIdentityUnavailable)

// unansweredFor is how long no question was answered, with one that has just come to nothing. That the API server answers
// other things makes policies fresh and not callers: without a bound, a token of what was deleted would count for calls of any
// kind until its own end.
func (i *Identity) unansweredFor(now time.Time) time.Duration {
	i.unanswered.CompareAndSwap(nil, &now)
	if since := i.unanswered.Load(); since != nil {
		return now.Sub(*since)
	}
	return 0
}

func (i *Identity) offline(key [sha256.Size]byte, t *token) (found, error) {
	if _, isDenied := i.denied.get(key); isDenied {
		return found{}, refusedByServer
	}
	now := i.options.Clock.Now()
	if err := i.options.Keys.current().verify(t, now); err != nil {
		return found{}, err
	}
	if i.unansweredFor(now) >= i.options.Limit && !i.options.IsStale() {
		return found{}, errUnanswered
	}
	i.remember(key, t.caller, t, now.Add(offlineTTL))
	return found{t.caller, howOffline}, nil
}

// review asks the API server. An error that is gate.ErrUnknownCaller is its answer.
func (i *Identity) review(ctx context.Context, text string) (policy.Caller, error) {
	timer := prometheus.NewTimer(i.metrics.seconds)
	defer timer.ObserveDuration()
	answer, err := i.options.Reviews.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: text, Audiences: []string{i.options.Audience}},
	}, metav1.CreateOptions{})
	if err != nil {
		return policy.Caller{}, err
	}
	s := &answer.Status
	// An API server that does not know of audiences names none: then the token may be for anybody.
	if !s.Authenticated || s.Error != "" || !slices.Contains(s.Audiences, i.options.Audience) {
		return policy.Caller{}, refusedByServer
	}
	caller, err := gate.UserName(s.User.Username)
	if err != nil {
		return policy.Caller{}, refusedSubject
	}
	return caller, nil
}
