package hosts_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/policy/hosts"
)

var testEntries = []string{
	"good.com", "api.example.com", "*.example.org", "ports.example.net:8443", "https://tls.example.net", "wss://live.example.net",
	"mailto:mail.example.net", "bücher.example", "postgres://db.internal.example", "redis", "custom://c.example.net:99",
	"10.1.2.3", "192.0.2.0/24", "[fd00::1]:8443", "2001:db8::/32", "198.51.100.7:8080",
}

func compile(t testing.TB, entries ...string) *hosts.Hosts {
	t.Helper()
	h, err := hosts.Compile(entries)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

var permitted = map[string]string{
	"a URL":                                  "https://good.com",
	"a URL with a path":                      "https://good.com/a/b?x=1#f",
	"a URL over http":                        "http://good.com/",
	"a URL in upper case":                    "HTTPS://GOOD.COM/A",
	"the default port of https":              "https://good.com:443/",
	"the default port of http":               "http://good.com:80/",
	"a bare host":                            "good.com",
	"a bare host with a path":                "good.com/a?b=c",
	"a bare host at port 443":                "good.com:443",
	"a host with labels":                     "https://api.example.com/v1",
	"one label below a wildcard":             "https://a.example.org",
	"several labels below a wildcard":        "https://a.b.c.example.org",
	"the listed port":                        "https://ports.example.net:8443/x",
	"the listed port without a scheme":       "ports.example.net:8443",
	"the listed scheme":                      "https://tls.example.net",
	"a listed socket scheme":                 "wss://live.example.net/feed",
	"a listed database scheme":               "postgres://db.internal.example/app",
	"a listed database scheme with its port": "postgres://db.internal.example:5432/app",
	"a listed unknown scheme with a port":    "custom://c.example.net:99",
	"a host that is named like a scheme":     "redis:80",
	"an international name":                  "https://bücher.example/x",
	"an international name as ASCII":         "https://xn--bcher-kva.example",
	"an international name in upper ASCII":   "https://XN--BCHER-KVA.example",
	"a listed address":                       "http://10.1.2.3/x",
	"a listed address without a scheme":      "10.1.2.3",
	"an address of a listed network":         "https://192.0.2.77",
	"a listed address at its port":           "http://198.51.100.7:8080",
	"a listed IPv6 address at its port":      "https://[fd00::1]:8443/",
	"an IPv6 address of a listed network":    "https://[2001:db8::5]/",
	"a long form of an IPv6 address":         "https://[2001:0DB8:0:0:0:0:0:5]/",
	"a bare IPv6 address":                    "2001:db8::5",
	"an e-mail address":                      "user@good.com",
	"an e-mail address with a tag":           "first.last+tag@a.example.org",
	"an e-mail address in upper case":        "User@GOOD.com",
	"a mailto URL":                           "mailto:user@good.com",
	"a mailto URL in upper case":             "MAILTO:user@good.com?subject=Hello%20there",
	"a mailto URL with a body of two lines":  "mailto:user@good.com?body=a%0d%0ab",
	"a mail-only host":                       "user@mail.example.net",
	"several recipients":                     "a@good.com, b@api.example.com;c@x.example.org",
	"a trailing separator":                   "a@good.com,",
	"copies":                                 "mailto:a@good.com?cc=b@api.example.com&bcc=c@good.com",
	"an @ in the path of a URL":              "https://good.com/@user/post",
	"an @ in the query of a URL":             "https://good.com/?mail=eve@evil.com",
	"another host in the path":               "https://good.com/wiki/evil.com",
	"other scripts in the path":              "https://good.com/資料",
	"a broken escape in the query":           "https://good.com/?discount=5%",
	"a redirect to an allowed host":          "https://good.com/?next=https://api.example.com/x",
	"an encoded redirect to an allowed host": "https://good.com/?next=https%3A%2F%2Fapi.example.com%2Fx",
	"a redirect to a path":                   "https://good.com/?next=/dashboard&return_to=../home",
	"a redirect to a file":                   "https://good.com/?next=index.html",
	"a redirect to a page number":            "https://good.com/?next=2&target=17",
	"a redirect to a word":                   "https://good.com/?continue=yes&view=list",
	"a redirect without a value":             "https://good.com/?next=&url",
	"a redirect relative to the scheme":      "https://good.com/?next=//tls.example.net/x",
	"a search for another host":              "https://good.com/search?q=https://evil.com",
	"a long value below the limit":           "https://good.com/" + strings.Repeat("a", 8000),
}

func TestCheckAllows(t *testing.T) {
	h := compile(t, testEntries...)
	for name, value := range permitted {
		t.Run(name, func(t *testing.T) {
			if v := h.Check(value); v != nil {
				t.Errorf("Check(%q) = %+v, want nil", value, *v)
			}
		})
	}
}

func TestCheckRefuses(t *testing.T) {
	h := compile(t, testEntries...)
	for code, values := range refused {
		t.Run(string(code), func(t *testing.T) {
			for name, value := range values {
				t.Run(name, func(t *testing.T) {
					v := h.Check(value)
					if v == nil {
						t.Fatalf("Check(%q) = nil, want %s", value, code)
					}
					if v.Code != code {
						t.Errorf("Check(%q) = %+v, want %s", value, *v, code)
					}
					if v.Detail == "" || len(v.Detail) > 80 {
						t.Errorf("detail %q has %d bytes, want 1 to 80", v.Detail, len(v.Detail))
					}
					if strings.Contains(v.Detail, "secret") {
						t.Errorf("detail %q repeats more than the host", v.Detail)
					}
				})
			}
		})
	}
}

func TestDetailNamesTheHostOnly(t *testing.T) {
	h := compile(t, testEntries...)
	tests := map[string]struct{ value, want string }{
		"a URL":          {"https://evil.com/token?key=secret", "evil.com is not allowed"},
		"upper case":     {"https://EVIL.com", "evil.com is not allowed"},
		"an address":     {"http://127.0.0.1/secret", "127.0.0.1 is not a listed address"},
		"a long host":    {"https://" + strings.Repeat("a.", 40) + "evil.com", "...a.a.a.a.a.a.a.evil.com is not allowed"},
		"a port":         {"https://good.com:8080", "good.com is not allowed at this port"},
		"a scheme":       {"http://tls.example.net", "tls.example.net is not allowed with this scheme"},
		"a recipient":    {"a@good.com,secret@evil.com", "a recipient: evil.com is not allowed"},
		"a parameter":    {"https://good.com/?next=//evil.com/secret", "in a parameter: evil.com is not allowed"},
		"a mail address": {"secret@evil.com", "evil.com is not allowed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v := h.Check(tt.value)
			if v == nil {
				t.Fatalf("Check(%q) = nil", tt.value)
			}
			if diff := cmp.Diff(tt.want, v.Detail); diff != "" {
				t.Errorf("detail (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCompileRefuses(t *testing.T) {
	const plainHost = ": write a host such as api.example.com, with a port if needed"
	tests := map[string]struct{ entry, want string }{
		"nothing":                   {"", "is empty, longer than 512 bytes, or holds white space: write one host"},
		"white space":               {"a.com b.com", "is empty, longer than 512 bytes, or holds white space: write one host"},
		"everything":                {"*", "the host is not a valid name" + plainHost},
		"a star inside":             {"a.*.com", "the host is not a valid name" + plainHost},
		"a star in a label":         {"api-*.example.com", "the host is not a valid name" + plainHost},
		"a top-level domain":        {"*.com", "is a wildcard of a top-level domain: name at least two labels after the star"},
		"a path":                    {"good.com/path", "holds a slash and is not a network: remove the path, or write a network such as 10.1.0.0/16"},
		"a slash at the end":        {"https://good.com/", "holds a slash and is not a network: remove the path, or write a network such as 10.1.0.0/16"},
		"a user":                    {"user@good.com", "holds more than a host: remove user, query and fragment"},
		"a query":                   {"good.com?x", "holds more than a host: remove user, query and fragment"},
		"a trailing dot":            {"good.com.", "the host is not a valid name" + plainHost},
		"an underscore":             {"a_b.com", "the host is not a valid name" + plainHost},
		"a port of zero":            {"good.com:0", "the port is not a number from 1 to 65535" + plainHost},
		"a port that is too large":  {"good.com:65536", "the port is not a number from 1 to 65535" + plainHost},
		"an empty port":             {"good.com:", "the port is not a number from 1 to 65535" + plainHost},
		"a decimal address":         {"2130706433", "the host is an address in an unusual notation" + plainHost},
		"a script":                  {"javascript://x", "has a scheme that names no host: use https"},
		"a file":                    {"file://x", "has a scheme that names no host: use https"},
		"a broken scheme":           {"1a://x", "has a scheme that names no host: use https"},
		"an unknown scheme":         {"custom://c.example.net", "has a scheme without a known default port: add the port"},
		"an unknown network scheme": {"custom://10.0.0.0/8", "has a scheme without a known default port: list addresses with their port"},
		"mail with a port":          {"mailto:good.com:25", "has a port, and e-mail has none: remove it"},
		"a wildcard of an address":  {"*.10.1.2.3", "is a wildcard of an address: write a network such as 10.1.0.0/16"},
		"a network with host bits":  {"10.1.2.3/8", "is not the first address of its network: write 10.0.0.0/8"},
		"all addresses":             {"0.0.0.0/0", "allows every address, or is IPv4 written as IPv6: write a smaller, plain network"},
		"all IPv6 addresses":        {"::/0", "allows every address, or is IPv4 written as IPv6: write a smaller, plain network"},
		"a mapped address":          {"::ffff:10.1.2.3", "an IPv4 address is written as IPv6: write the plain address"},
		"a zone":                    {"fe80::1%eth0", "the address has a zone: write the plain address"},
		"a full-width name":         {"ｇｏｏｄ.com", "the host is not written in its canonical form" + plainHost},
		"a broken A-label":          {"xn--a-.com", "the host is not a valid name" + plainHost},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h, err := hosts.Compile([]string{"good.com", tt.entry})
			if err == nil {
				t.Fatalf("Compile(%q) = %v, want an error", tt.entry, h)
			}
			_, reason, _ := strings.Cut(err.Error(), `": `)
			if diff := cmp.Diff(tt.want, reason); diff != "" {
				t.Errorf("reason (-want +got):\n%s", diff)
			}
			if !strings.HasPrefix(err.Error(), "allowed host ") {
				t.Errorf("error %q does not name the entry", err)
			}
		})
	}
	if _, err := hosts.Compile(nil); err == nil {
		t.Error("Compile(nil) succeeds, want an error")
	}
}

func TestNothingCompiledAllowsNothing(t *testing.T) {
	var none *hosts.Hosts
	for name, h := range map[string]*hosts.Hosts{"nil": none, "zero": {}} {
		for value, want := range map[string]hosts.Code{
			"https://good.com": hosts.NotAllowed, "user@good.com": hosts.NotAllowed, "10.1.2.3": hosts.IPLiteral, "fd00::1": hosts.IPLiteral,
		} {
			if v := h.Check(value); v == nil || v.Code != want {
				t.Errorf("%s hosts: Check(%q) = %v, want %s", name, value, v, want)
			}
		}
	}
}

func TestAllowedHostsDoNotAllocate(t *testing.T) {
	h := compile(t, testEntries...)
	for _, value := range []string{
		"https://api.example.com/v1/items?page=2&sort=name", "a.b.example.org", "user@good.com", "https://10.1.2.3/",
		"https://good.com/?next=/dashboard",
	} {
		if got := testing.AllocsPerRun(100, func() { h.Check(value) }); got != 0 {
			t.Errorf("Check(%q) allocates %v times, want 0", value, got)
		}
	}
}
