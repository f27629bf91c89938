package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/deciders"
	"gatewright.dev/gatewright/internal/gate"
	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/testkit"
)

const allowing = `
apiVersion: gatewright.dev/v1alpha1
kind: ToolPolicy
metadata: {name: good, namespace: good}
spec:
  tools: [{name: item.get, class: ReadOnly}]
`

// notCompiling passes the schema and does not compile.
const notCompiling = `
apiVersion: gatewright.dev/v1alpha1
kind: ToolPolicy
metadata: {name: bad, namespace: bad}
spec:
  tools: [{name: item.get, class: ReadOnly, rules: [{name: r, when: "args.x ===", outcome: Block, message: m}]}]
`

// refused does not even pass the schema.
const refused = `
apiVersion: gatewright.dev/v1alpha1
kind: ToolPolicy
metadata: {name: refused, namespace: refused}
spec: {mode: Sometimes}
`

type served struct {
	url, folder, audit string
	log                *testkit.Log
}

func write(t *testing.T, folder, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

const tokens = "good-token-0123456,system:serviceaccount:good:agent,1\nbad-token-01234567,system:serviceaccount:bad:agent,2\n" +
	"refused-token-0123,system:serviceaccount:refused:agent,3\nother-token-012345,system:serviceaccount:other:agent,4\n"

func start(t *testing.T, manifests map[string]string) *served {
	t.Helper()
	folder := t.TempDir()
	for name, content := range manifests {
		write(t, folder, name, content)
	}
	return startIn(t, folder, &testkit.Log{})
}

func startIn(t *testing.T, folder string, log *testkit.Log) *served {
	t.Helper()
	return startWith(t, folder, log, func(*Config) {})
}

func startWith(t *testing.T, folder string, log *testkit.Log, change func(*Config)) *served {
	t.Helper()
	s := &served{folder: folder, log: log}
	work := t.TempDir()
	write(t, work, "tokens.csv", tokens)
	s.audit = filepath.Join(work, "audit.jsonl")
	ctx, cancel := context.WithCancel(t.Context())
	address, done := make(chan net.Addr, 1), make(chan error, 1)
	config := Config{
		Manifests: s.folder, Listen: "127.0.0.1:0", TokenFile: filepath.Join(work, "tokens.csv"), AuditLog: s.audit,
		ApprovalLog: filepath.Join(work, "approvals.jsonl"), ApproverSecret: filepath.Join(work, "secret"), PermitKey: filepath.Join(work, "permit-key.json"), Log: slog.New(slog.NewJSONHandler(s.log, nil)), Version: "test",
		Listening: func(a net.Addr) { address <- a },
	}
	change(&config)
	go func() { done <- Run(ctx, config) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	select {
	case a := <-address:
		s.url = "http://" + a.String()
	case err := <-done:
		t.Fatalf("serving: %v", err)
	}
	return s
}

func (s *served) ask(t *testing.T, namespace string) *review.Response {
	t.Helper()
	return s.askWith(t, namespace, map[string]any{})
}

func (s *served) askWith(t *testing.T, namespace string, arguments map[string]any) *review.Response {
	t.Helper()
	token := map[string]string{"good": "good-token-0123456", "bad": "bad-token-01234567", "refused": "refused-token-0123", "other": "other-token-012345"}[namespace]
	body, err := json.Marshal(review.ToolCallReview{APIVersion: review.APIVersion, Kind: review.Kind, Request: &review.Request{
		UID: uuid.Must(uuid.NewV7()).String(), Tool: review.Tool{Name: "item.get"}, Arguments: arguments,
	}})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+review.Path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var out review.ToolCallReview
	if err := json.NewDecoder(answer.Body).Decode(&out); err != nil || out.Response == nil {
		t.Fatalf("HTTP %d %v", answer.StatusCode, err)
	}
	return out.Response
}

func (s *served) want(t *testing.T, namespace, outcome, reason string) {
	t.Helper()
	if got := s.ask(t, namespace); string(got.Outcome) != outcome || got.Reason != reason {
		t.Errorf("%s: %s %s, want %s %s", namespace, got.Outcome, got.Reason, outcome, reason)
	}
}

func (s *served) eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not happen; the log says:\n%s", what, s.log)
		}
		<-time.After(20 * time.Millisecond)
	}
}

