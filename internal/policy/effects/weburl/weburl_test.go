package weburl_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/policy/effects/weburl"
)

func TestParse(t *testing.T) {
	tests := map[string]struct {
		text string
		want weburl.Result
	}{
		"a plain URL":               {"https://Example.COM/a?b=c#d", weburl.Result{Scheme: "https", Host: "example.com", Port: 443, Path: "/a", Query: "b=c"}},
		"a port":                    {"http://example.com:8080", weburl.Result{Scheme: "http", Host: "example.com", Port: 8080}},
		"a scheme in upper case":    {"HTTP://example.com/", weburl.Result{Scheme: "http", Host: "example.com", Port: 80, Path: "/"}},
		"an unknown scheme":         {"redis://example.com", weburl.Result{Scheme: "redis", Host: "example.com"}},
		"a user":                    {"https://u:p@example.com", weburl.Result{Scheme: "https", Host: "example.com", Port: 443, Userinfo: "u:p"}},
		"a dot at the end":          {"https://example.com./", weburl.Result{Scheme: "https", Host: "example.com", Port: 443, Path: "/"}},
		"a name in another script":  {"https://bücher.example/", weburl.Result{Scheme: "https", Host: "xn--bcher-kva.example", Port: 443, Path: "/"}},
		"wide letters":              {"https://ｅxample.com/", weburl.Result{Scheme: "https", Host: "example.com", Port: 443, Path: "/"}},
		"an encoded path":           {"https://example.com/a%20b", weburl.Result{Scheme: "https", Host: "example.com", Port: 443, Path: "/a b"}},
		"a public address":          {"http://8.8.8.8/", weburl.Result{Scheme: "http", Host: "8.8.8.8", Port: 80, Path: "/", IsIP: true}},
		"a public long address":     {"http://[2606:4700::1]/", weburl.Result{Scheme: "http", Host: "2606:4700::1", Port: 80, Path: "/", IsIP: true}},
		"this machine":              {"http://127.0.0.1/", weburl.Result{Scheme: "http", Host: "127.0.0.1", Port: 80, Path: "/", IsIP: true, IsPrivate: true}},
		"a wrapped address":         {"http://[::ffff:10.0.0.1]/", weburl.Result{Scheme: "http", Host: "10.0.0.1", Port: 80, Path: "/", IsIP: true, IsPrivate: true}},
		"the metadata address":      {"http://169.254.169.254/latest", weburl.Result{Scheme: "http", Host: "169.254.169.254", Port: 80, Path: "/latest", IsIP: true, IsPrivate: true}},
		"a translated address":      {"http://[64:ff9b::a00:1]/", weburl.Result{Scheme: "http", Host: "64:ff9b::a00:1", Port: 80, Path: "/", IsIP: true, IsPrivate: true}},
		"a carrier's address":       {"http://100.64.0.1/", weburl.Result{Scheme: "http", Host: "100.64.0.1", Port: 80, Path: "/", IsIP: true, IsPrivate: true}},
		"no address":                {"http://0.0.0.0/", weburl.Result{Scheme: "http", Host: "0.0.0.0", Port: 80, Path: "/", IsIP: true, IsPrivate: true}},
		"many machines":             {"http://224.0.0.1/", weburl.Result{Scheme: "http", Host: "224.0.0.1", Port: 80, Path: "/", IsIP: true, IsPrivate: true}},
		"a local unique address":    {"http://[fd00::1]/", weburl.Result{Scheme: "http", Host: "fd00::1", Port: 80, Path: "/", IsIP: true, IsPrivate: true}},
		"a name of this machine":    {"http://localhost/", weburl.Result{Scheme: "http", Host: "localhost", Port: 80, Path: "/", IsPrivate: true}},
		"a name of the cluster":     {"http://db.a.svc/", weburl.Result{Scheme: "http", Host: "db.a.svc", Port: 80, Path: "/", IsPrivate: true}},
		"a local name of a cluster": {"http://db.a.svc.cluster.local/", weburl.Result{Scheme: "http", Host: "db.a.svc.cluster.local", Port: 80, Path: "/", IsPrivate: true}},
		"a short name of a cluster": {"http://vault.payments/", weburl.Result{Scheme: "http", Host: "vault.payments", Port: 80, Path: "/", IsPrivate: true}},
		"a pod of a cluster":        {"http://10-0-0-1.a.pod/", weburl.Result{Scheme: "http", Host: "10-0-0-1.a.pod", Port: 80, Path: "/", IsPrivate: true}},
		"the cluster's own API":     {"http://kubernetes.default/", weburl.Result{Scheme: "http", Host: "kubernetes.default", Port: 80, Path: "/", IsPrivate: true}},
		"a country's name":          {"http://a.co.uk/", weburl.Result{Scheme: "http", Host: "a.co.uk", Port: 80, Path: "/"}},
		"a name of a country whose second level is free": {"http://a.b.ck/", weburl.Result{Scheme: "http", Host: "a.b.ck", Port: 80, Path: "/"}},
		"a host of somebody's platform":                  {"http://a.github.io/", weburl.Result{Scheme: "http", Host: "a.github.io", Port: 80, Path: "/"}},
		"a top-level domain in another script":           {"http://xn--e1afmkfd.xn--p1ai/", weburl.Result{Scheme: "http", Host: "xn--e1afmkfd.xn--p1ai", Port: 80, Path: "/"}},
		"an address for texts":                           {"http://[3fff::1]/", weburl.Result{Scheme: "http", Host: "3fff::1", Port: 80, Path: "/", IsIP: true, IsPrivate: true}},
		"the metadata name":                              {"http://metadata.google.internal/", weburl.Result{Scheme: "http", Host: "metadata.google.internal", Port: 80, Path: "/", IsPrivate: true}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.want.Parsed = true
			if diff := cmp.Diff(test.want, weburl.Parse(test.text)); diff != "" {
				t.Errorf("Parse(%q) (-want +got):\n%s", test.text, diff)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	const (
		noHost    = "the text is not an absolute URL with a host"
		character = "the text holds a space, a control character or a backslash"
		twoHosts  = "the host can be read in two ways"
		twoPaths  = "the path can be read in two ways"
		oldForm   = "the host may be an address in an old form"
		noName    = "the host is not a name"
		noPort    = "the port is not a number from 1 to 65535"
	)
	tests := map[string]struct{ text, wantWhy string }{
		"nothing":                         {"", noHost},
		"no scheme":                       {"example.com/a", noHost},
		"no host":                         {"http:///a", noHost},
		"a relative host":                 {"//example.com/a", noHost},
		"a file":                          {"file:///etc/passwd", noHost},
		"a script":                        {"javascript:alert(1)", noHost},
		"three slashes":                   {"https:///example.com", noHost},
		"a backslash":                     {`https://good.example\@evil.example`, character},
		"a space":                         {" https://example.com", character},
		"a tab in the name":               {"https://exam\tple.com", character},
		"a newline":                       {"https://example.com/\n", character},
		"a broken character":              {"https://example.com/\xff", character},
		"two at signs":                    {"https://a@good.example@evil.example", twoHosts},
		"an encoded letter in the name":   {"https://%65xample.com", noHost},
		"dots in the path":                {"https://example.com/a/../b", twoPaths},
		"encoded dots in the path":        {"https://example.com/a/%2e%2e/b", twoPaths},
		"dots with a parameter":           {"https://example.com/a/..;x/b", twoPaths},
		"an encoded slash":                {"https://example.com/a%2fb", twoPaths},
		"a path that is encoded twice":    {"https://example.com/a%252fb", twoPaths},
		"an overlong dot in the path":     {"https://example.com/a/%c0%ae%c0%ae/b", twoPaths},
		"a line break in the path":        {"https://example.com/a%0d%0ab", twoPaths},
		"a letter that clients replace":   {"https://fa\u00df.example/", twoHosts},
		"one number":                      {"http://2130706433/", oldForm},
		"a hexadecimal number":            {"http://0x7f000001/", oldForm},
		"an octal address":                {"http://0177.0.0.1/", oldForm},
		"a short address":                 {"http://127.1/", oldForm},
		"an address in wide digits":       {"http://１２７.0.0.1/", oldForm},
		"an address with a dot":           {"http://127.0.0.1./", oldForm},
		"an address with a zone":          {"http://[fe80::1%25eth0]/", "the address has an unknown form"},
		"a name in brackets":              {"http://[example.com]/", noHost},
		"an underscore":                   {"http://a_b.example/", noName},
		"a broken name in another script": {"http://xn--a.example/", noName},
		"port zero":                       {"http://example.com:0/", noPort},
		"a port with zeros":               {"http://example.com:0080/", noPort},
		"a large port":                    {"http://example.com:65536/", noPort},
		"too long":                        {"http://example.com/" + strings.Repeat("a", weburl.MaxLength), "the text is too long"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			want := weburl.Result{Why: test.wantWhy, IsIP: true, IsPrivate: true}
			if diff := cmp.Diff(want, weburl.Parse(test.text)); diff != "" {
				t.Errorf("Parse(%q) (-want +got):\n%s", test.text, diff)
			}
		})
	}
}

func FuzzURL(f *testing.F) {
	for _, text := range []string{"https://example.com/a?b#c", "http://[::1]:80/", "http://a@b@c", "http://127.1", "x://é/%2e", "http://a.b.:1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := weburl.Parse(text)
		if diff := cmp.Diff(r, weburl.Parse(text)); diff != "" {
			t.Errorf("splitting twice differs:\n%s", diff)
		}
		if !r.Parsed && (!r.IsPrivate || r.Host != "") || r.Parsed != (r.Why == "") {
			t.Errorf("Parse(%q) = %+v", text, r)
		}
		if r.Parsed && (r.Host == "" || r.Host != strings.ToLower(r.Host) || strings.ContainsAny(r.Host, "@/\\ %[]")) {
			t.Errorf("host = %q", r.Host)
		}
	})
}
