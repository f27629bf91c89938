package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/evaluation"
	"gatewright.dev/gatewright/internal/serve"
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
	a := &serve.Shown{Approval: approval.Approval{Name: hostile, State: approval.Pending, Call: approval.Call{
		Binding: approval.Binding{Caller: hostile, Tool: hostile, Server: hostile, OnBehalfOf: hostile, Session: hostile, AttestedBy: hostile, ConfirmReasons: []string{hostile}},
		Class:   hostile, Message: hostile, UserRequest: hostile, Arguments: json.RawMessage(`"` + hostile + `"`),
		Sources: map[string]string{"/" + hostile: "Nowhere"}, Answers: map[string]string{hostile: hostile},
		ToolDescription: hostile, EarlierTurns: []string{hostile}, Sensitive: []string{hostile}, InbandClaims: []string{hostile},
		Policies: []string{hostile}, Reasons: []approval.Reason{{Key: hostile, Reason: hostile, Message: hostile}},
	}, Decision: &approval.Decision{By: approval.Approver{Name: hostile}, Message: hostile}}, AlsoPending: []serve.Other{{Name: hostile, Tool: hostile, Message: hostile}}}
	var out strings.Builder
	if err := errors.Join(printCall(&out, a), printPending(&out, []approval.Approval{a.Approval}, time.Now())); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(out.String(), hostile[:1]+"\u202e\r") {
		t.Errorf("what came with a call reaches the terminal: %q", out.String())
	}
}

func TestApproveAsksATerminalOnly(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("y\n"); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	var out strings.Builder
	if err := confirmed(r, &out); err == nil || !strings.Contains(err.Error(), "--yes") || out.Len() != 0 {
		t.Errorf("a pipe was asked %q: %v", out.String(), err)
	}
	for answer, want := range map[string]bool{"y\n": true, "Y\n": true, "yes": true, "": false, "\n": false, "n\n": false, "yy\n": false, "no, yes\n": false} {
		if err := confirmed(strings.NewReader(answer), &out); (err == nil) != want {
			t.Errorf("%q: %v", answer, err)
		}
	}
}

func TestTheSecretThatIsSent(t *testing.T) {
	const secret = "0123456789abcdef0123456789abcdef"
	for name, test := range map[string]struct{ file, want, problem string }{
		"a secret alone":            {secret + "\n", secret, ""},
		"with a name":               {"kim:" + secret + "\n", secret, ""},
		"after a comment":           {"# mine\n\nkim:" + secret, secret, ""},
		"of several people":         {"kim:" + secret + "\nlee:" + secret + "\n", "", "holds 2 secrets"},
		"none":                      {"\n", "", "holds 0 secrets"},
		"of which a digest is left": {"kim:sha256:" + secret + secret, "", "digest of a secret"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "secret")
			if err := os.WriteFile(path, []byte(test.file), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := readSecret(path)
			if got != test.want || (err == nil) != (test.problem == "") || err != nil && !strings.Contains(err.Error(), test.problem) {
				t.Errorf("readSecret = %q, %v", got, err)
			}
		})
	}
}

