package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// externalManifests let a System One server decide writes.
const externalManifests = `
apiVersion: gatewright.dev/v1alpha1
kind: DeciderModel
metadata: {name: outside}
spec:
  runtime: External
  external: {url: %q, model: decider-1}
  allowedNamespaces: {from: Listed, namespaces: [good]}
  requireVerified: %s
---
apiVersion: gatewright.dev/v1alpha1
kind: ToolPolicy
metadata: {name: good, namespace: good}
spec:
  deciderRef: {name: outside, fingerprint: %q}
  classes:
  - name: Write
    decider: Ask
    questions: [matches_request]
    thresholds: [{when: [{question: matches_request, above: 80}], outcome: Allow, reason: Matches}]
    otherwise: {outcome: Confirm, reason: Unsure}
  tools: [{name: item.get, class: Write}]
`

func TestAnExternalDecider(t *testing.T) {
	var percent atomic.Int64
	percent.Store(95)
	var broken atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Model     string                     `json:"model"`
			Questions map[string]json.RawMessage `json:"questions"`
		}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil || r.URL.Path != "/v1/systemone" || len(q.Questions) != 1 || broken.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"model": q.Model, "answers": map[string]any{"matches_request": map[string]any{"type": "noul", "noul": float64(percent.Load()) / 100}},
		})
	}))
	defer server.Close()
	unpinned := start(t, map[string]string{"a.yaml": fmt.Sprintf(externalManifests, server.URL, "Optional", "sha256:none")})
	unpinned.want(t, "good", "Confirm", "DeciderMismatch")
	fingerprint := unpinned.ask(t, "good").Decision.Fingerprint
	if fingerprint == "" {
		// The call waits for a person already and nobody is asked again; the log has what the decider said of itself.
		fingerprint = recordedFingerprint(t, unpinned)
	}

	s := start(t, map[string]string{"a.yaml": fmt.Sprintf(externalManifests, server.URL, "Optional", fingerprint)})
	s.want(t, "good", "Allow", "Matches")
	percent.Store(50)
	s.want(t, "good", "Confirm", "Unsure")
	percent.Store(700)
	other := start(t, map[string]string{"a.yaml": fmt.Sprintf(externalManifests, server.URL, "Optional", fingerprint)})
	other.want(t, "good", "Confirm", "DeciderBadReply")

	unverified := start(t, map[string]string{"a.yaml": fmt.Sprintf(externalManifests, server.URL, "Required", fingerprint)})
	unverified.want(t, "good", "Confirm", "DeciderNotVerified")

	broken.Store(true)
	gone := start(t, map[string]string{"a.yaml": fmt.Sprintf(externalManifests, server.URL, "Optional", fingerprint)})
	gone.want(t, "good", "Confirm", "DeciderUnreachable")
	elsewhere := start(t, map[string]string{"a.yaml": strings.ReplaceAll(fmt.Sprintf(externalManifests, server.URL, "Optional", fingerprint), "namespaces: [good]", "namespaces: [bad]")})
	elsewhere.want(t, "good", "Confirm", "DeciderNotAllowed")
}

func recordedFingerprint(t *testing.T, s *served) string {
	t.Helper()
	var found string
	s.eventually(t, "the record", func() bool {
		for _, line := range s.records(t) {
			var record struct {
				Fingerprint string `json:"fingerprint"`
			}
			if json.Unmarshal([]byte(line), &record) == nil && record.Fingerprint != "" {
				found = record.Fingerprint
			}
		}
		return found != ""
	})
	return found
}
