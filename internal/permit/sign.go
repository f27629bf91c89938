package permit

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/permit"
)

// Signer signs permits with the newest of its keys.
type Signer struct {
	keys   *Keys
	issuer string
	clock  clock.PassiveClock
}

// NewSigner signs as the gate of this id.
func NewSigner(keys *Keys, issuer string, c clock.PassiveClock) (*Signer, error) {
	if keys == nil || c == nil {
		return nil, errors.New("a signer needs keys and a clock")
	}
	if issuer == "" || len(issuer) > permit.MaxText {
		return nil, fmt.Errorf("id of the gate has to have 1 to %d bytes", permit.MaxText)
	}
	return &Signer{keys: keys, issuer: issuer, clock: c}, nil
}

// Sign makes a permit that is good from now on for a lifetime of whole seconds, at most permit.MaxLifetime. It fills in issuer
// and times, and refuses claims that no verifier would take.
func (s *Signer) Sign(c Claims, lifetime time.Duration) (string, error) {
	if lifetime < time.Second || lifetime > permit.MaxLifetime || lifetime%time.Second != 0 {
		return "", fmt.Errorf("signing permit: want a lifetime of whole seconds up to %s", permit.MaxLifetime)
	}
	now := s.clock.Now()
	c.Issuer = s.issuer
	c.IssuedAt = now.Truncate(time.Second)
	c.NotBefore = c.IssuedAt
	c.ExpiresAt = c.IssuedAt.Add(lifetime)
	data, err := c.Payload()
	if err != nil {
		return "", fmt.Errorf("signing permit: %w", err)
	}
	token, err := s.compact(data)
	if err != nil {
		return "", fmt.Errorf("signing permit: %w", err)
	}
	if len(token) > permit.MaxToken {
		return "", fmt.Errorf("signing permit: it would be longer than %d bytes", permit.MaxToken)
	}
	return token, nil
}

// joseHeader is the protected header of a permit, with its members in the order of their names.
type joseHeader struct {
	Alg string `json:"alg"`
	KID string `json:"kid"`
	Typ string `json:"typ"`
}

// compact is the compact form of a JWS (RFC 7515) over a payload.
func (s *Signer) compact(payload []byte) (string, error) {
	key, err := s.keys.ring.Signing()
	if err != nil {
		return "", err
	}
	head, err := json.Marshal(joseHeader{Alg: "EdDSA", KID: key.ID, Typ: permit.Type})
	if err != nil {
		return "", err // cannot be: texts have a JSON form
	}
	text := base64.RawURLEncoding.AppendEncode(nil, head)
	text = append(text, '.')
	text = base64.RawURLEncoding.AppendEncode(text, payload)
	signature := key.Sign(text)
	text = append(text, '.')
	return string(base64.RawURLEncoding.AppendEncode(text, signature)), nil
}