func TestLabelsExport(t *testing.T) {
	secret, manifests := filepath.Join(t.TempDir(), "secret"), t.TempDir()
	policy := "apiVersion: gatewright.dev/v1alpha1\nkind: ToolPolicy\nmetadata: {name: shell, namespace: agents}\n" +
		"spec: {captureState: Plain, tools: [{name: kubectl, class: Destructive}]}\n"
	if err := os.WriteFile(filepath.Join(manifests, "policy.yaml"), []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	url := servingWith(t, manifests, secret)
	desk := []string{"--url", url, "--approver-secret", secret}
	waiting := func(what string) string {
		t.Helper()
		out, errs, _ := command(t, "", "check", "--url", url, "-o", "json", "-f", writeCall(t, "kubectl", "kubectl delete pod "+what))
		var results []checked
		if err := json.Unmarshal([]byte(out), &results); err != nil || len(results) != 1 || results[0].Response == nil || results[0].Response.Approval == nil {
			t.Fatalf("%v\n%s%s", err, out, errs)
		}
		return results[0].Response.Approval.Name
	}
	for what, verb := range map[string][]string{"good": {"approve", "--yes"}, "bad": {"reject", "-m", "not that one"}} {
		if _, errs, code := command(t, "", append(append(verb, waiting(what)), desk...)...); code != exitOK {
			t.Fatalf("%s: %s", what, errs)
		}
	}
	waiting("undecided")

	out, errs, code := command(t, "", append([]string{"labels", "export"}, desk...)...)
	if code != exitOK || strings.Count(out, "\n") != 2 || strings.Contains(out, "kubectl delete") || strings.Contains(out, "show me") || !strings.Contains(out, `"argumentsDigest":"sha256:`) {
		t.Errorf("digests: exit %d\n%s%s", code, out, errs)
	}
	out, errs, code = command(t, "", append([]string{"labels", "export", "--texts"}, desk...)...)
	if code != exitOK {
		t.Fatalf("texts: exit %d %s", code, errs)
	}
	cases, err := evaluation.ReadCases(strings.NewReader(out), "export")
	if err != nil {
		t.Fatal(err)
	}
	got := map[any]evaluation.Label{}
	for _, c := range cases {
		got[c.Arguments["command"]] = c.Label
	}
	want := map[any]evaluation.Label{"kubectl delete pod good": evaluation.LabelAllow, "kubectl delete pod bad": evaluation.LabelBlock}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLabelsThatAreNoCasesAreRefusedByName(t *testing.T) {
	decided := approval.Approval{Name: "ta-1", ID: "1", Decision: &approval.Decision{Outcome: approval.Approved, By: approval.Approver{Type: approval.LocalSecret, Name: "kim"}},
		Call: approval.Call{Base: "Write", UserRequest: "go", CaptureState: "Plain", Arguments: json.RawMessage(`{"secret":"(9 bytes, sha256:00)"}`)}}
	decided.Call.Tool, decided.Call.ArgumentsDigest = "t", "sha256:of-what-it-was"
	for name, test := range map[string]struct {
		change func(a *approval.Approval)
		want   string
	}{
		"digests in the place of arguments": {func(*approval.Approval) {}, "holds digests only"},
		"turns that were not kept":          {func(a *approval.Approval) { a.Call.OmittedTurns = 3 }, "3 turns"},
		"a class of no name":                {func(a *approval.Approval) { a.Call.Base = "" }, "unknown"},
		"a policy that says nothing":        {func(a *approval.Approval) { a.Call.CaptureState = "" }, "captureState"},
		"a policy that keeps digests":       {func(a *approval.Approval) { a.Call.CaptureState = "Digest" }, "captureState"},
		"arguments that are none":           {func(a *approval.Approval) { a.Call.Arguments = json.RawMessage(`[]`) }, "no JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			a := decided
			test.change(&a)
			var out, errs strings.Builder
			err := exportLabels(&out, &errs, []approval.Approval{a}, true)
			if err == nil || out.Len() != 0 || !strings.Contains(errs.String(), "ta-1 is not exported") || !strings.Contains(errs.String(), test.want) {
				t.Errorf("%v\n%s%s", err, out.String(), errs.String())
			}
		})
	}
}

func TestApproversSeeExactlyWhatRuns(t *testing.T) {
	for name, c := range map[string]struct {
		arguments, message string
		want               []string
		not                string
	}{
		"as a gate sends it":                       {`{"path":"\u003cscript\u003e \u0026 x"}`, "Delete <script>?", []string{`{"path":"<script> & x"}`, "Delete <script>?"}, "beware"},
		"another direction":                        {"{\"path\":\"a\u202egpj.exe\"}", "Delete a\u202egpj.exe?", []string{`{"path":"a\u202egpj.exe"}`, "Delete a‹U+202E›gpj.exe?", "U+202E RIGHT-TO-LEFT OVERRIDE"}, "\ufffd"},
		"what is written as an escape and is seen": {`{"path":"\u0061"}`, "Delete a?", []string{`{"path":"a"}`}, "beware"},
		"a letter of another alphabet":             {"{\"to\":\"p\u0430ypal\"}", "Pay?", []string{"{\"to\":\"p\u0430ypal\"}", "U+0430 is not the character a"}, "\ufffd"},
		"in the name of an argument":               {"{\"p\u200bath\":1}", "Run?", []string{`{"p\u200bath":1}`, "U+200B ZERO WIDTH SPACE"}, "\ufffd"},
		"more than one line":                       {`{"body":"a\nb"}`, "Send a\nb?", []string{`{"body":"a\nb"}`, "Send a‹U+000A›b?"}, "beware"},
	} {
		t.Run(name, func(t *testing.T) {
			a := approval.Approval{Name: "ta-1", State: approval.Pending, Call: approval.Call{
				Binding: approval.Binding{Caller: "shop/agent", Tool: "t"}, Message: c.message, Arguments: json.RawMessage(c.arguments),
			}}
			var full, list strings.Builder
			if err := errors.Join(printCall(&full, &serve.Shown{Approval: a}), printPending(&list, []approval.Approval{a}, time.Now())); err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if !strings.Contains(full.String(), want) {
					t.Errorf("%q is missing:\n%s", want, full.String())
				}
			}
			if strings.Contains(full.String(), c.not) {
				t.Errorf("%q is there:\n%s", c.not, full.String())
			}
			if !strings.Contains(list.String(), c.want[0]) {
				t.Errorf("%q is missing in the list:\n%s", c.want[0], list.String())
			}
		})
	}
}
