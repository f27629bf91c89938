package serve

import (
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	clocktesting "k8s.io/utils/clock/testing"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/testkit"
)

// onlineIdP is an issuer that says where its keys are.
type onlineIdP struct {
	*testIdP
	url, authority string
	mu             sync.Mutex
	isAway         bool
	said           map[string]string // in place of what it says of itself
	asked          map[string]int    // by path
}

func newOnlineIdP(t *testing.T) *onlineIdP {
	t.Helper()
	p := &onlineIdP{testIdP: newTestIdP(t, jose.EdDSA, "k1"), authority: filepath.Join(t.TempDir(), "ca.pem"), asked: map[string]int{}}
	server := httptest.NewTLSServer(p)
	t.Cleanup(server.Close)
	p.url = server.URL + "/realms/staff"
	if err := os.WriteFile(p.authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *onlineIdP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked[r.URL.Path]++
	said := map[string]string{"issuer": p.url, "jwks_uri": p.url + "/certs"}
	maps.Copy(said, p.said)
	switch {
	case p.isAway:
		http.Error(w, "away", http.StatusServiceUnavailable)
	case r.URL.Path == "/realms/staff/.well-known/openid-configuration":
		_ = json.NewEncoder(w).Encode(said)
	case r.URL.Path == "/realms/staff/certs":
		http.ServeFile(w, r, p.path)
	case r.URL.Path == "/elsewhere":
		http.Redirect(w, r, p.url+"/certs", http.StatusFound)
	default:
		http.NotFound(w, r)
	}
}

func (p *onlineIdP) do(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// fetches is how often its keys were asked for.
func (p *onlineIdP) fetches() (discoveries, keys int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked["/realms/staff/.well-known/openid-configuration"], p.asked["/realms/staff/certs"]
}

func (p *onlineIdP) config() OIDCConfig {
	return OIDCConfig{Issuer: p.url, Audience: "approvals", CAFile: p.authority}
}

func TestKeysOfAnIssuerAreFetchedAndKept(t *testing.T) {
	idp := newOnlineIdP(t)
	next := newTestIdP(t, jose.EdDSA, "k2")
	stranger := newTestIdP(t, jose.EdDSA, "k9")
	c := clocktesting.NewFakePassiveClock(deskNoon)
	v, err := newTokenVerifier(t.Context(), idp.config(), c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	knows := func(by *testIdP) bool {
		_, ok := v.approver(t.Context(), by.token(t, kimsClaims(c.Now(), map[string]any{"iss": idp.url})))
		return ok
	}
	for _, step := range []struct {
		name    string
		at      time.Duration
		change  func()
		by      *testIdP
		times   int
		want    bool
		fetches int
	}{
		{"fetched at the start", 0, nil, idp.testIdP, 3, true, 1},
		{"keys that nobody has, many at once", 5 * time.Second, nil, stranger, 50, false, 1},
		{"keys that nobody has, later", 10 * time.Second, nil, stranger, 50, false, 2},
		{"a new key while it was asked just now", 11 * time.Second, func() {
			idp.publish(t, jose.JSONWebKey{Key: idp.key.Public(), KeyID: "k1"}, jose.JSONWebKey{Key: next.key.Public(), KeyID: "k2"})
		}, next, 1, false, 2},
		{"a new key", 20 * time.Second, nil, next, 2, true, 3},
		{"a key that was taken back, within five minutes", 5 * time.Minute, func() {
			idp.publish(t, jose.JSONWebKey{Key: next.key.Public(), KeyID: "k2"})
		}, idp.testIdP, 1, true, 3},
		{"a key that was taken back, after that", 6 * time.Minute, nil, idp.testIdP, 1, false, 4},
		{"a known key while the issuer is away", 65 * time.Minute, func() { idp.do(func() { idp.isAway = true }) }, next, 3, true, 5},
		{"an unknown key while it is away", 65 * time.Minute, nil, stranger, 3, false, 5},
		{"a known key when it has been away for an hour", 66 * time.Minute, nil, next, 3, false, 6},
		{"when it is back", 67 * time.Minute, func() { idp.do(func() { idp.isAway = false }) }, next, 1, true, 7},
	} {
		c.SetTime(deskNoon.Add(step.at))
		if step.change != nil {
			step.change()
		}
		for range step.times {
			if got := knows(step.by); got != step.want {
				t.Fatalf("%s: %t, want %t", step.name, got, step.want)
			}
		}
		if discoveries, _ := idp.fetches(); discoveries != step.fetches {
			t.Errorf("%s: asked %d times, want %d", step.name, discoveries, step.fetches)
		}
	}
}

func TestAnIssuerIsAskedAboutItsOwnTokensOnly(t *testing.T) {
	idp := newOnlineIdP(t)
	c := clocktesting.NewFakePassiveClock(deskNoon)
	v, err := newTokenVerifier(t.Context(), idp.config(), c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c.SetTime(deskNoon.Add(time.Hour))
	stranger := newTestIdP(t, jose.EdDSA, "k9")
	for name, changes := range map[string]map[string]any{
		"of another issuer":    {"iss": testIssuer},
		"for another audience": {"iss": idp.url, "aud": "tools"},
		"that has expired":     {"iss": idp.url, "exp": c.Now().Add(-time.Minute).Unix()},
	} {
		if _, ok := v.approver(t.Context(), stranger.token(t, kimsClaims(c.Now(), changes))); ok {
			t.Errorf("a token %s is believed", name)
		}
	}
	if discoveries, _ := idp.fetches(); discoveries != 1 {
		t.Errorf("asked %d times, want once, at the start", discoveries)
	}
}

func TestKeysThatAreNotUnderstoodAreForOthers(t *testing.T) {
	good := jwks(t, jose.JSONWebKey{Key: newTestIdP(t, jose.EdDSA, "k1").key.Public(), KeyID: "k1"})
	for name, other := range map[string]string{
		"a kind of key that is new":      `{"kty":"AKP2","kid":"x","pub":"AA"}`,
		"another curve":                  `{"kty":"EC","crv":"secp256k1","kid":"x","x":"AA","y":"AA"}`,
		"a curve for encryption":         `{"kty":"OKP","crv":"X25519","kid":"x","x":"AA"}`,
		"a secret, which signs for none": `{"kty":"oct","kid":"x","k":"MDEyMzQ1Njc4OWFiY2RlZg"}`,
		"no kind":                        `{"kid":"x"}`,
	} {
		set, err := readFetched([]byte(strings.Replace(good, "[", "["+other+",", 1)))
		if err != nil || len(set.Keys) != 1 || set.Keys[0].KeyID != "k1" {
			t.Errorf("%s: %+v, %v, want k1 alone", name, set, err)
		}
		if _, err := readFetched([]byte(`{"keys":[` + other + `]}`)); err == nil {
			t.Errorf("%s and nothing else: it is taken", name)
		}
	}
}

func TestIssuersWhoseKeysAreNotBelieved(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(p *onlineIdP, c *OIDCConfig)
		want   string // in the log
	}{
		"another issuer in what it says":       {func(p *onlineIdP, _ *OIDCConfig) { p.said = map[string]string{"issuer": testIssuer} }, "another issuer"},
		"its own name with a slash more":       {func(p *onlineIdP, _ *OIDCConfig) { p.said = map[string]string{"issuer": p.url + "/"} }, "another issuer"},
		"no address of keys":                   {func(p *onlineIdP, _ *OIDCConfig) { p.said = map[string]string{"jwks_uri": ""} }, "jwks_uri: the address has to be https"},
		"keys over plain http":                 {func(p *onlineIdP, _ *OIDCConfig) { p.said = map[string]string{"jwks_uri": "http://issuer.example/"} }, "jwks_uri: the address has to be https"},
		"keys on another host of this machine": {func(p *onlineIdP, _ *OIDCConfig) { p.said = map[string]string{"jwks_uri": "https://127.0.0.1:1/"} }, "loopback"},
		"keys where clouds keep credentials": {func(p *onlineIdP, _ *OIDCConfig) {
			p.said = map[string]string{"jwks_uri": "https://169.254.169.254/"}
		}, "link-local"},
		"keys behind a redirect": {func(p *onlineIdP, _ *OIDCConfig) {
			p.said = map[string]string{"jwks_uri": strings.TrimSuffix(p.url, "/realms/staff") + "/elsewhere"}
		}, "HTTP 302"},
		"an authority that is not trusted": {func(_ *onlineIdP, c *OIDCConfig) { c.CAFile = "" }, "certificate"},
		"a private key":                    {func(p *onlineIdP, _ *OIDCConfig) { p.publish(t, jose.JSONWebKey{Key: p.key, KeyID: "k1"}) }, "not public"},
		"an issuer that is away":           {func(p *onlineIdP, _ *OIDCConfig) { p.isAway = true }, "HTTP 503"},
	} {
		t.Run(name, func(t *testing.T) {
			idp := newOnlineIdP(t)
			config := idp.config()
			idp.do(func() { tc.change(idp, &config) })
			log := &testkit.Log{}
			v, err := newTokenVerifier(t.Context(), config, clocktesting.NewFakePassiveClock(deskNoon), slog.New(slog.NewJSONHandler(log, nil)))
			if err != nil {
				t.Fatal(err)
			}
			if who, ok := v.approver(t.Context(), idp.token(t, kimsClaims(deskNoon, map[string]any{"iss": idp.url}))); ok {
				t.Errorf("%v is believed", who)
			}
			if !strings.Contains(log.String(), tc.want) {
				t.Errorf("the log does not say %q:\n%s", tc.want, log)
			}
		})
	}
	for name, file := range map[string]string{"no file": "/nowhere", "a file without a certificate": "/dev/null"} {
		config := OIDCConfig{Issuer: testIssuer, Audience: "a", CAFile: file}
		if _, err := newTokenVerifier(t.Context(), config, clocktesting.NewFakePassiveClock(deskNoon), nil); err == nil || !strings.Contains(err.Error(), "--approver-issuer-ca") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAUserOfAnIssuerApprovesWithKeysThatAreFetched(t *testing.T) {
	idp := newOnlineIdP(t)
	g := startAudited(t, t.TempDir(), byToken, func(c *Config) { c.ApproverTokens = idp.config() })
	r := g.ask(t, "item.drop")
	if r.Outcome != review.Confirm {
		t.Fatalf("%+v", r)
	}
	token := idp.token(t, kimsClaims(time.Now(), map[string]any{"iss": idp.url}))
	if status, data := send(t, g.url+ApprovalsPath+"/"+r.Approval.Name, token, Verdict{Outcome: "Approve"}); status != http.StatusOK {
		t.Fatalf("HTTP %d %s", status, data)
	}
	if r := g.ask(t, "item.drop"); r.Outcome != review.Allow {
		t.Errorf("%s %s", r.Outcome, r.Reason)
	}
}
