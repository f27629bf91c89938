package approval

import (
	"crypto/ed25519"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"gatewright.dev/gatewright/internal/strictjson"
)

// ApproverType says how the name of an approver is known.
type ApproverType string

// Approver types.
const (
	// KubernetesUser was authenticated by an API server.
	KubernetesUser ApproverType = "KubernetesUser"
	// OIDC holds a token of an issuer.
	OIDC ApproverType = "OIDC"
	// Attested is the end user of a front door that signs.
	Attested ApproverType = "Attested"
	// LocalSecret holds a secret of a gate that is served on one machine.
	LocalSecret ApproverType = "LocalSecret"
)

// Approver is who decided.
type Approver struct {
	Type ApproverType `json:"type"`
	// Issuer of the name, for OIDC and Attested.
	Issuer string `json:"issuer,omitempty"`
	Name   string `json:"name"`
}

// String names an approver in records: type, issuer if there is one, name.
func (a Approver) String() string {
	if a.Issuer == "" {
		return string(a.Type) + ":" + a.Name
	}
	return string(a.Type) + ":" + a.Issuer + "/" + a.Name
}

// Channel is a way in which an approval may be given.
type Channel string

// Channels.
const (
	// ChannelKubernetes is who is known to the API server; on one machine, who holds an approver's secret.
	ChannelKubernetes Channel = "Kubernetes"
	// ChannelOIDC is who holds a token of an issuer that the gate knows.
	ChannelOIDC Channel = "OIDC"
	// ChannelAttested is a front door that signs what its user says.
	ChannelAttested Channel = "Attested"
)

// Approvers says who may approve a call. The zero value lets nobody.
type Approvers struct {
	// SelfApproval lets the user on whose behalf the call is made approve it.
	SelfApproval bool `json:"selfApproval"`
	// Channels that an approval may come through. None: nobody may approve.
	Channels []Channel `json:"channels"`
	// Attestors are the front doors whose signature counts.
	Attestors []Attestor `json:"attestors,omitempty"`
	// Issuers are those whose users count. The gate has checked their tokens.
	Issuers []string `json:"issuers,omitempty"`
}

// Attestor is a front door.
type Attestor struct {
	Name string `json:"name"`
	// Key is its Ed25519 public key as a JSON Web Key.
	Key json.RawMessage `json:"key"`
}

// Check says whether a decision about a call may be made by whom it names. Rejecting is open to everybody whose name is
// known; approving only as the policy says. A decision of an end user is verified by its evidence alone, each time.
func (a Approvers) Check(id string, c *Call, d *Decision, now time.Time) error {
	switch {
	case d.By.Name == "" || d.Outcome != Approved && d.Outcome != Rejected || d.ID != "" && d.ID != id:
		return ErrBadDecision
	case len(d.Message) > MaxMessage || len(d.By.Name) > MaxMessage || len(d.By.Issuer) > MaxMessage || len(d.Evidence) > maxEvidence:
		return ErrTooLarge
	case c.isCaller(d.By.Name):
		return ErrSelfApproval
	}
	channel := ChannelKubernetes
	switch d.By.Type {
	case KubernetesUser, LocalSecret:
	case Attested:
		channel = ChannelAttested
		said, err := a.Read(d.Evidence, id, c, now)
		if err != nil {
			return err
		}
		if said.By != d.By || said.Outcome != d.Outcome || said.Message != d.Message {
			return ErrBadEvidence
		}
	case OIDC:
		channel = ChannelOIDC
		if !slices.Contains(a.Issuers, d.By.Issuer) {
			return ErrChannel
		}
	default:
		return ErrBadDecision
	}
	if d.Outcome == Rejected {
		return nil
	}
	return a.mayApprove(c, d.By, channel)
}

func (a Approvers) mayApprove(c *Call, by Approver, channel Channel) error {
	if !slices.Contains(a.Channels, channel) {
		return ErrChannel
	}
	if a.SelfApproval {
		return nil
	}
	// Whose call it is may be told apart from another user's only if somebody has said so: for the user of a chat, who may be
	// behind the agent, somebody other than the agent; for a user of the issuer at least the agent.
	isUnknown := c.AttestedBy == "" && (by.Type == Attested || by.Type == OIDC && c.OnBehalfOf == "")
	if isUnknown || c.OnBehalfOf != "" && strings.EqualFold(c.OnBehalfOf, by.Name) {
		return ErrSelfApproval
	}
	return nil
}

// EvidenceType is the typ header of evidence, so that nothing that was signed for another purpose is taken for it.
const EvidenceType = "gatewright-approval+jws"

// maxEvidence bounds evidence in bytes.
const maxEvidence = 16 << 10

// maxSkew is how far the clock of a front door may be off.
const maxSkew = time.Minute

// evidence is the payload: what an end user said about one call, and when.
type evidence struct {
	Call      string `json:"call"`
	Namespace string `json:"namespace"`
	Outcome   string `json:"outcome"`
	User      string `json:"user"`
	Message   string `json:"message"`
	IssuedAt  int64  `json:"iat"`
}

// Read gives the decision that evidence stands for: a JWS (EdDSA, typ EvidenceType) by an attestor about this very
// call, made after the call was raised. Anything else is ErrBadEvidence.
func (a Approvers) Read(text, id string, c *Call, now time.Time) (Decision, error) {
	if len(text) > maxEvidence {
		return Decision{}, ErrTooLarge
	}
	signed, err := jose.ParseSignedCompact(text, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil || len(signed.Signatures) != 1 {
		return Decision{}, ErrBadEvidence
	}
	if typ, _ := signed.Signatures[0].Protected.ExtraHeaders[jose.HeaderType].(string); typ != EvidenceType {
		return Decision{}, ErrBadEvidence
	}
	for _, door := range a.Attestors {
		var key jose.JSONWebKey
		if json.Unmarshal(door.Key, &key) != nil {
			continue
		}
		if _, ok := key.Key.(ed25519.PublicKey); !ok {
			continue
		}
		if payload, err := signed.Verify(key); err == nil {
			return readEvidence(payload, door.Name, text, id, c, now)
		}
	}
	return Decision{}, ErrBadEvidence
}

func readEvidence(payload []byte, door, text, id string, c *Call, now time.Time) (Decision, error) {
	var e evidence
	if err := strictjson.Decode(payload, strictjson.Limits{MaxBytes: maxEvidence, MaxDepth: 2}, &e); err != nil {
		return Decision{}, ErrBadEvidence
	}
	namespace, _ := c.Namespace()
	issued := time.Unix(e.IssuedAt, 0)
	outcome := map[string]State{"Approve": Approved, "Reject": Rejected}[e.Outcome]
	isTimely := !issued.Before(c.RaisedAt.Add(-maxSkew)) && !issued.After(now.Add(maxSkew)) && issued.Before(c.ExpiresAt)
	if e.Call != id || e.Namespace != namespace || e.User == "" || outcome == "" || !isTimely {
		return Decision{}, ErrBadEvidence
	}
	return Decision{
		Outcome: outcome, By: Approver{Type: Attested, Issuer: door, Name: e.User}, Message: e.Message, ID: id, Evidence: text,
	}, nil
}
