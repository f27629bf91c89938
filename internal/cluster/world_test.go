package cluster

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"gatewright.dev/gatewright/internal/kubetest"
	"gatewright.dev/gatewright/internal/policy"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

const testIssuer = "https://kubernetes.default.svc"

// issuer signs tokens as an API server does.
type issuer struct {
	t   *testing.T
	key *ecdsa.PrivateKey
	kid string
}

func newIssuer(t *testing.T, kid string) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &issuer{t, key, kid}
}

func (i *issuer) set() *keySet {
	return &keySet{issuer: testIssuer, keys: jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: i.key.Public(), KeyID: i.kid, Algorithm: string(jose.ES256), Use: "sig"}}}}
}

// content is a token's claims, valid at noon for ten minutes.
func content(change func(map[string]any)) map[string]any {
	c := map[string]any{
		"iss": testIssuer, "aud": []string{"gatewright"}, "sub": "system:serviceaccount:shop:agent",
		"exp": noon.Add(10 * time.Minute).Unix(), "nbf": noon.Unix(), "iat": noon.Unix(),
		"kubernetes.io": map[string]any{"namespace": "shop", "serviceaccount": map[string]any{"name": "agent", "uid": "u"}},
	}
	if change != nil {
		change(c)
	}
	return c
}

func (i *issuer) sign(claims map[string]any) string {
	i.t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: i.key}, (&jose.SignerOptions{}).WithHeader("kid", i.kid))
	if err != nil {
		i.t.Fatal(err)
	}
	data, err := json.Marshal(claims)
	if err != nil {
		i.t.Fatal(err)
	}
	signed, err := signer.Sign(data)
	if err != nil {
		i.t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		i.t.Fatal(err)
	}
	return text
}

// reviewer answers what it is told to, and counts.
type reviewer struct {
	mu    sync.Mutex
	count int
	// status is the answer, for every token; err outranks it.
	status authenticationv1.TokenReviewStatus
	err    error
	// entered is told of each question, and hold keeps its answer back. Nil: neither.
	entered chan struct{}
	hold    chan struct{}
}

func (r *reviewer) Create(ctx context.Context, in *authenticationv1.TokenReview, _ metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	r.mu.Lock()
	r.count++
	status, err := r.status, r.err
	r.mu.Unlock()
	if r.entered != nil {
		r.entered <- struct{}{}
	}
	if r.hold != nil {
		select {
		case <-r.hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if len(in.Spec.Audiences) != 1 || in.Spec.Audiences[0] != "gatewright" {
		return nil, errors.New("asked for another audience")
	}
	out := in.DeepCopy()
	out.Status = status
	return out, err
}

func (r *reviewer) says(s authenticationv1.TokenReviewStatus, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status, r.err = s, err
}

func (r *reviewer) asked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count
}

var agentIsKnown = authenticationv1.TokenReviewStatus{
	Authenticated: true, Audiences: []string{"gatewright"}, User: authenticationv1.UserInfo{Username: "system:serviceaccount:shop:agent"},
}

// known is an Identity with a clock and a server of its own.
type identityWorld struct {
	*Identity
	clock  *clocktesting.FakeClock
	server *reviewer
	issuer *issuer
	keys   *Keys
	isAway bool
	// isStale says that only reads are judged.
	isStale bool
}

func newIdentityWorld(t *testing.T) *identityWorld {
	t.Helper()
	w := &identityWorld{clock: clocktesting.NewFakeClock(noon), server: &reviewer{status: agentIsKnown}, issuer: newIssuer(t, "k1")}
	w.keys = &Keys{clock: w.clock, log: slog.New(slog.DiscardHandler), want: make(chan struct{}, 1)}
	w.keys.held.Store(w.issuer.set())
	var err error
	w.Identity, err = NewIdentity(IdentityOptions{
		Reviews: w.server, Keys: w.keys, IsAway: func() bool { return w.isAway }, IsStale: func() bool { return w.isStale }, Limit: 5 * time.Minute,
		Audience: "gatewright", Clock: w.clock, Registry: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// who asks for a token that comes from an address.
func (w *identityWorld) who(t *testing.T, token, from string) (policy.Caller, error) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody)
	r.RemoteAddr = from
	r.Header.Set("Authorization", "Bearer "+token)
	return w.Identify(t.Context(), r)
}

var agent = policy.Caller{Namespace: "shop", ServiceAccount: "agent"}
