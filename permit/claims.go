package permit

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"gatewright.dev/gatewright/internal/strictjson"
)

// payload is how claims are written.
type payload struct {
	Issuer          string `json:"iss"`
	Audience        string `json:"aud"`
	Subject         string `json:"sub"`
	IssuedAt        int64  `json:"iat"`
	NotBefore       int64  `json:"nbf"`
	ExpiresAt       int64  `json:"exp"`
	ID              string `json:"jti"`
	Tool            string `json:"tool"`
	Server          string `json:"server"`
	ArgumentsDigest string `json:"argumentsDigest"`
	PolicyDigest    string `json:"policyDigest"`
	Decision        string `json:"decision"`
	OnBehalfOf      string `json:"onBehalfOf,omitempty"`
	Session         string `json:"session,omitempty"`
}

// Payload is what a gate signs for these claims, or an error if no verifier would take them.
func (c *Claims) Payload() ([]byte, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return json.Marshal(payload{
		Issuer: c.Issuer, Audience: c.Audience, Subject: c.Subject, ID: c.ID,
		IssuedAt: c.IssuedAt.Unix(), NotBefore: c.NotBefore.Unix(), ExpiresAt: c.ExpiresAt.Unix(),
		Tool: c.Tool, Server: c.Server, ArgumentsDigest: c.ArgumentsDigest, PolicyDigest: c.PolicyDigest,
		Decision: c.Decision, OnBehalfOf: c.OnBehalfOf, Session: c.Session,
	})
}

// decodeClaims reads claims strictly. A claim that is not known is refused: it could narrow the permit.
func decodeClaims(data []byte) (*Claims, error) {
	var p payload
	if err := strictjson.Decode(data, strictjson.Limits{MaxBytes: MaxToken, MaxDepth: 2, MaxKeys: 32}, &p); err != nil {
		return nil, err
	}
	for _, s := range []int64{p.IssuedAt, p.NotBefore, p.ExpiresAt} {
		if s <= 0 || s > latestSecond {
			return nil, errors.New("claim iat, nbf or exp is missing or no time of this age")
		}
	}
	c := &Claims{
		Issuer: p.Issuer, Audience: p.Audience, Subject: p.Subject, ID: p.ID,
		IssuedAt: seconds(p.IssuedAt), NotBefore: seconds(p.NotBefore), ExpiresAt: seconds(p.ExpiresAt),
		Tool: p.Tool, Server: p.Server, ArgumentsDigest: p.ArgumentsDigest, PolicyDigest: p.PolicyDigest,
		Decision: p.Decision, OnBehalfOf: p.OnBehalfOf, Session: p.Session,
	}
	return c, c.validate()
}

// latestSecond keeps a difference of times within a Duration, which ends after 292 years: it is in the year 2242.
const latestSecond = 1<<33 - 1

func seconds(s int64) time.Time { return time.Unix(s, 0).UTC() }

// MaxText bounds each text of the claims, in bytes.
const MaxText = 256

// validate says whether claims are complete. Both sides ask: what a gate does not sign, no verifier takes.
func (c *Claims) validate() error {
	for _, f := range []struct {
		name, value string
		optional    bool
	}{
		{"iss", c.Issuer, false},
		{"aud", c.Audience, false},
		{"sub", c.Subject, false},
		{"tool", c.Tool, false},
		{"server", c.Server, true},
		{"decision", c.Decision, false},
		{"onBehalfOf", c.OnBehalfOf, true},
	} {
		if f.value == "" && !f.optional {
			return fmt.Errorf("claim %s is missing", f.name)
		}
		if len(f.value) > MaxText {
			return fmt.Errorf("claim %s is longer than %d bytes", f.name, MaxText)
		}
		if !utf8.ValidString(f.value) { // JSON would replace it by something else
			return fmt.Errorf("claim %s is not UTF-8", f.name)
		}
	}
	if err := validateSubject(c.Subject); err != nil {
		return err
	}
	if !isID(c.ID) {
		return errors.New("claim jti is not 16 to 128 letters, digits, - or _")
	}
	return c.validateDigests()
}

func (c *Claims) validateDigests() error {
	if !isDigest(c.ArgumentsDigest) {
		return errors.New("claim argumentsDigest is not a SHA-256 digest")
	}
	if !isDigest(c.PolicyDigest) {
		return errors.New("claim policyDigest is not a SHA-256 digest")
	}
	if c.Session != "" && !isDigest(c.Session) {
		return errors.New("claim session is not a SHA-256 digest")
	}
	return nil
}

func validateSubject(s string) error {
	account, ok := strings.CutPrefix(s, subjectPrefix)
	namespace, name, both := strings.Cut(account, ":")
	if !ok || !both || namespace == "" || name == "" || strings.Contains(name, ":") {
		return errors.New("claim sub is not system:serviceaccount:NAMESPACE:NAME")
	}
	return nil
}
