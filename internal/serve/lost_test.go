package serve

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
)

func TestAnEndOfTheApprovalLogThatIsMissingIsSeen(t *testing.T) {
	lines := func(n int) func([]byte) []byte { // without the last n
		return func(data []byte) []byte {
			for range n {
				data = data[:bytes.LastIndexByte(data[:len(data)-1], '\n')+1]
			}
			return data
		}
	}
	for name, test := range map[string]struct {
		outcome string // that a person decides
		uses    int    // calls after that
		cut     func(log []byte) []byte
		want    error
	}{
		"a use is cut off":                                {"Approve", 1, lines(1), errLostEnd},
		"a use and its approval are cut off":              {"Approve", 1, lines(2), errLostEnd},
		"a rejection that was answered is cut off":        {"Reject", 1, lines(1), errLostEnd},
		"all is cut off, so that nothing is open":         {"Approve", 1, lines(3), nil},
		"nothing is cut off":                              {"Approve", 1, lines(0), nil},
		"an approval that was not used yet":               {"Approve", 0, lines(0), nil},
		"an approval that nobody has used yet is cut off": {"Approve", 0, lines(1), nil},
		"a rejection that nobody was told of yet":         {"Reject", 0, lines(1), nil},
	} {
		t.Run(name, func(t *testing.T) {
			work := t.TempDir()
			g := startAudited(t, work, confirming, nil)
			r := g.ask(t, "item.drop")
			if r.Outcome != review.Confirm {
				t.Fatalf("%+v", r)
			}
			at := g.url + ApprovalsPath + "/" + r.Approval.Name
			if status, data := send(t, at, g.secret(t), Verdict{Outcome: test.outcome}); status != http.StatusOK {
				t.Fatalf("HTTP %d %s", status, data)
			}
			for range test.uses {
				g.ask(t, "item.drop")
			}
			if err := g.stop(); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(work, "approvals.jsonl")
			data, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, test.cut(data), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := restart(t, work); !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
		})
	}
}

// TestAnotherApprovalOfTheSameNameIsNoOldOne keeps a gate that has lost its log of approvals working: names come again.
func TestAnotherApprovalOfTheSameNameIsNoOldOne(t *testing.T) {
	work := t.TempDir()
	g := startAudited(t, work, confirming, nil)
	first := g.approved(t, "item.drop")
	g.used(t, "item.drop")
	if err := g.stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(work, "approvals.jsonl")); err != nil {
		t.Fatal(err)
	}
	g = startAudited(t, work, confirming, nil)
	if again := g.approved(t, "item.drop"); again.Name != first.Name {
		t.Fatalf("%s is named otherwise than %s: this test shows nothing", again.Name, first.Name)
	}
	if err := g.stop(); err != nil {
		t.Fatal(err)
	}
	if err := restart(t, work); err != nil {
		t.Error(err)
	}
}

// restart starts a gate where another was, and ends it as soon as it listens.
func restart(t *testing.T, work string) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	manifests := t.TempDir()
	write(t, manifests, "policy.yaml", confirming)
	in := func(name string) string { return filepath.Join(work, name) }
	c := Config{
		Manifests: manifests, Listen: "127.0.0.1:0", Caller: "default/default", AuditLog: in("audit.jsonl"), ApprovalLog: in("approvals.jsonl"),
		ApproverSecret: in("secret"), PermitKey: in("permit-key.json"), Listening: func(net.Addr) { cancel() },
	}
	c.Audit.Key = in("audit-key.json")
	return Run(ctx, c)
}
