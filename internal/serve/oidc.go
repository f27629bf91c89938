package serve

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
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
	// KeyFile holds the issuer's public keys as a JWKS. It is read again when it changes. Empty: they are fetched from the
	// issuer.
	KeyFile string
	// CAFile holds the only authorities to trust for the issuer, where keys are fetched; empty for the system's.
	CAFile string
	// NameClaim is what an approver is called by: sub by default. email counts only if email_verified says so.
	NameClaim string
	// Group that the claim groups has to hold; empty for none.
	Group string
}

func (c *OIDCConfig) bindFlags(f *flag.FlagSet) {
	f.StringVar(&c.Issuer, "approver-issuer", "", "issuer whose tokens decide approvals where a policy opens the channel OIDC, as an https URL")
	f.StringVar(&c.Audience, "approver-audience", "", "audience that an approver's token has to be for: one of its own, so that no other token of the issuer decides")
	f.StringVar(&c.KeyFile, "approver-jwks", "", "file with the issuer's public keys as a JWKS; read again when it changes (default: fetched from the issuer, as its "+discoveryPath+" says)")
	f.StringVar(&c.CAFile, "approver-issuer-ca", "", "file with the only authorities to trust for the issuer when its keys are fetched")
	f.StringVar(&c.NameClaim, "approver-name-claim", "sub", "claim that names an approver; email has to be verified")
	f.StringVar(&c.Group, "approver-group", "", "group that an approver's token has to name in its claim groups; empty for none")
}

func (c *OIDCConfig) validate() error {
	switch {
	case c.Issuer == "" && c.Group != "":
		return errors.New("--approver-group is for --approver-issuer: give it too, or neither")
	case c.Issuer+c.Audience+c.KeyFile+c.CAFile == "":
		return nil
	case c.Issuer == "" || c.Audience == "":
		return errors.New("--approver-issuer and --approver-audience go together, and --approver-jwks and --approver-issuer-ca are for them: give both, or none of the four")
	case c.KeyFile != "" && c.CAFile != "":
		return errors.New("--approver-issuer-ca has no effect with --approver-jwks: nothing is fetched then")
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
	tokenSkew  = 30 * time.Second
	claimEmail = "email"
)

// tokenVerifier tells approvers by the tokens of one issuer.
type tokenVerifier struct {
	config OIDCConfig
	clock  clock.PassiveClock
	keys   keySource
}

// newTokenVerifier reads the issuer's keys from their file, or fetches them. An issuer that does not answer now is asked again
// when there is a token. Without an issuer it gives nil.
func newTokenVerifier(ctx context.Context, c OIDCConfig, clk clock.PassiveClock, log *slog.Logger) (*tokenVerifier, error) {
	if c.Issuer == "" {
		return nil, nil //nolint:nilnil // no issuer is no error
	}
	if c.NameClaim == "" {
		c.NameClaim = "sub"
	}
	v := &tokenVerifier{config: c, clock: clk}
	if c.KeyFile == "" {
		keys, err := newKeysOfIssuer(c.Issuer, c.CAFile, clk, log)
		if err != nil {
			return nil, fmt.Errorf("--approver-issuer-ca: %w", err)
		}
		_ = keys.cache.Ready(ctx) // what fails is in the log
		v.keys = keys
		return v, nil
	}
	keys := &keysInFile{path: c.KeyFile}
	if err := keys.reload(); err != nil {
		return nil, fmt.Errorf("--approver-jwks %s: %w", c.KeyFile, err)
	}
	v.keys = keys
	return v, nil
}

// approver names who holds a token, and nobody for any that is not to be believed: of another issuer or audience,
// expired or without an end, or by no key of the issuer.
func (v *tokenVerifier) approver(ctx context.Context, token string) (approval.Approver, bool) {
	if v == nil || len(token) > maxToken {
		return approval.Approver{}, false
	}
	parsed, err := jwt.ParseSigned(token, tokenAlgorithms)
	if err != nil || len(parsed.Headers) != 1 || !v.mayBeGood(parsed) {
		return approval.Approver{}, false
	}
	for _, key := range v.keys.find(ctx, parsed.Headers[0].KeyID) {
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

// mayBeGood looks at what a token says of itself before any key is looked for, so that an issuer is asked about no others.
func (v *tokenVerifier) mayBeGood(token *jwt.JSONWebToken) bool {
	var claimed jwt.Claims
	return token.UnsafeClaimsWithoutVerification(&claimed) == nil && v.isFor(&claimed)
}

func (v *tokenVerifier) isFor(c *jwt.Claims) bool {
	expected := jwt.Expected{Issuer: v.config.Issuer, AnyAudience: jwt.Audience{v.config.Audience}, Time: v.clock.Now()}
	return c.Expiry != nil && c.ValidateWithLeeway(expected, tokenSkew) == nil
}

// read takes an approver from claims that the issuer has signed.
func (v *tokenVerifier) read(standard *jwt.Claims, all map[string]any) (approval.Approver, bool) {
	if !v.isFor(standard) {
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
