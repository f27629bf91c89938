package main

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckTrustsTheAuthorityThatIsNamed(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(server.Close)
	right := filepath.Join(t.TempDir(), "ca.crt")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(right, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(t.TempDir(), "empty.crt")
	if err := os.WriteFile(empty, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args []string
		want string
	}{
		"a server that nobody vouches for is not asked": {nil, "unknown authority"},
		"a server of the authority is asked":            {[]string{"--ca-file", right}, "HTTP 401"},
		"a file without a certificate is no authority":  {[]string{"--ca-file", empty}, "holds no certificate"},
		"a file that is not there is no authority":      {[]string{"--ca-file", empty + "x"}, "reading the gate's authority"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			out, errs, code := command(t, "", append([]string{"check", "--url", server.URL, "-f", writeCall(t, "kubectl", "kubectl get pods")}, test.args...)...)
			if code != exitError || !strings.Contains(out+errs, test.want) {
				t.Errorf("exit %d, %s%s, want %s", code, out, errs, test.want)
			}
		})
	}
}
