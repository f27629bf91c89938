package gate

import (
	"crypto/ed25519"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/policy"
)

// frontDoor signs what the user says.
type frontDoor struct {
	t   *testing.T
	key ed25519.PrivateKey
	now time.Time
}

func (d frontDoor) attest(onBehalfOf string, turns ...string) string {
	d.t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: d.key}, (&jose.SignerOptions{}).WithType("gatewright-context+jws"))
	if err != nil {
		d.t.Fatal(err)
	}
	payload, err := json.Marshal(map[string]any{"userTurns": turns, "facts": map[string]any{}, "onBehalfOf": onBehalfOf,
		"session": "s", "namespace": "shop", "iat": d.now.Unix(), "exp": d.now.Add(time.Minute).Unix()})
	if err != nil {
		d.t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		d.t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		d.t.Fatal(err)
	}
	return text
}

func TestAnApprovalIsBoundToWhatTheFrontDoorHeard(t *testing.T) {
	f := newFixture(t)
	door := frontDoor{t, ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)), f.clock.Now()}
	key, err := json.Marshal(jose.JSONWebKey{Key: door.key.Public()})
	if err != nil {
		t.Fatal(err)
	}
	f.load(t, strings.Replace(testPolicy, "spec:", "spec:\n  contextTrust: Attested\n  attestors: [{name: door, publicKey: '"+string(key)+"'}]", 1))
	// The agent says the same each time; only what is signed differs.
	call := func(attestation string) *review.Request {
		return f.call("item.delete", func(r *review.Request) { r.Context.Attestation = attestation })
	}
	raised := f.want(t, call(door.attest("ada", "delete item 7")), review.Confirm, policy.ReasonIrreversible)
	waiting, err := f.approvals.Get(t.Context(), raised.Approval.Name)
	if err != nil || waiting.Call.UserRequest != "delete item 7" || waiting.Call.OnBehalfOf != "ada" {
		t.Errorf("the person sees %q of %q, and not what the front door heard: %v", waiting.Call.UserRequest, waiting.Call.OnBehalfOf, err)
	}
	f.decideApproval(t, raised.Approval.Name, approval.Approved)
	f.want(t, call(door.attest("ada", "delete item 7", "no, stop")), review.Confirm, policy.ReasonIrreversible)
	f.want(t, call(door.attest("eve", "delete item 7")), review.Confirm, policy.ReasonIrreversible)
	if got := f.records.last(t); got.OnBehalfOf != "eve" {
		t.Errorf("recorded for %q", got.OnBehalfOf)
	}
	f.want(t, call(door.attest("ada", "delete item 7")), review.Allow, policy.ReasonApproved)
}
