package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
)

func TestApprovals(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	url := servingWith(t, samples, secret)
	desk := []string{"--url", url, "--approver-secret", secret}
	call := writeCall(t, "kubectl", "kubectl delete pod web-1")
	check := func() *review.Response {
		t.Helper()
		out, errs, _ := command(t, "", "check", "--url", url, "-o", "json", "-f", call)
		var results []checked
		if err := json.Unmarshal([]byte(out), &results); err != nil || len(results) != 1 || results[0].Response == nil {
			t.Fatalf("%v\n%s%s", err, out, errs)
		}
		return results[0].Response
	}
	name := check().Approval.Name

	out, _, code := command(t, "", append([]string{"pending"}, desk...)...)
	if code != exitOK || !strings.Contains(out, name) || !strings.Contains(out, "kubectl delete pod web-1") {
		t.Errorf("pending: exit %d\n%s", code, out)
	}
	out, errs, code := command(t, "no\n", append([]string{"approve", name}, desk...)...)
	if code == exitOK || !strings.Contains(out, `{"command":"kubectl delete pod web-1"}`) || !strings.Contains(errs, "nothing was decided") {
		t.Errorf("approve without a yes: exit %d\n%s%s", code, out, errs)
	}
	if got := check(); got.Outcome != review.Confirm {
		t.Errorf("before anybody approved: %s", got.Outcome)
	}
	if _, errs, code := command(t, "yes\n", append([]string{"approve", name}, desk...)...); code != exitOK {
		t.Fatalf("approve: exit %d %s", code, errs)
	}
	if got := check(); got.Outcome != review.Allow || got.By != "approval:"+name {
		t.Errorf("after the approval: %s by %s", got.Outcome, got.By)
	}
	if got := check(); got.Outcome == review.Allow {
		t.Error("the approval was used twice")
	}
	again := check().Approval.Name
	if _, errs, code := command(t, "", append([]string{"reject", again, "-m", "use the other cluster"}, desk...)...); code != exitOK {
		t.Fatalf("reject: exit %d %s", code, errs)
	}
	if got := check(); got.Outcome != review.Block || !strings.Contains(got.Message, "use the other cluster") {
		t.Errorf("after the rejection: %s %s", got.Outcome, got.Message)
	}
	if _, errs, code := command(t, "", append([]string{"approve", "--yes", again}, desk...)...); code == exitOK || !strings.Contains(errs, "Rejected") {
		t.Errorf("approving what was rejected: exit %d %s", code, errs)
	}
	if _, errs, code := command(t, "", append([]string{"reject", "ta-none"}, desk...)...); code == exitOK || !strings.Contains(errs, "404") {
		t.Errorf("rejecting what is not there: exit %d %s", code, errs)
	}
}

func TestOnlyTheApproversSecretDecides(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	url := servingWith(t, samples, secret)
	info, err := os.Stat(secret)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("secret: %v %v", info, err)
	}
	wrong := filepath.Join(t.TempDir(), "wrong")
	if err := os.WriteFile(wrong, []byte(strings.Repeat("0", 64)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := command(t, "", "pending", "--url", url, "--approver-secret", wrong); code == exitOK || !strings.Contains(errs, "401") {
		t.Errorf("another secret: exit %d %s", code, errs)
	}
	if _, errs, code := command(t, "", "pending", "--url", url, "--approver-secret", "none"); code == exitOK || !strings.Contains(errs, "secret") {
		t.Errorf("no secret: exit %d %s", code, errs)
	}
}

func TestACallThatWaitsIsSafeToPrint(t *testing.T) {
	const hostile = "\x1b[2J\u202e\r"
	a := &approval.Approval{Name: hostile, State: approval.Pending, Call: approval.Call{
		Binding: approval.Binding{Caller: hostile, Tool: hostile, Server: hostile, OnBehalfOf: hostile, ConfirmReasons: []string{hostile}},
		Class:   hostile, Message: hostile, UserRequest: hostile, Arguments: json.RawMessage(`"` + hostile + `"`),
		Sources: map[string]string{"/" + hostile: "Nowhere"}, Answers: map[string]string{hostile: hostile},
	}}
	var out strings.Builder
	if err := errors.Join(printCall(&out, a), printPending(&out, []approval.Approval{*a})); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(out.String(), hostile[:1]+"\u202e\r") {
		t.Errorf("what came with a call reaches the terminal: %q", out.String())
	}
}
