package conformance

import (
	"crypto/ed25519"
	"encoding/json"
	"time"

	"github.com/go-jose/go-jose/v4"

	"gatewright.dev/gatewright/internal/approval"
)

// deciding is who may.
var deciding = map[string]func(w *world){
	"who may approve": func(w *world) {
		kubernetes := func(name string) approval.Approver {
			return approval.Approver{Type: approval.KubernetesUser, Name: name}
		}
		local := []approval.Channel{approval.ChannelKubernetes}
		attested := approval.Approvers{Channels: []approval.Channel{approval.ChannelAttested}}
		oidc := approval.Approvers{Channels: []approval.Channel{approval.ChannelOIDC}, Issuers: []string{"i"}}
		for name, test := range map[string]struct {
			approvers approval.Approvers
			by        approval.Approver
			want      error
		}{
			"a user of the cluster":                     {approval.Approvers{Channels: local}, kubernetes("kim"), nil},
			"the holder of a secret":                    {approval.Approvers{Channels: local}, w.person("kim"), nil},
			"nobody where no channel is open":           {approval.Approvers{SelfApproval: true}, w.person("kim"), approval.ErrChannel},
			"the end user of the call":                  {approval.Approvers{Channels: local}, w.person("jo"), approval.ErrSelfApproval},
			"the end user in other letters":             {approval.Approvers{Channels: local}, kubernetes("JO"), approval.ErrSelfApproval},
			"the end user where the policy says so":     {approval.Approvers{SelfApproval: true, Channels: local}, w.person("jo"), nil},
			"the caller wherever the policy says so":    {approval.Approvers{SelfApproval: true}, kubernetes("system:serviceaccount:shop:agent"), approval.ErrSelfApproval},
			"the holder of a secret in another channel": {attested, w.person("kim"), approval.ErrChannel},
			"a user of the cluster in another channel":  {attested, kubernetes("kim"), approval.ErrChannel},
			"an attested user without evidence":         {attested, approval.Approver{Type: approval.Attested, Name: "kim"}, approval.ErrBadEvidence},
			"a user of the gate's issuer":               {oidc, approval.Approver{Type: approval.OIDC, Issuer: "i", Name: "kim"}, nil},
			"a user of the issuer in another channel":   {approval.Approvers{Channels: local, Issuers: oidc.Issuers}, approval.Approver{Type: approval.OIDC, Issuer: "i", Name: "kim"}, approval.ErrChannel},
			"a user of another issuer":                  {oidc, approval.Approver{Type: approval.OIDC, Issuer: "j", Name: "kim"}, approval.ErrChannel},
			"the end user with a token":                 {oidc, approval.Approver{Type: approval.OIDC, Issuer: "i", Name: "Jo"}, approval.ErrSelfApproval},
			"the holder of a secret in place of one":    {oidc, w.person("kim"), approval.ErrChannel},
			"a user of an issuer that nobody has named": {approval.Approvers{Channels: []approval.Channel{approval.ChannelOIDC}}, approval.Approver{Type: approval.OIDC, Issuer: "i", Name: "kim"}, approval.ErrChannel},
		} {
			a := w.raise(call(withTool(name), withApprovers(test.approvers)))
			err := w.Decide(w.Context(), a.Name, approval.Decision{Outcome: approval.Approved, By: test.by})
			if test.want == nil && err != nil {
				w.Errorf("%s: %v", name, err)
			}
			if test.want != nil {
				w.wantErr(err, test.want)
				w.wantState(a.Name, approval.Pending)
			}
		}
	},
	"anybody with a name may reject": func(w *world) {
		for tool, by := range map[string]approval.Approver{"1": w.person("jo"), "2": w.person("kim")} {
			a := w.raise(call(withTool(tool), withApprovers(approval.Approvers{Channels: []approval.Channel{approval.ChannelAttested}})))
			if err := w.Decide(w.Context(), a.Name, approval.Decision{Outcome: approval.Rejected, By: by}); err != nil {
				w.Errorf("%s: %v", by, err)
			}
		}
	},
	"the end user of a front door decides by what it has signed": func(w *world) {
		door := newDoor(w, "chat")
		a := w.raise(call(door.approves(approval.Approvers{SelfApproval: true}), func(c *approval.Call) { c.AttestedBy = "chat" }))
		d, err := a.Call.Approvers.Read(door.sign(w, a.ID, nil), a.ID, &a.Call, w.clock.Now())
		if err != nil {
			w.Fatal(err)
		}
		for _, change := range []func(d *approval.Decision){
			func(d *approval.Decision) { d.By.Name = "eve" },
			func(d *approval.Decision) { d.By.Issuer = "other" },
			func(d *approval.Decision) { d.Message = "other" },
			func(d *approval.Decision) { d.Outcome = approval.Rejected },
			func(d *approval.Decision) { d.Evidence += "A" },
		} {
			changed := d
			change(&changed)
			w.wantErr(w.Decide(w.Context(), a.Name, changed), approval.ErrBadEvidence)
		}
		if err := w.Decide(w.Context(), a.Name, d); err != nil {
			w.Fatal(err)
		}
		w.wantState(a.Name, approval.Approved)
		w.consume(a.ID)
	},
	"evidence of another approval decides nothing": func(w *world) {
		door := newDoor(w, "chat")
		approvers := door.approves(approval.Approvers{SelfApproval: true})
		one, two := w.raise(call(approvers)), w.raise(call(approvers, withTool("other")))
		evidence := door.sign(w, one.ID, nil)
		d := approval.Decision{Outcome: approval.Approved, By: approval.Approver{Type: approval.Attested, Issuer: "chat", Name: "jo"}, Message: "go on", ID: two.ID, Evidence: evidence}
		w.wantErr(w.Decide(w.Context(), two.Name, d), approval.ErrBadEvidence)
		w.wantState(two.Name, approval.Pending)
	},
	"whose call it is must be attested before another user is told apart": func(w *world) {
		door := newDoor(w, "chat")
		ann := func(e map[string]any) { e["user"] = "ann" }
		claimed := w.raise(call(door.approves(approval.Approvers{})))
		signed := w.raise(call(door.approves(approval.Approvers{}), func(c *approval.Call) { c.AttestedBy, c.Tool = "chat", "other" }))
		for a, want := range map[*approval.Approval]error{&claimed: approval.ErrSelfApproval, &signed: nil} {
			d, err := a.Call.Approvers.Read(door.sign(w, a.ID, ann), a.ID, &a.Call, w.clock.Now())
			if err != nil {
				w.Fatal(err)
			}
			if err := w.Decide(w.Context(), a.Name, d); want == nil && err != nil {
				w.Errorf("attested: %v", err)
			} else if want != nil {
				w.wantErr(err, want)
			}
		}
	},
}

