package hosts_test

import (
	"math/rand/v2"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/idna"

	"gatewright.dev/gatewright/internal/policy/hosts"
)

// FuzzHosts: the host that the standard library takes from an accepted value is an allowed one, and so is the one that a
// browser takes, as far as its first steps can be written down here.
func FuzzHosts(f *testing.F) {
	for _, values := range refused {
		for _, value := range values {
			if len(value) < 1000 {
				f.Add(value)
			}
		}
	}
	for _, value := range permitted {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) { checkLeadsToAllowed(t, value) })
}

func checkLeadsToAllowed(t *testing.T, value string) (accepted bool) {
	t.Helper()
	h := compile(t, testEntries...)
	v := h.Check(value)
	if diff := cmp.Diff(v, h.Check(value)); diff != "" {
		t.Fatalf("Check(%q) differs the second time:\n%s", value, diff)
	}
	if v != nil {
		if v.Code == "" || v.Detail == "" || len(v.Detail) > 80 {
			t.Fatalf("Check(%q) = %+v, want a code and 1 to 80 bytes", value, *v)
		}
		return false
	}
	for _, host := range readHosts(t, value) {
		if !isAllowed(host) {
			t.Fatalf("Check(%q) accepts what leads to %q", value, host)
		}
	}
	return true
}

// readHosts reads the hosts of an accepted value by means that the package does not use.
func readHosts(t *testing.T, value string) []string {
	t.Helper()
	if _, err := netip.ParseAddr(value); err == nil {
		return []string{value}
	}
	if before, _, found := strings.Cut(value, "://"); found && !strings.ContainsAny(before, "/?#@") {
		u, err := url.Parse(value)
		if err != nil {
			t.Fatalf("Check(%q) accepts what the standard library does not: %v", value, err)
		}
		return []string{u.Hostname(), browserHost(value)}
	}
	list, isMailto := value, false
	if len(value) > 7 && strings.EqualFold(value[:7], "mailto:") {
		list, isMailto = value[7:], true
	}
	if authority := strings.FieldsFunc(list+"/", func(r rune) bool { return strings.ContainsRune("/?#", r) }); isMailto || strings.Contains(authority[0], "@") {
		return mailHosts(t, list, isMailto)
	}
	u, err := url.Parse("//" + value)
	if err != nil {
		t.Fatalf("Check(%q) accepts what the standard library does not: %v", value, err)
	}
	return []string{u.Hostname(), browserHost("https://" + value)}
}

// browserHost follows the URL standard: tabs and newlines go, backslashes are slashes, slashes are skipped, the last @
// ends the user, the host is decoded.
func browserHost(value string) string {
	value = strings.NewReplacer("\t", "", "\n", "", "\r", "", `\`, "/").Replace(strings.TrimSpace(value))
	_, value, _ = strings.Cut(value, ":")
	value = strings.TrimLeft(value, "/")
	if end := strings.IndexAny(value, "/?#"); end >= 0 {
		value = value[:end]
	}
	value = value[strings.LastIndexByte(value, '@')+1:]
	if decoded, err := url.PathUnescape(value); err == nil {
		value = decoded
	}
	if inner, found := strings.CutPrefix(value, "["); found {
		return inner[:strings.IndexByte(inner, ']')]
	}
	host, _, _ := strings.Cut(value, ":")
	return host
}

func mailHosts(t *testing.T, list string, isMailto bool) []string {
	t.Helper()
	if isMailto {
		u, err := url.Parse("mailto:" + list)
		if err != nil {
			return nil // a broken escape in a body: not a URL for this parser
		}
		list, _ = url.PathUnescape(u.Opaque)
		for _, field := range []string{"to", "cc", "bcc"} {
			list += "," + strings.Join(u.Query()[field], ",")
		}
	}
	var found []string
	for _, address := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ';' }) {
		if address = strings.TrimSpace(address); address != "" {
			found = append(found, address[strings.LastIndexByte(address, '@')+1:])
		}
	}
	return found
}

// isAllowed spells testEntries out once more, without schemes and ports.
func isAllowed(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		for _, prefix := range []string{"10.1.2.3/32", "192.0.2.0/24", "fd00::1/128", "2001:db8::/32", "198.51.100.7/32"} {
			if netip.MustParsePrefix(prefix).Contains(addr) {
				return true
			}
		}
		return false
	}
	host = strings.ToLower(host)
	if ascii, err := idna.Punycode.ToASCII(host); err == nil {
		host = ascii
	}
	switch host {
	case "good.com", "api.example.com", "ports.example.net", "tls.example.net", "live.example.net", "mail.example.net",
		"xn--bcher-kva.example", "db.internal.example", "redis", "c.example.net":
		return true
	}
	return strings.HasSuffix(host, ".example.org")
}

// TestSprayedFragments joins hostile fragments at random: whatever is accepted must lead to an allowed host.
func TestSprayedFragments(t *testing.T) {
	fragments := []string{
		"https://", "http:", "//", "/", `\`, "@", ":", "?", "#", "&", ";", ",", ".", "。", "good.com", "evil.com", "a.example.org", "10.1.2.3",
		"[2001:db8::5]", "[", "]", ":443", ":8443", "%40", "%2f", "%2e", "%5c", "%00", "%", "next=", "url=", "mailto:", "cc=", "user",
		" ", "\t", "+", "xn--", "／", "＠", "０", "é", "0x7f", "2130706433", "*",
	}
	starts := []string{"https://good.com", "good.com", "user@good.com", "mailto:user@good.com?", "https://good.com/?next=", ""}
	random := rand.New(rand.NewPCG(1, 2))
	accepted := 0
	for range 20_000 {
		var b strings.Builder
		b.WriteString(starts[random.IntN(len(starts))])
		for range random.IntN(6) {
			b.WriteString(fragments[random.IntN(len(fragments))])
		}
		if checkLeadsToAllowed(t, b.String()) {
			accepted++
		}
	}
	if accepted < 1000 {
		t.Errorf("only %d values were accepted: the property was hardly tested", accepted)
	}
}

// TestEntriesOnlyAddUp: another entry never makes an allowed value forbidden.
func TestEntriesOnlyAddUp(t *testing.T) {
	few := compile(t, testEntries...)
	more := compile(t, append([]string{"http://good.com:1", "other.com", "10.0.0.0/8", "*.com.example"}, testEntries...)...)
	for name, value := range permitted {
		if few.Check(value) == nil && more.Check(value) != nil {
			t.Errorf("%s: %q is allowed by few entries and refused by more", name, value)
		}
	}
}

// TestParametersCannotLoosen: a host that is not allowed stays so whatever parameters follow it.
func TestParametersCannotLoosen(t *testing.T) {
	h := compile(t, testEntries...)
	for _, tail := range []string{"", "/", "/?next=https://good.com", "/?url=good.com", "/#good.com", "?good.com", "/@good.com"} {
		if value := "https://evil.com" + tail; h.Check(value) == nil {
			t.Errorf("Check(%q) = nil", value)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	h := compile(b, testEntries...)
	values := map[string]string{
		"url":           "https://api.example.com/v1/items?page=2&sort=name",
		"wildcard":      "https://a.b.c.example.org/",
		"redirect":      "https://good.com/login?next=%2Fdashboard",
		"mail":          "user@good.com",
		"international": "https://bücher.example/",
		"refused":       "https://good.com@evil.com/",
		"worst":         "https://good.com/?" + strings.Repeat("u=%2525252fa&", 600),
	}
	for name, value := range values {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var v *hosts.Violation
			for b.Loop() {
				v = h.Check(value)
			}
			_ = v
		})
	}
}
