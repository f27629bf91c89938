package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/approverapi"
	"gatewright.dev/gatewright/internal/names"
)

// frontDoor signs what its users say.
type frontDoor struct {
	t   *testing.T
	key ed25519.PrivateKey
}

func newFrontDoor(t *testing.T) frontDoor {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return frontDoor{t, key}
}

func (f frontDoor) publicKey() string {
	data, err := json.Marshal(jose.JSONWebKey{Key: f.key.Public()})
	if err != nil {
		f.t.Fatal(err)
	}
	return string(data)
}

// says is evidence that a user decides about a call.
func (f frontDoor) says(namespace, call, outcome string) string {
	f.t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: f.key}, (&jose.SignerOptions{}).WithType(approval.EvidenceType))
	if err != nil {
		f.t.Fatal(err)
	}
	payload, err := json.Marshal(map[string]any{"call": call, "namespace": namespace, "outcome": outcome, "user": "jo", "message": "do it", "iat": time.Now().Unix()})
	if err != nil {
		f.t.Fatal(err)
	}
	object, err := signer.Sign(payload)
	if err != nil {
		f.t.Fatal(err)
	}
	text, err := object.CompactSerialize()
	if err != nil {
		f.t.Fatal(err)
	}
	return text
}

// post sends a verdict with a token, and gives the status, the code of a refusal and what was shown.
func (g *running) post(t *testing.T, token, name string, v approverapi.Verdict) (status int, code string, shown approverapi.Shown) {
	t.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.url+approverapi.Path+"/"+name, strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	reply, err := g.agent.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	if reply.StatusCode == http.StatusOK {
		if err := json.NewDecoder(reply.Body).Decode(&shown); err != nil {
			t.Fatal(err)
		}
		return reply.StatusCode, "", shown
	}
	var refused review.Error
	if err := json.NewDecoder(reply.Body).Decode(&refused); err != nil {
		t.Fatal(err)
	}
	return reply.StatusCode, refused.Code, shown
}

func testFrontDoor(t *testing.T, w *world, one, two *running) {
	door, stranger := newFrontDoor(t), newFrontDoor(t)
	namespace := w.server.Namespace(t)
	token := w.server.Token(t, namespace, "assistant", names.Audience)
	w.policy(t, namespace, "chat", fmt.Sprintf(`
attestors: [{name: web-chat, publicKey: '%s'}]
classes: [{name: Destructive, channels: [Attested], selfApproval: Allow}]
tools: [{name: files.delete, class: Destructive}]
`, door.publicKey()))
	asked := func(file string) call {
		return call{tool: "files.delete", user: "delete " + file, arguments: map[string]any{"file": file}}
	}
	raise := func(file string) *v1alpha1.ToolApproval {
		t.Helper()
		raised := one.wants(t, token, asked(file), review.Confirm, "Irreversible")
		two.wants(t, token, asked(file), review.Confirm, "ApprovalPending")
		a := &v1alpha1.ToolApproval{}
		if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: raised.Approval.Name}, a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	a, other := raise("notes"), raise("drafts")
	for name, test := range map[string]struct {
		token, name string
		verdict     approverapi.Verdict
		status      int
		code        string
	}{
		"without a token":              {"", a.Name, approverapi.Verdict{Evidence: door.says(namespace, a.Spec.Call.ID, "Approve")}, http.StatusUnauthorized, "Unauthorized"},
		"with one for the API server":  {w.server.Token(t, namespace, "assistant"), a.Name, approverapi.Verdict{Evidence: door.says(namespace, a.Spec.Call.ID, "Approve")}, http.StatusUnauthorized, "Unauthorized"},
		"in one's own name":            {token, a.Name, approverapi.Verdict{Outcome: "Approve", ID: a.Spec.Call.ID}, http.StatusBadRequest, "InvalidField"},
		"in two voices":                {token, a.Name, approverapi.Verdict{Outcome: "Approve", Evidence: door.says(namespace, a.Spec.Call.ID, "Reject")}, http.StatusBadRequest, "InvalidField"},
		"by another front door":        {token, a.Name, approverapi.Verdict{Evidence: stranger.says(namespace, a.Spec.Call.ID, "Approve")}, http.StatusBadRequest, "BadRequest"},
		"about another call":           {token, a.Name, approverapi.Verdict{Evidence: door.says(namespace, other.Spec.Call.ID, "Approve")}, http.StatusBadRequest, "BadRequest"},
		"about another namespace":      {token, a.Name, approverapi.Verdict{Evidence: door.says("default", a.Spec.Call.ID, "Approve")}, http.StatusBadRequest, "BadRequest"},
		"about what nobody has raised": {token, "ta-0", approverapi.Verdict{Evidence: door.says(namespace, a.Spec.Call.ID, "Approve")}, http.StatusNotFound, "NotFound"},
	} {
		if status, code, _ := two.post(t, test.token, test.name, test.verdict); status != test.status || code != test.code {
			t.Errorf("%s: HTTP %d %s, want %d %s", name, status, code, test.status, test.code)
		}
	}
	evidence := door.says(namespace, a.Spec.Call.ID, "Approve")
	status, code, shown := two.post(t, token, a.Name, approverapi.Verdict{Evidence: evidence})
	jo := approval.Approver{Type: approval.Attested, Issuer: "web-chat", Name: "jo"}
	if status != http.StatusOK || shown.State != approval.Approved || shown.Decision.By != jo || len(shown.AlsoPending) > 0 {
		t.Fatalf("HTTP %d %s %+v", status, code, shown)
	}
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(a), a); err != nil || a.Spec.Decision.Evidence != evidence || a.Spec.Decision.By.Type != v1alpha1.ApproverAttested || a.Spec.Decision.At == nil {
		t.Fatalf("%v: %+v", err, a.Spec.Decision)
	}
	if status, code, _ := one.post(t, token, a.Name, approverapi.Verdict{Evidence: door.says(namespace, a.Spec.Call.ID, "Reject")}); status != http.StatusConflict {
		t.Errorf("a second word: HTTP %d %s", status, code)
	}
	one.wants(t, token, asked("notes"), review.Allow, "Approved")

	// What the gate's own account wrote without a signature that holds is not used: it is verified again then.
	at := metav1.Now()
	other.Spec.Decision = &v1alpha1.ApprovalDecision{
		Outcome: v1alpha1.Approve, At: &at, Evidence: stranger.says(namespace, other.Spec.Call.ID, "Approve"),
		By: &v1alpha1.Approver{Type: v1alpha1.ApproverAttested, Issuer: "web-chat", Name: "jo"},
	}
	if err := w.as(t, w.server.ServiceAccount(t, names.Namespace, names.GateServiceAccount)).Update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	one.wants(t, token, asked("drafts"), review.Block, "ApprovalInvalid")
}
