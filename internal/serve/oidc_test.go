package serve

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	clocktesting "k8s.io/utils/clock/testing"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/audit"
)

const testIssuer = "https://issuer.example"

// testIdP signs tokens as an issuer does.
type testIdP struct {
	alg  jose.SignatureAlgorithm
	key  crypto.Signer
	kid  string
	path string // of the JWKS
}

func newTestIdP(t *testing.T, alg jose.SignatureAlgorithm, kid string) *testIdP {
	t.Helper()
	p := &testIdP{alg: alg, kid: kid, path: filepath.Join(t.TempDir(), "jwks.json")}
	var err error
	if alg == jose.EdDSA {
		_, p.key, err = ed25519.GenerateKey(rand.Reader)
	} else {
		p.key, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		t.Fatal(err)
	}
	p.publish(t, jose.JSONWebKey{Key: p.key.Public(), KeyID: kid, Algorithm: string(alg), Use: "sig"})
	return p
}

func (p *testIdP) publish(t *testing.T, keys ...jose.JSONWebKey) {
	t.Helper()
	data, err := json.Marshal(jose.JSONWebKeySet{Keys: keys})
	if err == nil {
		err = os.WriteFile(p.path, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (p *testIdP) token(t *testing.T, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: p.alg, Key: p.key}, (&jose.SignerOptions{}).WithHeader("kid", p.kid).WithType("JWT"))
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// kimsClaims are good from a moment on for five minutes, with one change.
func kimsClaims(now time.Time, changes map[string]any) map[string]any {
	claims := map[string]any{
		"iss": testIssuer, "aud": "approvals", "sub": "kim", "email": "kim@example.com", "email_verified": true,
		"groups": []string{"staff", "approvers"}, "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(),
	}
	maps.Copy(claims, changes)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	return claims
}

func TestTokensThatNameAnApprover(t *testing.T) {
	idp, other := newTestIdP(t, jose.RS256, "k1"), newTestIdP(t, jose.RS256, "k1")
	ed := newTestIdP(t, jose.EdDSA, "k2")
	idp.publish(t, jose.JSONWebKey{Key: idp.key.Public(), KeyID: "k1", Algorithm: "RS256"}, jose.JSONWebKey{Key: ed.key.Public(), KeyID: "k2"})
	changed := func(name string, v any) map[string]any { return map[string]any{name: v} }
	at := func(d time.Duration) int64 { return deskNoon.Add(d).Unix() }
	for name, test := range map[string]struct {
		by      *testIdP
		changes map[string]any
		config  OIDCConfig
		mangle  func(token string) string
		want    string // name of the approver; empty for none
	}{
		"one by RSA":                                {idp, nil, OIDCConfig{}, nil, "kim"},
		"one by Ed25519":                            {ed, nil, OIDCConfig{}, nil, "kim"},
		"one for several audiences":                 {idp, changed("aud", []string{"x", "approvals"}), OIDCConfig{}, nil, "kim"},
		"one that names a verified address":         {idp, nil, OIDCConfig{NameClaim: "email"}, nil, "kim@example.com"},
		"an address that is not verified":           {idp, changed("email_verified", false), OIDCConfig{NameClaim: "email"}, nil, ""},
		"an address that is verified in a text":     {idp, changed("email_verified", "true"), OIDCConfig{NameClaim: "email"}, nil, ""},
		"one of the group":                          {idp, nil, OIDCConfig{Group: "approvers"}, nil, "kim"},
		"one of other groups":                       {idp, changed("groups", []string{"approvers-not"}), OIDCConfig{Group: "approvers"}, nil, ""},
		"one without groups":                        {idp, changed("groups", nil), OIDCConfig{Group: "approvers"}, nil, ""},
		"groups in one text":                        {idp, changed("groups", "approvers"), OIDCConfig{Group: "approvers"}, nil, ""},
		"another issuer":                            {idp, changed("iss", "https://issuer.example/"), OIDCConfig{}, nil, ""},
		"no issuer":                                 {idp, changed("iss", nil), OIDCConfig{}, nil, ""},
		"another audience":                          {idp, changed("aud", "tools"), OIDCConfig{}, nil, ""},
		"no audience":                               {idp, changed("aud", nil), OIDCConfig{}, nil, ""},
		"no name":                                   {idp, changed("sub", nil), OIDCConfig{}, nil, ""},
		"an empty name":                             {idp, changed("sub", " "), OIDCConfig{}, nil, ""},
		"a name that is a number":                   {idp, changed("groups", nil), OIDCConfig{NameClaim: "iat"}, nil, ""},
		"a long name":                               {idp, changed("sub", strings.Repeat("k", approval.MaxMessage+1)), OIDCConfig{}, nil, ""},
		"one that has expired":                      {idp, changed("exp", at(-31*time.Second)), OIDCConfig{}, nil, ""},
		"one that expired within the skew":          {idp, changed("exp", at(-29*time.Second)), OIDCConfig{}, nil, "kim"},
		"one without an end":                        {idp, changed("exp", nil), OIDCConfig{}, nil, ""},
		"one that is not good yet":                  {idp, changed("nbf", at(time.Minute)), OIDCConfig{}, nil, ""},
		"one from the future":                       {idp, changed("iat", at(time.Hour)), OIDCConfig{}, nil, ""},
		"another's key under the same kid":          {other, nil, OIDCConfig{}, nil, ""},
		"a key that is not published":               {&testIdP{alg: jose.EdDSA, key: ed.key, kid: "k3"}, nil, OIDCConfig{}, nil, ""},
		"a key under the name of another algorithm": {&testIdP{alg: jose.RS512, key: idp.key, kid: "k1"}, nil, OIDCConfig{}, nil, ""},
		"no signature":                              {idp, nil, OIDCConfig{}, func(s string) string { return s[:strings.LastIndex(s, ".")+1] }, ""},
		"algorithm none":                            {idp, nil, OIDCConfig{}, func(s string) string { return "eyJhbGciOiJub25lIn0" + s[strings.Index(s, "."):] }, ""},
		"changed claims":                            {idp, nil, OIDCConfig{}, func(s string) string { return strings.Replace(s, ".ey", ".eY", 1) }, ""},
		"something behind it":                       {idp, nil, OIDCConfig{}, func(s string) string { return s + " " }, ""},
		"more than a token can have":                {idp, changed("x", strings.Repeat("x", maxToken)), OIDCConfig{}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := test.config
			c.Issuer, c.Audience, c.KeyFile = testIssuer, "approvals", idp.path
			v, err := newTokenVerifier(t.Context(), c, clocktesting.NewFakePassiveClock(deskNoon), slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			token := test.by.token(t, kimsClaims(deskNoon, test.changes))
			if test.mangle != nil {
				token = test.mangle(token)
			}
			who, ok := v.approver(t.Context(), token)
			want := approval.Approver{Type: approval.OIDC, Issuer: testIssuer, Name: test.want}
			if test.want == "" {
				want = approval.Approver{}
			}
			if who != want || ok != (test.want != "") {
				t.Errorf("%v %t, want %v", who, ok, want)
			}
		})
	}
	var none *tokenVerifier
	if who, ok := none.approver(t.Context(), idp.token(t, kimsClaims(deskNoon, nil))); ok {
		t.Errorf("without an issuer a token names %v", who)
	}
}

func TestKeysOfAnIssuerAreReadStrictly(t *testing.T) {
	idp := newTestIdP(t, jose.EdDSA, "k")
	for name, test := range map[string]struct{ content, want string }{
		"nothing":                {"", "no JWKS"},
		"no key":                 {`{"keys":[]}`, "no key"},
		"a key to encrypt with":  {strings.Replace(read(t, idp.path), `"sig"`, `"enc"`, 1), "no key"},
		"a private key":          {jwks(t, jose.JSONWebKey{Key: idp.key, KeyID: "k"}), "not public"},
		"a secret of both sides": {jwks(t, jose.JSONWebKey{Key: []byte("0123456789abcdef0123456789abcdef"), KeyID: "k"}), "not public"},
	} {
		path := filepath.Join(t.TempDir(), "jwks")
		write(t, filepath.Dir(path), "jwks", test.content)
		_, err := newTokenVerifier(t.Context(), OIDCConfig{Issuer: testIssuer, Audience: "a", KeyFile: path}, clocktesting.NewFakePassiveClock(deskNoon), slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func jwks(t *testing.T, keys ...jose.JSONWebKey) string {
	t.Helper()
	data, err := json.Marshal(jose.JSONWebKeySet{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestFlagsOfAnIssuerGoTogether(t *testing.T) {
	for name, test := range map[string]struct {
		config OIDCConfig
		want   string
	}{
		"none":                     {OIDCConfig{NameClaim: "sub"}, ""},
		"all three":                {OIDCConfig{Issuer: testIssuer, Audience: "a", KeyFile: "f"}, ""},
		"no audience":              {OIDCConfig{Issuer: testIssuer, KeyFile: "f"}, "go together"},
		"keys by discovery":        {OIDCConfig{Issuer: testIssuer, Audience: "a", CAFile: "f"}, ""},
		"an authority without use": {OIDCConfig{Issuer: testIssuer, Audience: "a", KeyFile: "f", CAFile: "f"}, "no effect with --approver-jwks"},
		"an authority only":        {OIDCConfig{CAFile: "f"}, "go together"},
		"keys only":                {OIDCConfig{KeyFile: "f"}, "go together"},
		"a group only":             {OIDCConfig{Group: "g"}, "--approver-group"},
		"an issuer in plain text":  {OIDCConfig{Issuer: "http://issuer.example", Audience: "a", KeyFile: "f"}, "https"},
		"an issuer that is a name": {OIDCConfig{Issuer: "issuer", Audience: "a", KeyFile: "f"}, "https"},
	} {
		err := test.config.validate()
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

const byToken = `
apiVersion: gatewright.dev/v1alpha1
kind: ToolPolicy
metadata: {name: good, namespace: default}
spec:
  classes: [{name: Destructive, base: Destructive, channels: [OIDC]}]
  tools: [{name: item.drop, class: Destructive}]
`

// TestAUserOfAnIssuerApproves goes the whole way: a call waits, a secret does not open it, a token of the issuer does, once,
// and the record names who it was.
func TestAUserOfAnIssuerApproves(t *testing.T) {
	idp := newTestIdP(t, jose.RS256, "k")
	with := func(c *Config) {
		c.ApproverTokens = OIDCConfig{Issuer: testIssuer, Audience: "approvals", KeyFile: idp.path, Group: "approvers"}
	}
	work := t.TempDir()
	g := startAudited(t, work, byToken, with)
	r := g.ask(t, "item.drop")
	if r.Outcome != review.Confirm {
		t.Fatalf("%+v", r)
	}
	at := g.url + ApprovalsPath + "/" + r.Approval.Name
	now := time.Now()
	for _, step := range []struct {
		name, secret string
		want         int
	}{
		{"the approver's secret", g.secret(t), http.StatusForbidden},
		{"a token for another audience", idp.token(t, kimsClaims(now, map[string]any{"aud": "tools"})), http.StatusUnauthorized},
		{"a token of another group", idp.token(t, kimsClaims(now, map[string]any{"groups": []string{"staff"}})), http.StatusUnauthorized},
		{"a token of an approver", idp.token(t, kimsClaims(now, nil)), http.StatusOK},
	} {
		if status, data := send(t, at, step.secret, Verdict{Outcome: "Approve", Message: "fine"}); status != step.want {
			t.Fatalf("%s: HTTP %d %s, want %d", step.name, status, data, step.want)
		}
	}
	if err := g.stop(); err != nil {
		t.Fatal(err)
	}

	without := startAudited(t, work, byToken, func(c *Config) { c.Log = slog.New(slog.DiscardHandler) })
	if r := without.ask(t, "item.drop"); r.Outcome != review.Block || r.Reason != "ApprovalInvalid" {
		t.Errorf("by an issuer that is no longer known: %s %s", r.Outcome, r.Reason)
	}
	if err := without.stop(); err != nil {
		t.Fatal(err)
	}
	again := startAudited(t, work, byToken, with)
	if r := again.ask(t, "item.drop"); r.Outcome != review.Allow {
		t.Fatalf("%s %s", r.Outcome, r.Reason)
	}
	if by := lastRecord(t, again).Approval.By; by != "OIDC:"+testIssuer+"/kim" {
		t.Errorf("the record says that %s has approved", by)
	}
	if r := again.ask(t, "item.drop"); r.Outcome != review.Confirm {
		t.Errorf("a second time: %s %s", r.Outcome, r.Reason)
	}
}

func lastRecord(t *testing.T, g *auditedGate) audit.Entry {
	t.Helper()
	all := g.records(t, audit.Filter{Kind: audit.KindDecision})
	if len(all) == 0 {
		t.Fatal("nothing was recorded")
	}
	return all[len(all)-1]
}
