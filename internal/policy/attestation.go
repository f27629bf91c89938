package policy

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"time"

	"github.com/go-jose/go-jose/v4"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/strictjson"
)

// attestationType is the typ header of an attestation, so that a token made for another purpose is not taken for one.
const attestationType = "gatewright-context+jws"

// maxAttestationAge bounds how long an attestation may be good for, whatever it says.
const maxAttestationAge = time.Hour

// attestor is a front door whose signature counts.
type attestor struct {
	name string
	key  jose.JSONWebKey
}

// attested is the context that a front door has signed.
type attested struct {
	By         string
	UserTurns  []string
	Facts      map[string]any
	OnBehalfOf string
}

// claims is the payload of an attestation.
type claims struct {
	UserTurns  []string       `json:"userTurns"`
	Facts      map[string]any `json:"facts"`
	OnBehalfOf string         `json:"onBehalfOf"`
	Session    string         `json:"session"`
	Namespace  string         `json:"namespace"`
	IssuedAt   int64          `json:"iat"`
	Expires    int64          `json:"exp"`
}

func parseAttestor(a v1alpha1.Attestor) (attestor, error) {
	out := attestor{name: string(a.Name)}
	if err := json.Unmarshal([]byte(a.PublicKey), &out.key); err != nil {
		return out, errors.New("is no JSON Web Key: give an Ed25519 public key as in RFC 8037")
	}
	if _, ok := out.key.Key.(ed25519.PublicKey); !ok {
		return out, errors.New("is no Ed25519 public key (kty OKP, crv Ed25519, without d)")
	}
	return out, nil
}

var errNotAttested = errors.New("no attestor of the policy has signed this context")

// attestation verifies the request's attestation with the keys of the policy. It is bound to namespace and session, so
// that what was signed for one conversation says nothing about another.
func (p *Compiled) attestation(r *Request) (*attested, error) {
	if r.Attestation == "" {
		return nil, errNotAttested
	}
	signed, err := jose.ParseSignedCompact(r.Attestation, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil || len(signed.Signatures) != 1 {
		return nil, errNotAttested
	}
	if typ, _ := signed.Signatures[0].Protected.ExtraHeaders[jose.HeaderType].(string); typ != attestationType {
		return nil, errNotAttested
	}
	for _, a := range p.attestors {
		if payload, err := signed.Verify(a.key); err == nil {
			return readClaims(payload, a.name, r)
		}
	}
	return nil, errNotAttested
}

func readClaims(payload []byte, by string, r *Request) (*attested, error) {
	var c claims
	if err := strictjson.Decode(payload, strictjson.Limits{}, &c); err != nil {
		return nil, errNotAttested
	}
	issued, expires := time.Unix(c.IssuedAt, 0), time.Unix(c.Expires, 0)
	fresh := r.Now.Before(expires) && !issued.After(r.Now.Add(time.Minute)) && expires.Sub(issued) <= maxAttestationAge
	if !fresh || c.Namespace != r.Caller.Namespace || c.Session == "" || c.Session != r.Session {
		return nil, errNotAttested
	}
	if r.OnBehalfOf != "" && r.OnBehalfOf != c.OnBehalfOf {
		return nil, errNotAttested // the agent names another user than the front door saw
	}
	return &attested{By: by, UserTurns: c.UserTurns, Facts: c.Facts, OnBehalfOf: c.OnBehalfOf}, nil
}
