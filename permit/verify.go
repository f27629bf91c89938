package permit

import (
	"context"
	"crypto/ed25519"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"strings"

	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/strictjson"
)

// Call is what a tool server is about to run.
type Call struct {
	// Audience is the tool server itself, by the name that the policy gives it.
	Audience string
	// Tool and Server as the caller has to name them to the gate.
	Tool, Server string
	// Arguments as ParseArguments gives them. Nil if only their digest is known.
	Arguments map[string]any
	// ArgumentsDigest is used where Arguments is nil. If both are there they have to agree.
	ArgumentsDigest string
}

// VerifierOptions of NewVerifier.
type VerifierOptions struct {
	// Keys of the gate.
	Keys KeySource
	// Store of the permits that were used.
	Store Store
	// Clock, the system's if nil.
	Clock clock.PassiveClock
	// Issuer is the only gate whose permits are taken, as its claim iss says. Empty takes whatever the keys have signed.
	Issuer string
	// Replicas of the tool server that verify permits, 0 as 1. More than one need a SharedStore.
	Replicas int
}

// Verifier checks permits and uses them up.
type Verifier struct {
	keys   KeySource
	store  Store
	clock  clock.PassiveClock
	issuer string
}

// NewVerifier refuses options by which a permit could be used more than once.
func NewVerifier(o VerifierOptions) (*Verifier, error) {
	if o.Keys == nil || o.Store == nil {
		return nil, errors.New("a verifier needs keys and a store")
	}
	if o.Replicas < 0 {
		return nil, errors.New("number of replicas is negative")
	}
	if _, shared := o.Store.(SharedStore); o.Replicas > 1 && !shared {
		return nil, errors.New("several replicas need a store of used permits that they share: with this one each would let a permit be used once")
	}
	return &Verifier{keys: o.Keys, store: o.Store, clock: orSystem(o.Clock), issuer: o.Issuer}, nil
}

// orSystem is a clock, or the system's.
func orSystem(c clock.PassiveClock) clock.PassiveClock {
	if c == nil {
		return clock.RealClock{}
	}
	return c
}

// Verify says whether a permit allows a call, and uses it up. A refusal is an *Error; a permit that was refused before
// it was looked up in the store is not used up.
func (v *Verifier) Verify(ctx context.Context, token string, call Call) (*Claims, error) {
	claims, refusal := v.authenticate(ctx, token)
	if refusal == nil {
		refusal = v.admit(ctx, claims, call)
	}
	if refusal != nil {
		return nil, refusal
	}
	return claims, nil
}

// authenticate says who signed a token, and that its time is now.
func (v *Verifier) authenticate(ctx context.Context, token string) (*Claims, *Error) {
	t, refusal := parseToken(token)
	if refusal != nil {
		return nil, refusal
	}
	key, err := v.keys.Key(ctx, t.kid)
	switch {
	case errors.Is(err, ErrUnknownKey):
		return nil, refuse(ReasonUnknownKey, err)
	case err != nil:
		return nil, refuse(ReasonKeysUnavailable, err)
	case key.ID != t.kid || len(key.Key) != ed25519.PublicKeySize:
		return nil, refuse(ReasonUnknownKey, errors.New("source gave another key"))
	case key.Ended(v.clock.Now()):
		return nil, refuse(ReasonUnknownKey, errors.New("key is retired"))
	case !ed25519.Verify(key.Key, []byte(t.signed), t.signature):
		return nil, refuse(ReasonBadSignature, errors.New("signature is not of this key"))
	}
	claims, err := decodeClaims(t.payload)
	if err != nil {
		return nil, refuse(ReasonMalformed, err)
	}
	if v.issuer != "" && claims.Issuer != v.issuer {
		return nil, refuse(ReasonWrongIssuer, nil)
	}
	return claims, v.checkTimes(claims)
}

// header is all that a permit's header may say: no other key, no critical extension, no other encoding.
type header struct {
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid"`
	Type      string `json:"typ"`
}

// token is a compact JWS that was read and not yet verified.
type token struct {
	kid string
	// signed are header and payload as they were sent, which is what the signature is over.
	signed             string
	payload, signature []byte
}