func TestABadPolicyBlocksItsCallersAndNobodyElse(t *testing.T) {
	s := start(t, map[string]string{"good.yaml": allowing, "bad.yaml": notCompiling, "refused.yaml": refused})
	s.want(t, "good", "Allow", "RulesPassed")
	s.want(t, "bad", "Block", "PolicyInvalid")
	s.want(t, "refused", "Block", "PolicyInvalid")
	s.want(t, "other", "Block", "NoPolicy")
	for _, want := range []string{"does not compile", "spec.tools[0].rules[0].when", "refused.yaml", "Sometimes"} {
		if !strings.Contains(s.log.String(), want) {
			t.Errorf("%q is not in the log:\n%s", want, s.log)
		}
	}
}

func TestChangesAreReadAgain(t *testing.T) {
	s := start(t, map[string]string{"good.yaml": allowing})
	s.want(t, "good", "Allow", "RulesPassed")
	write(t, s.folder, "good.yaml", strings.Replace(allowing, "item.get", "item.list", 1))
	s.eventually(t, "the change", func() bool { return s.ask(t, "good").Reason == "UnknownTool" })
	write(t, s.folder, "good.yaml", "not: [valid")
	s.eventually(t, "blocking", func() bool { return s.ask(t, "good").Reason == "PolicyInvalid" })
	write(t, s.folder, "good.yaml", allowing)
	s.eventually(t, "the way back", func() bool { return s.ask(t, "good").Outcome == review.Allow })
	if err := os.Remove(filepath.Join(s.folder, "good.yaml")); err != nil {
		t.Fatal(err)
	}
	s.eventually(t, "the end", func() bool { return s.ask(t, "good").Reason == "NoPolicy" })
}

func TestAChangeIsReadThroughALinkAndWhileTheFolderIsNeverQuiet(t *testing.T) {
	folder, log := t.TempDir(), &testkit.Log{}
	write(t, folder, "good.yaml", allowing)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(folder, link); err != nil {
		t.Fatal(err)
	}
	s := startIn(t, link, log)
	s.want(t, "good", "Allow", "RulesPassed")
	write(t, folder, "good.yaml", strings.Replace(allowing, "item.get", "item.list", 1))
	n := 0
	s.eventually(t, "the change", func() bool {
		n++
		write(t, folder, "noise.txt", strings.Repeat("x", n))
		return s.ask(t, "good").Reason == "UnknownTool"
	})
}

func TestEveryDecisionIsInTheLog(t *testing.T) {
	s := start(t, map[string]string{"good.yaml": allowing})
	first, second := s.ask(t, "good"), s.ask(t, "other")
	s.eventually(t, "the record", func() bool {
		data, err := os.ReadFile(s.audit)
		return err == nil && bytes.Contains(data, []byte(first.Decision.ID)) && bytes.Contains(data, []byte(second.Decision.ID))
	})
	f, err := os.Open(s.audit)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := audit.Verify(f); err != nil {
		t.Error(err)
	}
}

// checkedDecider makes a decider as a source does.
func checkedDecider(m *v1alpha1.DeciderModel) (*gate.ServedDecider, *inference.Guard, error) {
	if err := checkServed(&m.Spec); err != nil {
		return nil, nil, err
	}
	return serveDecider(m, nil, 0)
}

