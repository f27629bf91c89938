package cluster

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"gatewright.dev/gatewright/internal/gate"
	"gatewright.dev/gatewright/internal/policy"
)

// maxToken bounds a token in bytes. Those of service accounts have about a thousand.
const maxToken = 8 << 10

// signatureAlgorithms are what an API server may sign tokens of service accounts with.
var signatureAlgorithms = []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.ES384, jose.ES512}

// claims are what the token of a service account says.
type claims struct {
	jwt.Claims
	Kubernetes struct {
		Namespace      string `json:"namespace"`
		ServiceAccount struct {
			Name string `json:"name"`
		} `json:"serviceaccount"`
	} `json:"kubernetes.io"`
}

// token is a token that was taken apart. Nothing of it is proven.
type token struct {
	parsed *jwt.JSONWebToken
	claims claims
	caller policy.Caller
}

// refusal is why a token is not taken. They are labels of a metric; a caller is not told which it was.
type refusal string

const (
	refusedNoToken    refusal = "NoToken"
	refusedMalformed  refusal = "Malformed"
	refusedAudience   refusal = "Audience"
	refusedExpired    refusal = "Expired"
	refusedSubject    refusal = "Subject"
	refusedIssuer     refusal = "Issuer"
	refusedSignature  refusal = "Signature"
	refusedByServer   refusal = "Review"
	refusedRemembered refusal = "Remembered"
)

func (r refusal) Error() string { return "token refused: " + string(r) }

// Is makes every refusal an unknown caller.
func (r refusal) Is(target error) bool { return target == gate.ErrUnknownCaller }

// readToken takes a token apart and refuses what no API server could take for a token of a service account for this
// audience, without asking one.
func readToken(text, audience string, now time.Time) (*token, error) {
	if len(text) > maxToken {
		return nil, refusedMalformed
	}
	t := &token{}
	var err error
	if t.parsed, err = jwt.ParseSigned(text, signatureAlgorithms); err != nil || len(t.parsed.Headers) != 1 {
		return nil, refusedMalformed
	}
	if err = t.parsed.UnsafeClaimsWithoutVerification(&t.claims); err != nil {
		return nil, refusedMalformed
	}
	c := &t.claims
	switch {
	case !slices.Contains(c.Audience, audience):
		return nil, refusedAudience
	case c.Expiry == nil || !now.Before(c.Expiry.Time()):
		return nil, refusedExpired // one without an end is a Secret of old, and has no audience either
	}
	if t.caller, err = gate.UserName(c.Subject); err != nil {
		return nil, refusedSubject
	}
	if t.caller.Namespace != c.Kubernetes.Namespace || t.caller.ServiceAccount != c.Kubernetes.ServiceAccount.Name {
		return nil, refusedSubject
	}
	return t, nil
}

// keySet is what an API server publishes about its tokens.
type keySet struct {
	issuer string
	keys   jose.JSONWebKeySet
	at     time.Time
}

func parseKeySet(discovery, keys []byte, at time.Time) (*keySet, error) {
	var document struct {
		Issuer string `json:"issuer"`
	}
	if err := json.Unmarshal(discovery, &document); err != nil || document.Issuer == "" {
		return nil, errors.New("the discovery document names no issuer")
	}
	out := &keySet{issuer: document.Issuer, at: at}
	if err := json.Unmarshal(keys, &out.keys); err != nil {
		return nil, errors.New("the key set cannot be read")
	}
	out.keys.Keys = slices.DeleteFunc(out.keys.Keys, func(k jose.JSONWebKey) bool { return !k.Valid() || !k.IsPublic() || k.KeyID == "" })
	if len(out.keys.Keys) == 0 {
		return nil, errors.New("the key set holds no key")
	}
	return out, nil
}

// signature is what a key set says about a token.
type signature int

const (
	signatureUnknown signature = iota // no key of that name is known
	signatureBad
	signatureGood
)

func (s *keySet) check(t *token) signature {
	if s == nil {
		return signatureUnknown
	}
	keys := s.keys.Key(t.parsed.Headers[0].KeyID)
	if len(keys) == 0 {
		return signatureUnknown
	}
	for i := range keys {
		var proven claims
		if t.parsed.Claims(keys[i].Key, &proven) == nil {
			return signatureGood
		}
	}
	return signatureBad
}

// clockSkew is how far the API server's clock may be ahead of this one's.
const clockSkew = 10 * time.Second

// verify says whether a token is genuine and in force, as far as that can be told without the API server. It cannot tell
// whether the service account, or the pod that the token is for, is still there.
func (s *keySet) verify(t *token, now time.Time) error {
	c := &t.claims
	switch {
	case s == nil:
		return gate.ErrIdentityUnavailable
	case s.check(t) != signatureGood:
		return refusedSignature
	case c.Issuer != s.issuer:
		return refusedIssuer
	case c.NotBefore != nil && now.Add(clockSkew).Before(c.NotBefore.Time()):
		return refusedExpired
	}
	return nil
}
