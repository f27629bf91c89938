package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// waveringOllama is a chat model that says allow at temperature 0, and above it allow and block in turn. Sent has the
// temperature of each request, seeds what they asked to draw with.
type waveringOllama struct {
	*httptest.Server
	mu    sync.Mutex
	sent  map[float64]int
	seeds map[int]bool
}

func newWaveringOllama(t *testing.T) *waveringOllama {
	t.Helper()
	s := &waveringOllama{sent: map[float64]int{}, seeds: map[int]bool{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Options struct {
				Temperature float64 `json:"temperature"`
				Seed        int     `json:"seed"`
			} `json:"options"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sent[body.Options.Temperature]++
		s.seeds[body.Options.Seed] = true
		verdict := "allow"
		if body.Options.Temperature > 0 && s.sent[body.Options.Temperature]%2 == 0 {
			verdict = "block"
		}
		_, _ = fmt.Fprintf(w, `{"model":"judge","message":{"role":"assistant","content":"{\"decision\":\"%s\",\"reason\":\"x\"}"},"done":true,"done_reason":"stop","prompt_eval_count":700,"eval_count":40}`, verdict)
	}))
	t.Cleanup(s.Close)
	return s
}

// writeVerdictPolicy writes a policy whose ladder asks about an allow and blocks all else.
func writeVerdictPolicy(t *testing.T, url string) string {
	t.Helper()
	folder := t.TempDir()
	content := `apiVersion: gatewright.dev/v1alpha1
kind: DeciderModel
metadata: {name: judge}
spec:
  runtime: External
  external: {url: "` + url + `", protocol: OllamaVerdict, model: judge}
  allowedNamespaces: {from: All}
  requireVerified: Optional
---
apiVersion: gatewright.dev/v1alpha1
kind: ToolPolicy
metadata: {name: p, namespace: agents}
spec:
  deciderRef: {name: judge}
  classes:
  - name: Write
    decider: Ask
    questions: [verdict]
    thresholds:
    - {when: [{question: verdict, is: allow}], outcome: Confirm, reason: LooksRight}
    otherwise: {outcome: Block, reason: LooksWrong}
  tools:
  - {name: note.write, class: Write}
`
	if err := os.WriteFile(filepath.Join(folder, "p.yaml"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestEvalDrawsAnswersAtATemperature(t *testing.T) {
	cases := writeCases(t)
	for name, test := range map[string]struct {
		args        []string
		temperature float64
		want        []string
		seeds       int
	}{
		"as it is served": {nil, 0, []string{"another outcome in another repeat: 0.0 % (0 of 3", "tokens in: 4200 (700 a request) tokens out: 240"}, 1},
		"drawn":           {[]string{"--temperature", "0.7"}, 0.7, []string{"note: Deciders that write their answers drew them at temperature 0.7", "another outcome in another repeat: 100.0 % (3 of 3", "c (write): Confirm, Block"}, 6},
	} {
		t.Run(name, func(t *testing.T) {
			server := newWaveringOllama(t)
			args := append([]string{"eval", cases, "--manifests", writeVerdictPolicy(t, server.URL), "--caller", "agents/agent", "--configurations", "stacked", "--repeats", "2"}, test.args...)
			out, errs, code := command(t, "", args...)
			if code != exitOK {
				t.Fatalf("exit %d: %s", code, errs)
			}
			for _, want := range test.want {
				if !strings.Contains(oneSpace(out), want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
			if server.sent[test.temperature] != 6 || len(server.sent) != 1 || len(server.seeds) != test.seeds {
				t.Errorf("requests by temperature %v, %d seeds", server.sent, len(server.seeds))
			}
		})
	}
}

func TestEvalRefusesATemperatureThatMeansNothing(t *testing.T) {
	cases, plain := writeCases(t), writePolicy(t)
	secret := writeVerdictPolicy(t, "https://judge.example")
	path := filepath.Join(secret, "p.yaml")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(content), "model: judge}", "model: judge, tokenSecretRef: {name: s}}", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		code int
		want string
	}{
		"nobody writes":        {[]string{"--manifests", plain, "--temperature", "0.7"}, exitUsage, "no decider here writes its answer"},
		"below 0":              {[]string{"--manifests", plain, "--temperature", "-1"}, exitUsage, "want 0 to 2"},
		"above 2":              {[]string{"--manifests", plain, "--temperature", "2.1"}, exitUsage, "want 0 to 2"},
		"no number":            {[]string{"--manifests", plain, "--temperature", "NaN"}, exitUsage, "want 0 to 2"},
		"a gate of somebody":   {[]string{"--url", "http://127.0.0.1:1", "--temperature", "0.7"}, exitUsage, "is not for --url"},
		"a token in a cluster": {[]string{"--manifests", secret, "--temperature", "0.7"}, exitError, "run a proxy on loopback"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs, code := command(t, "", append([]string{"eval", cases, "--caller", "agents/agent"}, test.args...)...)
			if code != test.code || !strings.Contains(errs, test.want) {
				t.Errorf("exit %d: %s", code, errs)
			}
		})
	}
}