// door is a front door that signs.
type door struct {
	name string
	key  ed25519.PrivateKey
	jwk  json.RawMessage
}

func newDoor(w *world, name string) door {
	w.Helper()
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	jwk, err := json.Marshal(jose.JSONWebKey{Key: key.Public()})
	if err != nil {
		w.Fatal(err)
	}
	return door{name, key, jwk}
}

// approves opens the channel of the door for a call.
func (d door) approves(a approval.Approvers) func(*approval.Call) {
	a.Channels = append(a.Channels, approval.ChannelAttested)
	a.Attestors = []approval.Attestor{{Name: d.name, Key: d.jwk}}
	return withApprovers(a)
}

// sign gives evidence that jo approves, unless it is changed.
func (d door) sign(w *world, id string, change func(map[string]any)) string {
	w.Helper()
	payload := map[string]any{"call": id, "namespace": "shop", "outcome": "Approve", "user": "jo", "message": "go on", "iat": noon.Add(time.Second).Unix()}
	if change != nil {
		change(payload)
	}
	data, err := json.Marshal(payload)
	if err != nil {
		w.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: d.key}, (&jose.SignerOptions{}).WithType(approval.EvidenceType))
	if err != nil {
		w.Fatal(err)
	}
	signed, err := signer.Sign(data)
	if err != nil {
		w.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		w.Fatal(err)
	}
	return text
}
