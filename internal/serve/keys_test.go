package serve

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/capture"
	"gatewright.dev/gatewright/internal/permit"
	verifying "gatewright.dev/gatewright/permit"
)

const confirming = `
apiVersion: gatewright.dev/v1alpha1
kind: ToolPolicy
metadata: {name: good, namespace: default}
spec:
  captureState: Encrypted
  tools:
  - {name: item.drop, class: Destructive, permit: Required, permitAudience: items}
  - {name: item.wipe, class: Destructive, permit: Required, permitAudience: items}
`

// approved asks for a call and lets a person approve it.
func (g *auditedGate) approved(t *testing.T, tool string) approval.Approval {
	t.Helper()
	r := g.ask(t, tool)
	if r.Outcome != review.Confirm || r.Approval == nil {
		t.Fatalf("%s: %+v", tool, r)
	}
	status, data := send(t, g.url+ApprovalsPath+"/"+r.Approval.Name, g.secret(t), Verdict{Outcome: "Approve"})
	var shown Shown
	if err := json.Unmarshal(data, &shown); err != nil || status != http.StatusOK {
		t.Fatalf("HTTP %d %s", status, data)
	}
	return shown.Approval
}

// used asks for an approved call and gives the kid of its permit.
func (g *auditedGate) used(t *testing.T, tool string) (token, kid string) {
	t.Helper()
	r := g.ask(t, tool)
	if r.Outcome != review.Allow || r.Permit == "" {
		t.Fatalf("%s: %s %s", tool, r.Outcome, r.Reason)
	}
	head, _, _ := strings.Cut(r.Permit, ".")
	data, err := base64.RawURLEncoding.DecodeString(head)
	var h struct{ KID string }
	if err == nil {
		err = json.Unmarshal(data, &h)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r.Permit, h.KID
}

func sealedBy(a approval.Approval) string {
	kid, _, _ := strings.Cut(a.Seal, ".")
	return kid
}

// rotateAll puts a new key into each file of a gate. It gives their names.
func rotateAll(t *testing.T, seal, permits, log, calls string) map[string]string {
	t.Helper()
	seals, err := approval.LoadSeals(seal, clock.RealClock{})
	if err == nil {
		err = seals.Keys().Rotate(0, seals.Keys().MinOverlap())
	}
	if err != nil {
		t.Fatal(err)
	}
	keys, err := permit.LoadKeys(permits, clock.RealClock{})
	if err == nil {
		err = keys.Rotate(0, keys.Ring().MinOverlap())
	}
	if err != nil {
		t.Fatal(err)
	}
	auditKID, err := audit.RotateKeys(log, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	captureKID, err := capture.RotateKey(calls)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{"seal-key": seals.Keys().KeyIDs()[0], "permit-key": keys.Ring().KeyIDs()[0], "audit-key": auditKID, "capture-key": captureKID}
}

func TestKeysAreRotatedWhileTheGateRuns(t *testing.T) {
	work := t.TempDir()
	in := func(name string) string { return filepath.Join(work, name) }
	if _, err := capture.MakeKey(in("calls-key")); err != nil {
		t.Fatal(err)
	}
	g := startAudited(t, work, confirming, func(c *Config) { c.Audit.CaptureKey, c.SealKey = in("calls-key.pub"), in("seal-key") })
	before := g.approved(t, "item.drop")
	first := g.approved(t, "item.wipe")
	oldPermit, oldKID := g.used(t, "item.wipe")
	if sealedBy(before) != sealedBy(first) {
		t.Fatal("two keys seal before any was rotated")
	}

	next := rotateAll(t, in("seal-key"), in("permit-key.json"), in("audit-key.json"), in("calls-key"))
	deadline := time.Now().Add(20 * time.Second)
	for _, kid := range next {
		for !strings.Contains(g.log.String(), kid) {
			if time.Now().After(deadline) {
				t.Fatalf("not all of %v are in the log:\n%s", next, g.log)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}

	_, kid := g.used(t, "item.drop") // sealed by the old key, approved before
	if kid != next["permit-key"] || kid == oldKID {
		t.Errorf("the permit is signed by %s, want %s", kid, next["permit-key"])
	}
	if after := g.approved(t, "item.wipe"); sealedBy(after) != next["seal-key"] || sealedBy(after) == sealedBy(first) {
		t.Errorf("a new approval is sealed by %s, want %s", sealedBy(after), next["seal-key"])
	}
	remote, err := verifying.NewRemoteKeys(verifying.RemoteOptions{URL: g.url + verifying.JWKSPath, Clock: clock.RealClock{}})
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := verifying.NewVerifier(verifying.VerifierOptions{Keys: remote, Store: verifying.NewMemory(clock.RealClock{}), Clock: clock.RealClock{}})
	if err != nil {
		t.Fatal(err)
	}
	call := verifying.Call{Audience: "items", Tool: "item.wipe", Arguments: map[string]any{"id": "7", "to": "shop"}}
	if _, err := verifier.Verify(t.Context(), oldPermit, call); err != nil {
		t.Errorf("a permit of the old key: %v", err)
	}
	if err := g.stop(); err != nil {
		t.Fatal(err)
	}
	checkRotatedLog(t, g, in("audit-key.json"), next["audit-key"])
	checkRotatedCalls(t, g, in("calls-key"))
}

// checkRotatedLog checks that the log is whole, and that its end is signed by the new key.
func checkRotatedLog(t *testing.T, g *auditedGate, path, kid string) {
	t.Helper()
	keys, err := audit.ReadPublicKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(g.work, "audit.jsonl")
	outside, err := audit.ReadCheckpoints(log + audit.CheckpointSuffix)
	if err != nil {
		t.Fatal(err)
	}
	v, err := audit.NewVerifier(audit.Evidence{Keys: keys, Checkpoints: outside})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := v.Part(f); err != nil {
		t.Error(err)
	}
	if s, err := v.End(); err != nil || s.Signed != s.Head.Seq {
		t.Errorf("%+v, %v", s, err)
	}
	signed := g.records(t, audit.Filter{Kind: audit.KindCheckpoint})
	if last := signed[len(signed)-1].Checkpoint.KID; last != kid {
		t.Errorf("the end of the log is signed by %s, want %s", last, kid)
	}
}

// checkRotatedCalls reads what was kept before and after with the file of today.
func checkRotatedCalls(t *testing.T, g *auditedGate, path string) {
	t.Helper()
	store, err := capture.Open(filepath.Join(g.work, "calls"), capture.Options{Identity: path})
	if err != nil {
		t.Fatal(err)
	}
	read := map[string]bool{}
	for _, r := range g.records(t, audit.Filter{Kind: audit.KindDecision}) {
		if r.Captured != "Encrypted" {
			t.Errorf("%s is kept as %q", r.ID, r.Captured)
		}
		if _, err := store.Get(r.StateDigest); err != nil {
			t.Errorf("%s: %v", r.ID, err)
		}
		read[r.StateDigest] = true
	}
	if len(read) < 2 {
		t.Errorf("%d calls are kept, want one of each tool", len(read))
	}
}
