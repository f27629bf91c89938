package serve

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/permit"
)

// TestAPermitOpensTheToolOnce goes the whole way: the gate allows and signs, the tool server fetches the gate's keys and
// lets this very call through, once.
func TestAPermitOpensTheToolOnce(t *testing.T) {
	s := start(t, map[string]string{"good.yaml": strings.Replace(allowing, "class: ReadOnly", "class: ReadOnly, permit: Required, permitAudience: items", 1)})
	got := s.ask(t, "good")
	if got.Outcome != review.Allow || got.Permit == "" {
		t.Fatalf("%s %s, permit %q", got.Outcome, got.Reason, got.Permit)
	}
	keys, err := permit.NewRemoteKeys(permit.RemoteOptions{URL: s.url + permit.JWKSPath, Clock: clock.RealClock{}})
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := permit.NewVerifier(permit.VerifierOptions{Keys: keys, Store: permit.NewMemory(clock.RealClock{}), Clock: clock.RealClock{}})
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	tool := permit.Verify(verifier, "items", permit.ReadJSON(""))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { ran++ }))
	call := func(body string) int {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(permit.Header, got.Permit)
		w := httptest.NewRecorder()
		tool.ServeHTTP(w, r)
		return w.Code
	}
	if code := call(`{"tool":"item.get","arguments":{"id":1}}`); code != http.StatusForbidden || ran != 0 {
		t.Errorf("other arguments: HTTP %d, ran %d times", code, ran)
	}
	if code := call(`{"tool":"item.get","arguments":{}}`); code != http.StatusOK || ran != 1 {
		t.Errorf("the very call: HTTP %d, ran %d times", code, ran)
	}
	if code := call(`{"tool":"item.get","arguments":{}}`); code != http.StatusForbidden || ran != 1 {
		t.Errorf("the same permit again: HTTP %d, ran %d times", code, ran)
	}
}
