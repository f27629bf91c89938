package main

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/deciders"
	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/names"
	"gatewright.dev/gatewright/internal/pki"
)

const evaluatedLadder = `
apiVersion: gatewright.dev/v1alpha1
kind: ToolPolicy
metadata: {name: ladder, namespace: any}
spec:
  classes:
  - name: Write
    decider: Ask
    questions: [matches_request]
    thresholds:
    - when: [{question: matches_request, above: 80}]
      outcome: Allow
    otherwise: {outcome: Confirm, reason: Unsure}
`

// evaluatedCases are two that the user asked for and two that nobody did; the scripted decider gets one of each wrong.
func evaluatedCases() string {
	var out strings.Builder
	for i, c := range []struct{ request, label string }{{"surely", "allow"}, {"hardly", "allow"}, {"surely", "block"}, {"hardly", "block"}} {
		fmt.Fprintf(&out, `{"id":"c%d","source":"s","userRequest":%q,"conversation":[],"tool":{"name":"note.write"},"arguments":{"text":"x"},"class":"write","label":%q,"why":"w"}`+"\n", i, c.request, c.label)
	}
	return out.String()
}

// revisionServer answers like the decider server of this project, to callers with a certificate. Change is given the number
// of the request and may change the answer.
func revisionServer(t *testing.T, folder string, change func(n int64, answer map[string]any) int) (url string) {
	t.Helper()
	authority, err := pki.NewAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	issue := func(r pki.Request) map[string][]byte {
		data, err := authority.Issue(time.Now(), r)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	client := issue(pki.Request{Name: "evaluator", Usage: x509.ExtKeyUsageClientAuth})
	for _, key := range []string{pki.KeyCertificate, pki.KeyPrivate, pki.KeyCA} {
		write(t, filepath.Join(folder, key), string(client[key]))
	}
	served := issue(pki.Request{Name: "decider", DNSNames: []string{names.DeciderServerName}, Usage: x509.ExtKeyUsageServerAuth})
	pair, err := tls.X509KeyPair(served[pki.KeyCertificate], served[pki.KeyPrivate])
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority.Bundle())
	var asked atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var request struct {
			Questions map[string]any `json:"questions"`
		}
		if err := json.Unmarshal(body, &request); err != nil {
			t.Error(err)
		}
		p, answers := 0.1, map[string]any{}
		if strings.Contains(string(body), "surely") {
			p = 0.9
		}
		for name := range request.Questions {
			answers[name] = map[string]any{"type": "noul", "noul": p}
		}
		answer := map[string]any{"model": "judge", "fingerprint": "sha256:" + strings.Repeat("1", 64), "answers": answers, "usage": map[string]any{"input_tokens": 10, "output_tokens": 1}}
		if status := change(asked.Add(1), answer); status != 0 {
			w.WriteHeader(status)
			return
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func TestARevisionIsEvaluatedByItsOwnAnswers(t *testing.T) {
	fine := func(int64, map[string]any) int { return 0 }
	counted := &v1alpha1.DeciderEvaluationStatus{
		Fingerprint: v1alpha1.Fingerprint("sha256:" + strings.Repeat("1", 64)),
		Confusion:   []v1alpha1.ClassConfusion{{Class: "Write", DangerousStopped: 1, DangerousAllowed: 1, BenignStopped: 1, BenignAllowed: 1}},
	}
	tests := map[string]struct {
		change func(int64, map[string]any) int
		flags  map[string]string
		want   *v1alpha1.DeciderEvaluationStatus
		err    string
	}{
		"a decider that answers": {change: fine, want: counted},
		"answers that change from one repeat to the next": {change: func(n int64, a map[string]any) int {
			if n > 5 { // one asks who it is, four are the first repeat
				for _, one := range a["answers"].(map[string]any) {
					one.(map[string]any)["noul"] = 0.9
				}
			}
			return 0
		}, want: &v1alpha1.DeciderEvaluationStatus{Fingerprint: counted.Fingerprint, Confusion: counted.Confusion, Flapped: 2}},
		"other cases than were named":   {change: fine, flags: map[string]string{"cases-sha256": strings.Repeat("0", 64)}, err: "reading the cases: cases.jsonl has SHA-256"},
		"another ladder than was named": {change: fine, flags: map[string]string{"ladder-sha256": strings.Repeat("0", 64)}, err: "reading the ladder: ladder.yaml has SHA-256"},
		"a decider that becomes another": {change: func(n int64, a map[string]any) int {
			if n > 3 {
				a["fingerprint"] = "sha256:" + strings.Repeat("2", 64)
			}
			return 0
		}, err: "no case needed the decider, or several deciders answered"},
		"a decider that is another from the first case on": {change: func(n int64, a map[string]any) int {
			if n > 1 {
				a["fingerprint"] = "sha256:" + strings.Repeat("2", 64)
			}
			return 0
		}, err: "the decider changed from sha256:1111"},
		"a decider that gives no answer": {change: func(n int64, _ map[string]any) int {
			if n > 1 {
				return http.StatusInternalServerError
			}
			return 0
		}, err: "the decider gave no answer to"},
		"a decider that is away":            {change: func(int64, map[string]any) int { return http.StatusInternalServerError }, err: "asking the decider who it is"},
		"a decider of another name":         {change: func(_ int64, a map[string]any) int { a["model"] = "other"; return 0 }, err: "asking the decider who it is"},
		"a decider without our certificate": {change: fine, flags: map[string]string{"ca": "none"}, err: "reading the authority"},
		"no place for the result":           {change: fine, flags: map[string]string{"result": ""}, err: "--result and --decider are required"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			in := func(name string) string { return filepath.Join(folder, name) }
			write(t, in("spec.json"), `{"runtime":"LlamaCpp","contextTokens":4096,"artifact":{"type":"Bundled","sha256":"`+strings.Repeat("a", 64)+`","bundled":{"name":"j"}}}`)
			write(t, in("cases.jsonl"), evaluatedCases())
			write(t, in("ladder.yaml"), evaluatedLadder)
			flags := map[string]string{
				"decider": "judge", "spec": in("spec.json"), "endpoint": revisionServer(t, folder, test.change), "tls-cert": in(pki.KeyCertificate),
				"tls-key": in(pki.KeyPrivate), "ca": in(pki.KeyCA), "cases": in("cases.jsonl"), "cases-sha256": hashOf(evaluatedCases()),
				"ladder-sha256": hashOf(evaluatedLadder), "repeats": "2", "result": in("result"),
			}
			maps.Copy(flags, test.flags)
			checkRevision(t, flags, test.want, test.err)
		})
	}
}

func checkRevision(t *testing.T, flags map[string]string, want *v1alpha1.DeciderEvaluationStatus, wantErr string) {
	t.Helper()
	args := []string{"gatewright", "evaluate-revision"}
	for k, v := range flags {
		args = append(args, "--"+k+"="+v)
	}
	err := run(t.Context(), args)
	if (err == nil) != (wantErr == "") || err != nil && !strings.HasPrefix(err.Error(), wantErr) {
		t.Fatalf("%v, want %q", err, wantErr)
	}
	text, readErr := os.ReadFile(flags["result"])
	if err != nil {
		if readErr == nil {
			t.Errorf("a run that failed left %s", text)
		}
		return
	}
	var got v1alpha1.DeciderEvaluationStatus
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.P95Milliseconds < 1 || got.P50Milliseconds > got.P95Milliseconds || got.P95Milliseconds > got.P99Milliseconds {
		t.Errorf("%+v", got)
	}
	got.P50Milliseconds, got.P95Milliseconds, got.P99Milliseconds = 0, 0, 0
	if diff := cmp.Diff(want, &got); diff != "" {
		t.Error(diff)
	}
}

func TestTheEmbeddedJudgeIsEvaluatedWithoutAnAddress(t *testing.T) {
	folder := t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	write(t, in("spec.json"), `{"runtime":"Embedded","artifact":{"type":"Bundled","sha256":"`+deciders.EmbeddedHash()+`","bundled":{"name":"`+inference.EmbeddedName+`"}}}`)
	write(t, in("cases.jsonl"), evaluatedCases())
	checkRevision(t, map[string]string{
		"decider": "judge", "spec": in("spec.json"), "cases": in("cases.jsonl"), "cases-sha256": hashOf(evaluatedCases()), "result": in("result"),
	}, &v1alpha1.DeciderEvaluationStatus{
		Fingerprint: v1alpha1.Fingerprint(inference.EmbeddedFingerprint()),
		Confusion:   []v1alpha1.ClassConfusion{{Class: "Write", DangerousStopped: 2, BenignStopped: 2}}, // "x" stands nowhere in the requests
	}, "")
}
