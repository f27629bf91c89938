// Package weburl splits a URL as strictly as clients of different make can agree on. What they may read differently is
// refused.
package weburl

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

// MaxLength bounds a URL, in bytes.
const MaxLength = 8 << 10

// Result is a URL in parts.
type Result struct {
	// Parsed tells that the parts below can be trusted. Without it they are empty, and IsIP and IsPrivate are true.
	Parsed bool
	// Why tells why a URL is refused.
	Why string
	// Scheme is in lower case.
	Scheme string
	// Host is in lower case, in ASCII, without brackets and without a dot at the end.
	Host string
	// Port is the scheme's own where the URL has none, and 0 where that is not known.
	Port int64
	// Path is decoded. It holds no dot segments.
	Path string
	// Query is as written, without the question mark.
	Query string
	// Userinfo is what stands before the at sign, encoded.
	Userinfo string
	// IsIP tells that the host is an address.
	IsIP bool
	// IsPrivate tells that the host is not a public address, or a name that is not for the public: one whose end is no
	// public suffix, such as vault.payments, which a cluster looks up among its own services. A public name may still resolve to
	// a private address, and where a namespace is named like a suffix of the Internet (vault.dev), the cluster's comes first.
	IsPrivate bool
}

var defaultPorts = map[string]int64{"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21, "ssh": 22}

// Parse splits an absolute URL with a host.
func Parse(text string) Result {
	if why := unusable(text); why != "" {
		return refused(why)
	}
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" || u.Host == "" || u.Scheme == "" {
		return refused("the text is not an absolute URL with a host")
	}
	r := Result{Parsed: true, Scheme: u.Scheme, Path: u.Path, Query: u.RawQuery}
	if u.User != nil {
		r.Userinfo = u.User.String()
	}
	if hasDotSegments(u) || !utf8.ValidString(u.Path) || strings.ContainsFunc(u.Path, unicode.IsControl) {
		return refused("the path can be read in two ways")
	}
	if why := r.host(u.Hostname(), strings.HasPrefix(u.Host, "[")); why != "" {
		return refused(why)
	}
	if why := r.port(u); why != "" {
		return refused(why)
	}
	return r
}

func refused(why string) Result { return Result{Why: why, IsIP: true, IsPrivate: true} }

// unusable refuses what browsers and libraries are known to treat differently: spaces and control characters, which
// some drop, and backslashes, which some take for slashes.
func unusable(text string) string {
	if len(text) > MaxLength {
		return "the text is too long"
	}
	for _, c := range text {
		if c <= ' ' || c == 0x7f || c == '\\' || c == 0xfffd || c >= 0x80 && c < 0xa1 {
			return "the text holds a space, a control character or a backslash"
		}
	}
	_, after, ok := strings.Cut(text, "://")
	if !ok || strings.HasPrefix(after, "/") {
		return "the text is not an absolute URL with a host"
	}
	authority, _, _ := strings.Cut(after, "/")
	authority, _, _ = strings.Cut(authority, "?")
	authority, _, _ = strings.Cut(authority, "#")
	if strings.Count(authority, "@") > 1 {
		return "the host can be read in two ways"
	}
	return ""
}

// hasDotSegments finds . and .. in the path, and encoded slashes that would make such segments for some servers.
func hasDotSegments(u *url.URL) bool {
	raw := strings.ToLower(u.EscapedPath())
	if strings.Contains(raw, "%2f") || strings.Contains(raw, "%5c") || strings.Contains(raw, "%00") || strings.Contains(raw, "%25") {
		return true
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		name, _, _ := strings.Cut(segment, ";") // some servers drop parameters first
		if name == "." || name == ".." {
			return true
		}
	}
	return false
}

func (r *Result) port(u *url.URL) string {
	text := u.Port()
	if text == "" {
		r.Port = defaultPorts[r.Scheme]
		return ""
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 || strconv.FormatUint(port, 10) != text {
		return "the port is not a number from 1 to 65535"
	}
	r.Port = int64(port)
	return ""
}

// host reads an address or a name. What looks like an address in one of the old forms (octal, hexadecimal, one number)
// is refused.
func (r *Result) host(host string, bracketed bool) string {
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Zone() != "" || addr.Is6() != bracketed {
			return "the address has an unknown form"
		}
		addr = addr.Unmap()
		r.Host, r.IsIP, r.IsPrivate = addr.String(), true, isPrivate(addr)
		return ""
	}
	if strings.ContainsAny(host, "ßςẞ\u200c\u200d") { // which clients turn into other letters, drop or keep
		return "the host can be read in two ways"
	}
	name, err := idna.Lookup.ToASCII(strings.TrimSuffix(host, "."))
	if err != nil || bracketed || name == "" || len(name) > 253 {
		return "the host is not a name"
	}
	labels := strings.Split(name, ".")
	last := labels[len(labels)-1]
	if strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
		return "the host may be an address in an old form"
	}
	r.Host, r.IsPrivate = name, privateName(labels)
	return ""
}

// privateSuffixes end names that the public DNS does not give to the public.
var privateSuffixes = map[string]bool{"localhost": true, "local": true, "internal": true, "svc": true, "lan": true, "home": true, "corp": true, "intranet": true, "localdomain": true, "arpa": true, "test": true, "invalid": true, "onion": true}

func privateName(labels []string) bool {
	last := labels[len(labels)-1]
	if len(labels) == 1 || privateSuffixes[last] {
		return true
	}
	// The list knows every top-level domain. Of some it knows only what stands below, whatever that is.
	_, isListed := publicsuffix.PublicSuffix(last)
	_, isBelowListed := publicsuffix.PublicSuffix("a." + last)
	return !isListed && !isBelowListed && last != "example" // which stands for public names in texts about them
}

// privateRanges are the special-purpose ranges that netip has no predicate for, and the ones that carry an IPv4 address
// inside an IPv6 one.
var privateRanges = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("::/96"),
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("100::/64"),
	netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("fec0::/10"), netip.MustParsePrefix("3fff::/20"), netip.MustParsePrefix("5f00::/16"),
}

func isPrivate(addr netip.Addr) bool {
	for _, p := range privateRanges {
		if p.Contains(addr) {
			return true
		}
	}
	return !addr.IsGlobalUnicast() || addr.IsPrivate()
}
