package serve

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/approverapi"
)

func TestTheApproversSecret(t *testing.T) {
	store := approval.NewMemory(clock.RealClock{})
	file := func(content string, mode os.FileMode) string {
		path := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	made := filepath.Join(t.TempDir(), "made")
	first, err := newDesk(made, store, http.NotFoundHandler(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := newDesk(made, store, http.NotFoundHandler(), nil); err != nil || second.approvers[0] != first.approvers[0] {
		t.Errorf("the secret did not stay: %v", err)
	}
	for name, test := range map[string]struct{ path, want string }{
		"others can read it": {file(strings.Repeat("a", 64), 0o640), "chmod 600"},
		"it is short":        {file("hunter2", 0o600), "shorter"},
		"it is empty":        {file("", 0o600), "shorter"},
		"it cannot be made":  {filepath.Join(t.TempDir(), "none", "secret"), "no such file"},
	} {
		if _, err := newDesk(test.path, store, http.NotFoundHandler(), nil); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

func TestOnlyLocalRequestsWithoutTokens(t *testing.T) {
	d, err := newDesk(filepath.Join(t.TempDir(), "secret"), approval.NewMemory(clock.RealClock{}), http.NotFoundHandler(), nil)
	if err != nil {
		t.Fatal(err)
	}
	gate := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	for name, test := range map[string]struct {
		tokens, host, origin string
		want                 int
	}{
		"by address":                          {"", "127.0.0.1:8470", "", http.StatusTeapot},
		"by name":                             {"", "localhost:8470", "", http.StatusTeapot},
		"by IPv6 address":                     {"", "[::1]:8470", "", http.StatusTeapot},
		"from a local page":                   {"", "localhost", "http://localhost:3000", http.StatusTeapot},
		"by a name that was pointed here":     {"", "evil.example:8470", "", http.StatusForbidden},
		"by a name that begins like loopback": {"", "127.0.0.1.evil.example", "", http.StatusForbidden},
		"from a page of another site":         {"", "127.0.0.1:8470", "https://evil.example", http.StatusForbidden},
		"from a page without an origin":       {"", "127.0.0.1:8470", "null", http.StatusForbidden},
		"by any name, with tokens":            {"tokens.csv", "gate.example:8470", "", http.StatusTeapot},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Config{TokenFile: test.tokens}
			r := httptest.NewRequest(http.MethodPost, "/v1alpha1/review", nil)
			r.Host = test.host
			if test.origin != "" {
				r.Header.Set("Origin", test.origin)
			}
			w := httptest.NewRecorder()
			c.routes(gate, d).ServeHTTP(w, r)
			if w.Code != test.want {
				t.Errorf("HTTP %d, want %d", w.Code, test.want)
			}
		})
	}
}

func TestTheDeskRefusesWhatItCannotRead(t *testing.T) {
	store := approval.NewMemory(clock.RealClock{})
	d, err := newDesk(filepath.Join(t.TempDir(), "secret"), store, http.NotFoundHandler(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		body string
		want int
	}{
		"no JSON":           {"x", http.StatusBadRequest},
		"an unknown field":  {`{"outcome":"Approve","by":"me"}`, http.StatusBadRequest},
		"another outcome":   {`{"outcome":"Maybe"}`, http.StatusBadRequest},
		"another case":      {`{"outcome":"approve"}`, http.StatusBadRequest},
		"a novel":           {`{"outcome":"Reject","message":"` + strings.Repeat("x", approverapi.MaxVerdict) + `"}`, http.StatusRequestEntityTooLarge},
		"what is not there": {`{"outcome":"Approve"}`, http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, ApprovalsPath+"/ta-none", strings.NewReader(test.body))
			r.SetPathValue("name", "ta-none")
			w := httptest.NewRecorder()
			d.api().Decide(w, r)
			if w.Code != test.want {
				t.Errorf("HTTP %d %s, want %d", w.Code, w.Body, test.want)
			}
		})
	}
}
