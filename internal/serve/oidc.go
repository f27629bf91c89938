package serve

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/approval"
)

// OIDCConfig says whose tokens decide approvals, beside the approvers' secrets. Empty: nobody's.
type OIDCConfig struct {
	// Issuer and Audience that a token has to name.
	Issuer, Audience string
	// KeyFile holds the issuer's public keys as a JWKS. It is read again when it changes.
	KeyFile string
	// NameClaim is what an approver is called by: sub by default. email counts only if email_verified says so.
	NameClaim string
	// Group that the claim groups has to hold; empty for none.
	Group string
}

func (c *OIDCConfig) bindFlags(f *flag.FlagSet) {
	f.StringVar(&c.Issuer, "approver-issuer", "", "issuer whose tokens decide approvals where a policy opens the channel OIDC, as an https URL")
	f.StringVar(&c.Audience, "approver-audience", "", "audience that an approver's token has to be for: one of its own, so that no other token of the issuer decides")
	f.StringVar(&c.KeyFile, "approver-jwks", "", "file with the issuer's public keys as a JWKS; read again when it changes")
	f.StringVar(&c.NameClaim, "approver-name-claim", "sub", "claim that names an approver; email has to be verified")
	f.StringVar(&c.Group, "approver-group", "", "group that an approver's token has to name in its claim groups; empty for none")
}

func (c *OIDCConfig) validate() error {
	if c.Issuer+c.Audience+c.KeyFile == "" {
		if c.Group != "" {
			return errors.New("--approver-group is for --approver-issuer: give it too, or neither")
		}
		return nil
	}
	if c.Issuer == "" || c.Audience == "" || c.KeyFile == "" {
		return errors.New("--approver-issuer, --approver-audience and --approver-jwks go together: give all three, or none")
	}
	if u, err := url.Parse(c.Issuer); err != nil || u.Scheme != "https" || u.Host == "" || len(c.Issuer) > approval.MaxMessage {
		return errors.New("--approver-issuer is no https URL")
	}
	return nil
}

// issuers are those whose tokens count.
func (c *OIDCConfig) issuers() []string {
	if c.Issuer == "" {
		return nil
	}
	return []string{c.Issuer}
}

// tokenAlgorithms are those that need a public key only. What a token's header says is taken only if it is one of them.
var tokenAlgorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

const (
	maxToken   = 16 << 10
	maxJWKS    = 256 << 10
	tokenSkew  = 30 * time.Second
	claimEmail = "email"
)

// tokenVerifier tells approvers by the tokens of one issuer.
type tokenVerifier struct {
	config OIDCConfig
	clock  clock.PassiveClock
	keys   atomic.Pointer[jose.JSONWebKeySet]
}

// newTokenVerifier reads the issuer's keys. Without an issuer it gives nil.
func newTokenVerifier(c OIDCConfig, clk clock.PassiveClock) (*tokenVerifier, error) {
	if c.Issuer == "" {
		return nil, nil //nolint:nilnil // no issuer is no error
	}
	if c.NameClaim == "" {
		c.NameClaim = "sub"
	}
	v := &tokenVerifier{config: c, clock: clk}
	if err := v.reload(); err != nil {
		return nil, fmt.Errorf("--approver-jwks %s: %w", c.KeyFile, err)
	}
	return v, nil
}

// reload reads the keys anew. After an error they stay as they were.
func (v *tokenVerifier) reload() error {
	f, err := os.Open(filepath.Clean(v.config.KeyFile))
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // read only
	data, err := io.ReadAll(io.LimitReader(f, maxJWKS))
	if err != nil {
		return err
	}
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(data, &set); err != nil {
		return errors.New("it is no JWKS")
	}
	for i := range set.Keys {
		if !set.Keys[i].IsPublic() {
			return fmt.Errorf("key %d is not public: whoever has this file could sign", i)
		}
	}
	set.Keys = slices.DeleteFunc(set.Keys, func(k jose.JSONWebKey) bool { return !k.Valid() || k.Use != "" && k.Use != "sig" })
	if len(set.Keys) == 0 {
		return errors.New("it holds no key to check signatures with")
	}
	v.keys.Store(&set)
	return nil
}

// ids name the keys that are held.
func (v *tokenVerifier) ids() []string {
	var out []string
	for _, k := range v.keys.Load().Keys {
		out = append(out, k.KeyID)
	}
	return out
}

// approver names who holds a token, and nobody for any that is not to be believed: of another issuer or audience,
// expired or without an end, or by no key of the issuer.
func (v *tokenVerifier) approver(token string) (approval.Approver, bool) {
	if v == nil || len(token) > maxToken {
		return approval.Approver{}, false
	}
	parsed, err := jwt.ParseSigned(token, tokenAlgorithms)
	if err != nil || len(parsed.Headers) != 1 {
		return approval.Approver{}, false
	}
	for _, key := range v.keys.Load().Key(parsed.Headers[0].KeyID) {
		if key.Algorithm != "" && key.Algorithm != parsed.Headers[0].Algorithm {
			continue
		}
		var standard jwt.Claims
		var all map[string]any
		if parsed.Claims(key, &standard, &all) == nil {
			return v.read(&standard, all)
		}
	}
	return approval.Approver{}, false
}

// read takes an approver from claims that the issuer has signed.
func (v *tokenVerifier) read(standard *jwt.Claims, all map[string]any) (approval.Approver, bool) {
	expected := jwt.Expected{Issuer: v.config.Issuer, AnyAudience: jwt.Audience{v.config.Audience}, Time: v.clock.Now()}
	if standard.Expiry == nil || standard.ValidateWithLeeway(expected, tokenSkew) != nil {
		return approval.Approver{}, false
	}
	name, _ := all[v.config.NameClaim].(string)
	verified, _ := all["email_verified"].(bool)
	if strings.TrimSpace(name) == "" || len(name) > approval.MaxMessage || v.config.NameClaim == claimEmail && !verified {
		return approval.Approver{}, false
	}
	if v.config.Group != "" {
		groups, _ := all["groups"].([]any)
		if !slices.Contains(groups, any(v.config.Group)) {
			return approval.Approver{}, false
		}
	}
	return approval.Approver{Type: approval.OIDC, Issuer: v.config.Issuer, Name: name}, true
}
