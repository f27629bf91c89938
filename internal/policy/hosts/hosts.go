// Package hosts decides whether a URL, host name or e-mail address that a call names leads to a host that a policy allows.
//
// It compares names and never resolves them: an allowed name that resolves to an inner address cannot be seen here, and
// neither can a redirect that the allowed host answers with. Those are for the network's own policy.
//
// A value is allowed only if every parser would take the same host from it. What parsers are known to disagree about
// (userinfo, backslashes, odd notations of addresses, encoded hosts) is refused, not interpreted.
package hosts

import (
	"net/netip"
	"strings"
	"unicode"

	"gatewright.dev/gatewright/internal/policy/paths/plain"
)

// Code says in which way a value is refused.
type Code string

const (
	// NotAllowed: a well-formed host that no entry allows.
	NotAllowed Code = "NotAllowed"
	// Malformed: parsers disagree on where the host is, or there is none.
	Malformed Code = "Malformed"
	// NotText: white space, control or invisible characters, or bytes that are not UTF-8.
	NotText Code = "NotText"
	// TooLong: the value has more than MaxLength bytes.
	TooLong Code = "TooLong"
	// Userinfo: a user name before the host.
	Userinfo Code = "Userinfo"
	// IPLiteral: an address that no entry lists, or one in an unusual notation.
	IPLiteral Code = "IPLiteral"
	// Scheme: a scheme that the host's entries do not allow, or one that names no host.
	Scheme Code = "Scheme"
	// Port: a port that the host's entries do not allow, or one that is not a number.
	Port Code = "Port"
	// Lookalike: an internationalised name that no entry allows or that is not in its canonical form.
	Lookalike Code = "Lookalike"
	// RedirectParameter: a parameter that sends the caller on to a host that is not allowed.
	RedirectParameter Code = "RedirectParameter"
	// Recipient: one of several recipients is not allowed.
	Recipient Code = "Recipient"
)

// MaxLength is the longest value in bytes that is looked at; servers and browsers commonly stop at 8 KiB as well.
const MaxLength = 8 << 10

// Violation says why a value is refused. Detail has at most 80 bytes and repeats at most the host.
type Violation struct {
	Code   Code
	Detail string
}

// Hosts is a compiled set of allowed hosts. It is immutable and safe for concurrent use; the zero value allows nothing.
type Hosts struct {
	exact    map[string][]rule
	below    map[string][]rule // "*.example.com" by "example.com"
	networks []network
}

// Check returns nil if every host that value leads to is allowed.
func (h *Hosts) Check(value string) *Violation {
	w := walk{hosts: h, steps: maxSteps}
	return w.check(value)
}

// walk is one Check: a value may carry further values in its parameters, which share one bound.
type walk struct {
	hosts *Hosts
	steps int
}

func (w *walk) check(value string) *Violation {
	if v := inspectText(value); v != nil {
		return v
	}
	if strings.Count(value, ":") > 1 {
		// Without brackets an IPv6 address looks like a scheme or a port, so it is looked for first.
		if addr, err := netip.ParseAddr(value); err == nil {
			return w.checkAddress(addr)
		}
	}
	scheme, rest, v := cutScheme(value)
	if v != nil {
		return v
	}
	if scheme == "mailto" {
		return w.hosts.checkMailto(rest)
	}
	if scheme == "" && strings.HasPrefix(rest, "/") {
		if strings.HasPrefix(rest, "//") {
			return &Violation{Scheme, "the URL has no scheme: begin it with https://"}
		}
		return &Violation{Malformed, "the value is a path and names no host"}
	}
	if authority, _ := cutAuthority(rest); scheme == "" && strings.Contains(authority, "@") {
		// Without a scheme "a@b" is an address and not userinfo; both readings lead to b.
		return w.hosts.checkRecipients(rest)
	}
	return w.checkLocation(scheme, rest)
}

func (w *walk) checkAddress(addr netip.Addr) *Violation {
	if v := inspectAddress(addr); v != nil {
		return v
	}
	return w.hosts.match(target{addr: addr})
}

// inspectText refuses what parsers drop, trim or read as a slash before they look for the host.
func inspectText(value string) *Violation {
	switch {
	case value == "":
		return &Violation{Malformed, "the value is empty"}
	case len(value) > MaxLength:
		return &Violation{TooLong, "the value is longer than 8192 bytes"}
	case !plain.Text(value):
		// Browsers delete tabs and newlines, wherever they are.
		return &Violation{NotText, "the value holds control or invisible characters, or is not UTF-8"}
	case strings.TrimSpace(value) != value:
		return &Violation{NotText, "the value begins or ends with white space"}
	case strings.IndexByte(value, '\\') >= 0:
		// "https://evil.com\@good.com": browsers see a slash, others a user name.
		return &Violation{Malformed, "the value holds a backslash"}
	}
	return nil
}

// cutScheme splits "scheme://rest" and "mailto:rest". A value without a scheme ("host", "host:port") comes back whole.
func cutScheme(value string) (scheme, rest string, _ *Violation) {
	before, after, found := strings.Cut(value, ":")
	if !found || !isScheme(before) {
		return "", value, nil
	}
	scheme = strings.ToLower(before)
	switch {
	case scheme == "mailto":
		return scheme, after, nil
	case hostless[scheme]:
		return "", "", &Violation{Scheme, "the scheme names no host"}
	case strings.HasPrefix(after, "//"):
		return scheme, after[2:], nil
	case !browsed[scheme] && isPortStart(after):
		return "", value, nil
	default:
		// "https:evil.com" has a host for browsers and none for others.
		return "", "", &Violation{Scheme, "the scheme is not followed by //"}
	}
}

// isPortStart reports whether s begins with digits that end where an authority ends.
func isPortStart(s string) bool {
	digits := strings.TrimLeft(s, "0123456789")
	return len(digits) < len(s) && (digits == "" || strings.IndexByte("/?#", digits[0]) >= 0)
}

func isScheme(s string) bool {
	if s == "" || !isLetter(s[0]) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isLetter(c) && !isDigit(c) && c != '+' && c != '-' && c != '.' {
			return false
		}
	}
	return true
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func hasSpace(s string) bool { return strings.IndexFunc(s, unicode.IsSpace) >= 0 }