// parseToken reads a compact JWS in its one spelling. The algorithm is ours and not the token's: the header can only
// agree with it.
func parseToken(s string) (*token, *Error) {
	if s == "" {
		return nil, refuse(ReasonMissing, nil)
	}
	if len(s) > MaxToken {
		return nil, refuse(ReasonMalformed, errors.New("longer than a permit can be"))
	}
	parts := strings.Split(s, ".")
	if len(parts) != 3 {
		return nil, refuse(ReasonMalformed, errors.New("not three parts"))
	}
	var decoded [3][]byte
	for i, part := range parts {
		var ok bool
		if decoded[i], ok = decodePart(part); !ok {
			return nil, refuse(ReasonMalformed, errors.New("not base64url in its one spelling"))
		}
	}
	kid, refusal := parseHeader(decoded[0])
	if refusal != nil {
		return nil, refusal
	}
	return &token{kid: kid, signed: s[:len(parts[0])+1+len(parts[1])], payload: decoded[1], signature: decoded[2]}, nil
}

func parseHeader(data []byte) (kid string, refusal *Error) {
	var h header
	if err := strictjson.Decode(data, strictjson.Limits{MaxDepth: 2, MaxKeys: 8}, &h); err != nil {
		return "", refuse(ReasonMalformed, err)
	}
	switch {
	case h.Type != Type:
		return "", refuse(ReasonMalformed, errors.New("another typ"))
	case h.Algorithm != algorithm:
		return "", refuse(ReasonBadSignature, errors.New("another alg than EdDSA"))
	case h.KeyID == "":
		return "", refuse(ReasonMalformed, errors.New("no kid"))
	}
	return h.KeyID, nil
}

// decodePart decodes base64url. The alphabet is checked first, because the decoder skips line breaks.
func decodePart(s string) ([]byte, bool) {
	for _, c := range []byte(s) {
		if !isTokenByte(c) {
			return nil, false
		}
	}
	data, err := base64.RawURLEncoding.Strict().DecodeString(s)
	return data, err == nil && len(data) > 0
}

func (v *Verifier) checkTimes(c *Claims) *Error {
	now := v.clock.Now()
	switch {
	case c.ExpiresAt.Sub(c.IssuedAt) > MaxLifetime+Leeway || c.ExpiresAt.Sub(c.NotBefore) > MaxLifetime+Leeway:
		return refuse(ReasonTooLong, nil)
	case !c.ExpiresAt.After(c.IssuedAt) || c.NotBefore.Before(c.IssuedAt):
		return refuse(ReasonMalformed, errors.New("times in another order than iat, nbf, exp"))
	case now.Before(c.NotBefore.Add(-Leeway)):
		return refuse(ReasonNotYetValid, nil)
	case !now.Before(c.ExpiresAt.Add(Leeway)):
		return refuse(ReasonExpired, nil)
	}
	return nil
}

// admit says whether claims are about this call, and uses the permit up. It looks at the time again: since the token was
// authenticated a slow body may have been read.
func (v *Verifier) admit(ctx context.Context, c *Claims, call Call) *Error {
	if refusal := v.checkTimes(c); refusal != nil {
		return refusal
	}
	if refusal := c.matches(call); refusal != nil {
		return refusal
	}
	err := v.store.Use(ctx, c.ID, c.IssuedAt.Add(Remembered))
	switch {
	case errors.Is(err, ErrUsed):
		return refuse(ReasonUsed, err)
	case err != nil:
		return refuse(ReasonStoreUnavailable, err)
	}
	return v.checkTimes(c) // the store may have taken its time
}

// matches compares claims with a call. An empty audience or tool matches nothing.
func (c *Claims) matches(call Call) *Error {
	if call.Audience == "" || c.Audience != call.Audience {
		return refuse(ReasonWrongAudience, nil)
	}
	if call.Tool == "" || c.Tool != call.Tool || c.Server != call.Server {
		return refuse(ReasonWrongTool, nil)
	}
	digest, err := call.digest()
	if err != nil {
		return refuse(ReasonWrongArguments, err)
	}
	if subtle.ConstantTimeCompare([]byte(digest), []byte(c.ArgumentsDigest)) != 1 {
		return refuse(ReasonWrongArguments, nil)
	}
	return nil
}

func (c *Call) digest() (string, error) {
	if c.Arguments == nil {
		return c.ArgumentsDigest, nil // an empty one matches no claim
	}
	digest, err := strictjson.Digest(c.Arguments)
	if err != nil {
		return "", err
	}
	if c.ArgumentsDigest != "" && c.ArgumentsDigest != digest {
		return "", errors.New("call has arguments and the digest of others")
	}
	return digest, nil
}
