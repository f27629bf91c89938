package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatewright.dev/gatewright/internal/deciders"
	"gatewright.dev/gatewright/internal/serve"
)

const samples = "../../config/samples"

const readCallJSON = `{"apiVersion":"review.gatewright.dev/v1alpha1","kind":"ToolCallReview","request":{"uid":"","tool":{"name":"%s"},` +
	`"arguments":{"command":"%s"},"context":{"userRequest":"show me the pods"}}}`

func writeCall(t *testing.T, tool, command string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "call.json")
	content := strings.Replace(strings.Replace(readCallJSON, "%s", tool, 1), "%s", command, 1)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// command runs the command line and returns what it prints and its exit code.
func command(t *testing.T, stdin string, args ...string) (out, errs string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	root := newRoot("gatewright")
	root.SetArgs(args)
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	err := root.ExecuteContext(t.Context())
	if err == nil {
		return stdout.String(), stderr.String(), exitOK
	}
	code = exitError
	if e, ok := errors.AsType[exit](err); ok {
		code = e.code
	}
	return stdout.String(), stderr.String() + err.Error(), code
}

// serving starts a gate on a free port and returns its address.
func serving(t *testing.T, manifests string) string {
	t.Helper()
	return servingWith(t, manifests, filepath.Join(t.TempDir(), "secret"))
}

