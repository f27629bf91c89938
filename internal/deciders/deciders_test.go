package deciders

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A server of somebody else is asked where a name leads, and the name may lead anywhere at any time.
func TestNoNameLeadsWhereCredentialsAreKept(t *testing.T) {
	dial := newTransport().DialContext
	for address, want := range map[string]string{
		"169.254.169.254:443":      "is link-local",
		"[fe80::1]:443":            "is link-local",
		"[::ffff:169.254.0.1]:443": "is link-local",
		"0.0.0.0:443":              "is no address of one host",
	} {
		conn, err := dial(t.Context(), "tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", address, err, want)
		}
	}
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	conn, err := dial(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatalf("a server on this machine: %v", err)
	}
	_ = conn.Close()
}
