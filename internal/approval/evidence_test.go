package approval

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"
)

func signed(t *testing.T, key any, alg jose.SignatureAlgorithm, typ string, payload any) string {
	t.Helper()
	data, err := json.Marshal(payload)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, (&jose.SignerOptions{}).WithType(jose.ContentType(typ)))
	if err != nil {
		t.Fatal(err)
	}
	jws, err := signer.Sign(data)
	if err != nil {
		t.Fatal(err)
	}
	text, err := jws.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestEvidence(t *testing.T) {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	another := ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", ed25519.SeedSize)))
	jwk, err := json.Marshal(jose.JSONWebKey{Key: key.Public()})
	if err != nil {
		t.Fatal(err)
	}
	approvers := Approvers{Attestors: []Attestor{{Name: "bad", Key: json.RawMessage(`{}`)}, {Name: "chat", Key: jwk}}}
	c, now := call(), noon.Add(time.Minute)
	payload := func(change func(p map[string]any)) map[string]any {
		p := map[string]any{"call": "0a", "namespace": "shop", "outcome": "Approve", "user": "jo", "message": "go", "iat": now.Unix()}
		change(p)
		return p
	}
	set := func(field string, v any) map[string]any { return payload(func(p map[string]any) { p[field] = v }) }
	good := signed(t, key, jose.EdDSA, EvidenceType, payload(func(map[string]any) {}))
	for name, text := range map[string]string{
		"nothing":                         "",
		"no JWS":                          "a.b.c",
		"another typ":                     signed(t, key, jose.EdDSA, "gatewright-context+jws", payload(func(map[string]any) {})),
		"no typ":                          signed(t, key, jose.EdDSA, "", payload(func(map[string]any) {})),
		"another key":                     signed(t, another, jose.EdDSA, EvidenceType, payload(func(map[string]any) {})),
		"a key that is no secret":         signed(t, []byte(jwk), jose.HS256, EvidenceType, payload(func(map[string]any) {})),
		"a signature that was cut off":    good[:strings.LastIndex(good, ".")+1],
		"another call":                    signed(t, key, jose.EdDSA, EvidenceType, set("call", "0b")),
		"another namespace":               signed(t, key, jose.EdDSA, EvidenceType, set("namespace", "bank")),
		"another outcome":                 signed(t, key, jose.EdDSA, EvidenceType, set("outcome", "approve")),
		"nobody":                          signed(t, key, jose.EdDSA, EvidenceType, set("user", "")),
		"a field that is unknown":         signed(t, key, jose.EdDSA, EvidenceType, set("exp", now.Unix())),
		"what was signed before the call": signed(t, key, jose.EdDSA, EvidenceType, set("iat", noon.Add(-2*maxSkew).Unix())),
		"what will be signed":             signed(t, key, jose.EdDSA, EvidenceType, set("iat", now.Add(2*maxSkew).Unix())),
		"what was signed after its end":   signed(t, key, jose.EdDSA, EvidenceType, set("iat", c.ExpiresAt.Unix())),
		"no time":                         signed(t, key, jose.EdDSA, EvidenceType, payload(func(p map[string]any) { delete(p, "iat") })),
		"a time that is a text":           signed(t, key, jose.EdDSA, EvidenceType, set("iat", "now")),
	} {
		t.Run(name, func(t *testing.T) {
			if d, err := approvers.Read(text, "0a", &c, now); !errors.Is(err, ErrBadEvidence) {
				t.Errorf("Read = %+v, %v", d, err)
			}
		})
	}
	if _, err := approvers.Read(good+strings.Repeat("A", maxEvidence), "0a", &c, now); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a long one: %v", err)
	}
	want := Decision{Outcome: Approved, By: Approver{Type: Attested, Issuer: "chat", Name: "jo"}, Message: "go", ID: "0a", Evidence: good}
	got, err := approvers.Read(good, "0a", &c, now)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("Read: %v (-want +got):\n%s", err, diff)
	}
	if s := got.By.String(); s != "Attested:chat/jo" {
		t.Errorf("in records: %s", s)
	}
}

// A user of the issuer may be the very one behind the agent: where nobody says whose call it is, that cannot be told.
func TestAUserOfTheIssuerNeedsToKnowWhoseCallItIs(t *testing.T) {
	rules := Approvers{Channels: []Channel{ChannelOIDC}, Issuers: []string{"i"}}
	kim := Approver{Type: OIDC, Issuer: "i", Name: "kim"}
	for name, c := range map[string]struct {
		call Call
		want error
	}{
		"nobody says whose call it is":      {Call{}, ErrSelfApproval},
		"the agent names another user":      {Call{Binding: Binding{OnBehalfOf: "jo"}}, nil},
		"the agent names this user":         {Call{Binding: Binding{OnBehalfOf: "Kim"}}, ErrSelfApproval},
		"a front door vouches for a caller": {Call{Binding: Binding{AttestedBy: "door"}}, nil},
	} {
		if err := rules.mayApprove(&c.call, kim, ChannelOIDC); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}