// servingWith keeps the approver's secret in a file that the test knows.
func servingWith(t *testing.T, manifests, secret string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	address := make(chan net.Addr, 1)
	done := make(chan error, 1)
	work := t.TempDir()
	go func() {
		done <- serve.Run(ctx, serve.Config{
			Manifests: manifests, Listen: "127.0.0.1:0", Caller: "agents/agent", Version: "test",
			AuditLog: filepath.Join(work, "audit.jsonl"), ApprovalLog: filepath.Join(work, "approvals.jsonl"), ApproverSecret: secret,
			PermitKey: filepath.Join(work, "permit-key.json"),
			Listening: func(a net.Addr) { address <- a },
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	select {
	case a := <-address:
		return "http://" + a.String()
	case err := <-done:
		done <- nil
		t.Fatalf("serving: %v", err)
	case <-time.After(3 * time.Minute): // the SQL parsers take long to be ready under the race detector
		t.Fatal("the gate does not listen")
	}
	return ""
}

func TestCheck(t *testing.T) {
	url := serving(t, samples)
	tests := map[string]struct {
		args  []string
		stdin string
		code  int
		want  string
	}{
		"a read is allowed":               {[]string{"-f", writeCall(t, "kubectl", "kubectl get pods")}, "", exitOK, "Allow"},
		"a deletion waits for a person":   {[]string{"-f", writeCall(t, "kubectl", "kubectl delete pod x")}, "", exitNotAllow, "waits for approval"},
		"from standard input":             {[]string{"-f", "-"}, strings.Replace(strings.Replace(readCallJSON, "%s", "nobody", 1), "%s", "x", 1), exitNotAllow, "UnknownTool"},
		"as JSON":                         {[]string{"-o", "json", "-f", writeCall(t, "kubectl", "kubectl get pods")}, "", exitOK, `"outcome": "Allow"`},
		"as YAML":                         {[]string{"-o", "yaml", "-f", writeCall(t, "kubectl", "kubectl get pods")}, "", exitOK, "outcome: Allow"},
		"a file that does not exist":      {[]string{"-f", "none.json"}, "", exitError, "no such file"},
		"a file that is no review":        {[]string{"-f", "-"}, "{}", exitError, "/request is required"},
		"no file":                         {nil, "", exitUsage, "-f is required"},
		"an output that is not known":     {[]string{"-o", "xml", "-f", "-"}, "", exitUsage, "table, json or yaml"},
		"a flag that is not known":        {[]string{"--force"}, "", exitUsage, "unknown flag"},
		"a token file that is not there":  {[]string{"--token-file", "none", "-f", writeCall(t, "kubectl", "kubectl get pods")}, "", exitError, "reading token"},
		"one allowed and one not allowed": {[]string{"-f", writeCall(t, "kubectl", "kubectl get pods"), "-f", writeCall(t, "nobody", "x")}, "", exitNotAllow, "UnknownTool"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			out, errs, code := command(t, test.stdin, append([]string{"check", "--url", url}, test.args...)...)
			if code != test.code || !strings.Contains(out+errs, test.want) {
				t.Errorf("exit %d, want %d and %q in:\n%s%s", code, test.code, test.want, out, errs)
			}
		})
	}
}

func TestCheckWithoutAGate(t *testing.T) {
	out, _, code := command(t, "", "check", "--url", "http://127.0.0.1:1", "-f", writeCall(t, "kubectl", "kubectl get pods"))
	if code != exitError || !strings.Contains(out, "asking the gate") {
		t.Errorf("exit %d:\n%s", code, out)
	}
}

func TestExplain(t *testing.T) {
	out, errs, code := command(t, "", "explain", "--manifests", samples, "--caller", "agents/agent", "-f", writeCall(t, "kubectl", "kubectl get pods"))
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, errs)
	}
	for _, want := range []string{"lowered from Destructive", "ReadOnly", "Allow: RulesPassed", "ToolPolicy/agents/starter"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
	out, _, code = command(t, "", "explain", "-o", "json", "--manifests", samples, "--caller", "nobody/agent", "-f", writeCall(t, "kubectl", "kubectl get pods"))
	var explained serve.Explained
	if err := json.Unmarshal([]byte(out), &explained); code != exitOK || err != nil || explained.Response.Reason != "NoPolicy" {
		t.Errorf("exit %d %v:\n%s", code, err, out)
	}
}

func TestPolicySuites(t *testing.T) {
	junit := filepath.Join(t.TempDir(), "report.xml")
	out, errs, code := command(t, "", "test", "--minimum-coverage", "90", "--junit", junit, filepath.Join(samples, "suites"))
	if code != exitOK || !strings.Contains(out, "four-class-gate") {
		t.Errorf("exit %d:\n%s%s", code, out, errs)
	}
	if report, err := os.ReadFile(junit); err != nil || !bytes.Contains(report, []byte("<testsuite")) {
		t.Errorf("JUnit report: %v %.100s", err, report)
	}
	if _, _, code := command(t, "", "test", "--run", "(", samples); code != exitUsage {
		t.Errorf("exit %d for a regular expression that does not compile", code)
	}
	if _, errs, code := command(t, "", "test", "none"); code != exitError || !strings.Contains(errs, "none") {
		t.Errorf("exit %d %s for a path that does not exist", code, errs)
	}
}

func TestModelPin(t *testing.T) {
	file := filepath.Join(t.TempDir(), "My Model_v1.GGUF")
	if err := os.WriteFile(file, []byte("weights"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := command(t, "", "model", "pin", file)
	sum := fmt.Sprintf("sha256: %x", sha256.Sum256([]byte("weights")))
	if code != exitOK || !strings.Contains(out, "name: my-model-v1") || !strings.Contains(out, "runtime: LlamaCpp") || !strings.Contains(out, sum) {
		t.Errorf("exit %d:\n%s", code, out)
	}
	if !strings.Contains(errs, strings.TrimPrefix(sum, "sha256: ")) {
		t.Errorf("the hash is not on standard error: %s", errs)
	}
	for name, args := range map[string][]string{
		"no file": {"model", "pin", "none.gguf"}, "a folder": {"model", "pin", t.TempDir()}, "plain http": {"model", "pin", "http://example.com/m.gguf"}, "nothing": {"model", "pin"},
	} {
		if _, errs, code := command(t, "", args...); code == exitOK || errs == "" {
			t.Errorf("%s: exit %d %q", name, code, errs)
		}
	}
	out, _, _ = command(t, "", "model", "pin", "embedded")
	sample, err := os.ReadFile(filepath.Join(samples, "deciders.yaml"))
	if err != nil || !strings.Contains(string(sample), deciders.EmbeddedHash()) || !strings.Contains(out, deciders.EmbeddedHash()) {
		t.Errorf("the embedded rule has %s; samples and pin have another hash (%v)", deciders.EmbeddedHash(), err)
	}
}

func TestServeRefusesABadConfiguration(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no manifests":                  {nil, "--manifests is required"},
		"another interface, no tokens":  {[]string{"--manifests", samples, "--listen", "0.0.0.0:0"}, "not loopback"},
		"a name that is not loopback":   {[]string{"--manifests", samples, "--listen", "example.com:80"}, "not loopback"},
		"an address without a port":     {[]string{"--manifests", samples, "--listen", "127.0.0.1"}, "no host:port"},
		"a caller without a namespace":  {[]string{"--manifests", samples, "--caller", "agent"}, "NAMESPACE/NAME"},
		"a caller of three parts":       {[]string{"--manifests", samples, "--caller", "a/b/c"}, "NAMESPACE/NAME"},
		"a token file that is not mine": {[]string{"--manifests", samples, "--token-auth-file", "none"}, "reading tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, errs, code := command(t, "", append([]string{"serve"}, test.args...)...); code == exitOK || !strings.Contains(errs, test.want) {
				t.Errorf("exit %d %q, want %q", code, errs, test.want)
			}
		})
	}
}

func TestVersionAndCompletion(t *testing.T) {
	if out, _, code := command(t, "", "version"); code != exitOK || !strings.Contains(out, version) {
		t.Errorf("exit %d %s", code, out)
	}
	if out, _, code := command(t, "", "--version"); code != exitOK || !strings.Contains(out, version) {
		t.Errorf("--version: exit %d %s", code, out)
	}
	for name, args := range map[string][]string{"approve": {"approve"}, "test": {"test"}, "model pin": {"model", "pin"}, "check": {"check", "call.json"}} {
		if _, errs, code := command(t, "", args...); code != exitUsage || !strings.Contains(errs, "usage is") {
			t.Errorf("%s with wrong arguments: exit %d %s", name, code, errs)
		}
	}
	if out, _, code := command(t, "", "completion", "bash"); code != exitOK || !strings.Contains(out, "gatewright") {
		t.Errorf("exit %d", code)
	}
	if use := newRoot("kubectl-gatewright").Use; use != "kubectl gatewright" {
		t.Errorf("as a kubectl plugin it calls itself %q", use)
	}
}