func TestDeciders(t *testing.T) {
	embedded := func(sha, name string) v1alpha1.DeciderModelSpec {
		return v1alpha1.DeciderModelSpec{Runtime: v1alpha1.RuntimeEmbedded, Artifact: &v1alpha1.Artifact{
			Type: v1alpha1.ArtifactBundled, SHA256: v1alpha1.SHA256(sha), Bundled: &v1alpha1.BundledArtifact{Name: name},
		}}
	}
	external := func(protocol v1alpha1.ExternalProtocol, change func(*v1alpha1.ExternalRuntime)) v1alpha1.DeciderModelSpec {
		x := &v1alpha1.ExternalRuntime{URL: "http://127.0.0.1:9", Protocol: protocol, Model: "m", MaxInFlight: 1}
		change(x)
		return v1alpha1.DeciderModelSpec{Runtime: v1alpha1.RuntimeExternal, External: x}
	}
	same := func(*v1alpha1.ExternalRuntime) {}
	tests := map[string]struct {
		spec v1alpha1.DeciderModelSpec
		want string // part of the error; empty: it can be used
	}{
		"the embedded judge":               {embedded(deciders.EmbeddedHash(), inference.EmbeddedName), ""},
		"the embedded judge, another hash": {embedded(strings.Repeat("0", 64), inference.EmbeddedName), "sha256"},
		"another embedded file":            {embedded(deciders.EmbeddedHash(), "other"), "only the bundled"},
		"System One":                       {external(v1alpha1.ProtocolSystemOne, same), ""},
		"llama-server":                     {external(v1alpha1.ProtocolLlamaServer, same), ""},
		"Ollama":                           {external(v1alpha1.ProtocolOllama, same), ""},
		"Ollama with a verdict":            {external(v1alpha1.ProtocolOllamaVerdict, same), ""},
		"OpenAI with a verdict":            {external(v1alpha1.ProtocolOpenAIVerdict, same), ""},
		"temperatures for another model": {func() v1alpha1.DeciderModelSpec {
			spec := embedded(deciders.EmbeddedHash(), inference.EmbeddedName)
			spec.Calibration = &v1alpha1.Calibration{Fingerprint: "f"}
			return spec
		}(), "spec.calibration"},
		"temperatures for the embedded judge": {func() v1alpha1.DeciderModelSpec {
			spec := embedded(deciders.EmbeddedHash(), inference.EmbeddedName)
			spec.Calibration = &v1alpha1.Calibration{Fingerprint: v1alpha1.Fingerprint(inference.EmbeddedFingerprint())}
			return spec
		}(), ""},
		"temperatures whose fingerprint the first answer shows": {func() v1alpha1.DeciderModelSpec {
			spec := external(v1alpha1.ProtocolSystemOne, same)
			spec.Calibration = &v1alpha1.Calibration{Fingerprint: "f"}
			return spec
		}(), ""},
		"a wire nobody knows":                 {external("Morse", same), "not known"},
		"a certificate that is none":          {external(v1alpha1.ProtocolSystemOne, func(x *v1alpha1.ExternalRuntime) { x.CABundle = "x" }), "caBundle"},
		"a secret outside of a cluster":       {external(v1alpha1.ProtocolSystemOne, func(x *v1alpha1.ExternalRuntime) { x.TokenSecretRef = &v1alpha1.SecretReference{Name: "s"} }), "tokenSecretRef"},
		"a runtime this binary does not have": {v1alpha1.DeciderModelSpec{Runtime: v1alpha1.RuntimeContainer}, "not served"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := &v1alpha1.DeciderModel{Spec: test.spec}
			d, guard, err := checkedDecider(m)
			if guard != nil {
				defer guard.Close()
			}
			switch {
			case test.want == "" && (err != nil || d.Decider == nil):
				t.Errorf("got %v", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %q", err, test.want)
			}
			if err == nil && d.Verified != (test.spec.Runtime == v1alpha1.RuntimeEmbedded) {
				t.Errorf("verified: %v", d.Verified)
			}
		})
	}
}

// records returns the lines of the audit log.
func (s *served) records(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile(s.audit)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

func TestAFolderThatIsPutBackIsReadAgain(t *testing.T) {
	s := start(t, map[string]string{"good.yaml": allowing})
	s.want(t, "good", "Allow", "RulesPassed")
	away := s.folder + "-away"
	if err := os.Rename(s.folder, away); err != nil {
		t.Fatal(err)
	}
	s.eventually(t, "noticing", func() bool { return strings.Contains(s.log.String(), "policies in force stay") })
	write(t, away, "good.yaml", strings.Replace(allowing, "item.get", "item.list", 1))
	if err := os.Rename(away, s.folder); err != nil {
		t.Fatal(err)
	}
	s.eventually(t, "reading it again", func() bool { return s.ask(t, "good").Reason == "UnknownTool" })
}

func TestAChangedPolicyHasAnotherGeneration(t *testing.T) {
	s := start(t, map[string]string{"good.yaml": allowing})
	before := s.ask(t, "good").Decision.Policies
	write(t, s.folder, "other.yaml", "# nothing\n")
	write(t, s.folder, "good.yaml", strings.Replace(allowing, "item.get", "item.list", 1))
	s.eventually(t, "the change", func() bool { return s.ask(t, "good").Reason == "UnknownTool" })
	after := s.ask(t, "good").Decision.Policies
	if len(before) != 1 || len(after) != 1 || before[0] != "ToolPolicy/good/good@1" || after[0] != "ToolPolicy/good/good@2" {
		t.Errorf("before %v, after %v", before, after)
	}
}

func TestReadsAreBlockedWhileTheLogIsGone(t *testing.T) {
	s := start(t, map[string]string{"good.yaml": allowing})
	s.want(t, "good", "Allow", "RulesPassed")
	away := s.audit + ".away"
	if err := os.Rename(s.audit, away); err != nil {
		t.Fatal(err)
	}
	s.eventually(t, "blocking", func() bool { return s.ask(t, "good").Reason == "AuditUnavailable" })
	if err := os.Rename(away, s.audit); err != nil {
		t.Fatal(err)
	}
	s.eventually(t, "the way back", func() bool { return s.ask(t, "good").Outcome == review.Allow })
}
