package main

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/serve"
)

// keeping serves a folder with a log in work and keeps calls there, runs do, and ends.
func keeping(t *testing.T, work, manifests string, do func(url string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	address, done := make(chan net.Addr, 1), make(chan error, 1)
	in := func(name string) string { return filepath.Join(work, name) }
	c := serve.Config{
		Manifests: manifests, Listen: "127.0.0.1:0", Caller: "agents/agent", Version: "test", AuditLog: in("audit.jsonl"),
		ApprovalLog: in("approvals.jsonl"), ApproverSecret: in("secret"), PermitKey: in("permit-key.json"),
		Listening: func(a net.Addr) { address <- a },
	}
	c.Audit.Key, c.Audit.Capture = in("audit-key.json"), in("calls")
	go func() { done <- serve.Run(ctx, c) }()
	select {
	case a := <-address:
		do("http://" + a.String())
	case err := <-done:
		t.Fatalf("serving: %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatalf("serving: %v", err)
	}
}

func TestDiffOverAnAuditLog(t *testing.T) {
	keeps := strings.Replace(policyOf("WhenUnsure", "Confirm"), "spec:\n", "spec:\n  captureState: Plain\n", 1)
	asks, allows := folderWith(t, keeps), folderWith(t, strings.Replace(keeps, "Confirm}", "Allow}", 1))
	blocks := folderWith(t, strings.Replace(keeps, "WhenUnsure", "Forbidden", 1))
	work := t.TempDir()
	call := func(url, text string) {
		if out, errs, code := command(t, "", "check", "-f", writeCall(t, "note.write", text), "--url", url); code != exitNotAllow {
			t.Fatalf("exit %d: %s%s", code, out, errs)
		}
	}
	keeping(t, work, asks, func(url string) { call(url, "apples"); call(url, "bananas") })
	log := filepath.Join(work, "audit.jsonl")
	var ids []string
	keeping(t, work, folderWith(t, policyOf("WhenUnsure", "Confirm")), func(url string) {
		call(url, "pears")
		ids = decisionsIn(t, log)
		if _, errs, code := command(t, "", "label", ids[1], "block", "--url", url, "--approver-secret", filepath.Join(work, "secret")); code != exitOK {
			t.Fatalf("exit %d: %s", code, errs)
		}
	})
	kept, empty := filepath.Join(work, "calls"), t.TempDir()
	refused := "1 not judged again: the record holds digests only"
	for name, test := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"nothing changes":                 {[]string{"--left", asks, "--right", asks, "--audit", log, "--capture-dir", kept}, exitOK, []string{"0 of 2 cases change", refused}},
		"it becomes stricter":             {[]string{"--left", asks, "--right", blocks, "--audit", log, "--capture-dir", kept}, exitNotAllow, []string{"2 of 2 cases change, 0 of them dangerously", refused}},
		"a call labelled block would run": {[]string{"--left", asks, "--right", allows, "--audit", log, "--capture-dir", kept}, exitFailed, []string{"2 of 2 cases change, 1 of them dangerously", "labelled block", ids[1], refused}},
		"calls that were not kept":        {[]string{"--left", asks, "--right", allows, "--audit", log, "--capture-dir", empty}, exitError, []string{"no record could be judged", "2 not judged again: the call was not kept", refused}},
		"a log without its calls":         {[]string{"--left", asks, "--right", allows, "--audit", log}, exitUsage, []string{"name a file of cases, or a log"}},
		"a log and cases":                 {[]string{"--left", asks, "--right", allows, "--audit", log, "--capture-dir", kept, "cases.jsonl"}, exitUsage, []string{"name a file of cases, or a log"}},
		"calls without their log":         {[]string{"--left", asks, "--right", allows, "--capture-dir", kept, "cases.jsonl"}, exitUsage, []string{"name a file of cases, or a log"}},
		"neither":                         {[]string{"--left", asks, "--right", allows}, exitUsage, []string{"name a file of cases, or a log"}},
		"a time that is none":             {[]string{"--left", asks, "--right", allows, "--audit", log, "--capture-dir", kept, "--since", "once"}, exitUsage, []string{"since"}},
		"a folder that is not there":      {[]string{"--left", asks, "--right", "none", "--audit", log, "--capture-dir", kept}, exitError, []string{"none"}},
		"only what came later":            {[]string{"--left", asks, "--right", allows, "--audit", log, "--capture-dir", kept, "--since", "2999-01-01T00:00:00Z"}, exitError, []string{"no record could be judged"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, code := command(t, "", append([]string{"diff"}, test.args...)...)
			if code != test.code {
				t.Errorf("exit %d, want %d: %s%s", code, test.code, out, errs)
			}
			for _, want := range test.want {
				if !strings.Contains(out+errs, want) {
					t.Errorf("no %q in\n%.900s%s", want, out, errs)
				}
			}
		})
	}
}

// decisionsIn are the ids of the decisions of a log.
func decisionsIn(t *testing.T, path string) []string {
	t.Helper()
	parts, err := audit.Parts(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	err = audit.QueryParts(t.Context(), parts, audit.Filter{Kind: audit.KindDecision}, func(e audit.Entry) error { out = append(out, e.ID); return nil })
	if err != nil && !errors.Is(err, audit.ErrTorn) || len(out) < 2 { // a gate may be writing the last line
		t.Fatalf("%v, %v", out, err)
	}
	return out
}
