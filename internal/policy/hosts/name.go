package hosts

import (
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/idna"

	"gatewright.dev/gatewright/internal/policy/paths/plain"
)

// parseAuthority reads "host", "host:port", "[v6]" and "[v6]:port".
func parseAuthority(scheme, authority string) (target, *Violation) {
	t := target{scheme: scheme}
	if strings.HasPrefix(authority, "[") {
		return parseBracketed(t, authority)
	}
	if strings.IndexByte(authority, '%') >= 0 {
		// Some clients decode the host before they connect, others send it as it is.
		return t, &Violation{Malformed, "the host is percent-encoded"}
	}
	host, port, hasPort := strings.Cut(authority, ":")
	var v *Violation
	if hasPort {
		if t.port, v = parsePort(port); v != nil {
			return t, v
		}
	}
	t.host, t.addr, v = canonical(host)
	return t, v
}

func parseBracketed(t target, authority string) (target, *Violation) {
	inner, after, closed := strings.Cut(authority[1:], "]")
	addr, err := netip.ParseAddr(inner)
	if !closed || err != nil || !addr.Is6() {
		return t, &Violation{Malformed, "brackets do not hold an IPv6 address"}
	}
	if v := inspectAddress(addr); v != nil {
		return t, v
	}
	t.addr = addr
	if after == "" {
		return t, nil
	}
	port, found := strings.CutPrefix(after, ":")
	if !found {
		return t, &Violation{Malformed, "something other than a port follows the brackets"}
	}
	var v *Violation
	t.port, v = parsePort(port)
	return t, v
}

// inspectAddress refuses addresses that lead elsewhere than their network says: an IPv4 address in IPv6 clothes is
// reached over IPv4, and a zone names an interface of the caller's machine.
func inspectAddress(addr netip.Addr) *Violation {
	if addr.Is4In6() {
		return &Violation{IPLiteral, "an IPv4 address is written as IPv6"}
	}
	if addr.Zone() != "" {
		return &Violation{IPLiteral, "the address has a zone"}
	}
	return nil
}

// parsePort accepts 1 to 65535 without sign, leading zero or empty text, which parsers treat differently.
func parsePort(s string) (uint16, *Violation) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 || s[0] == '0' || s[0] == '+' {
		return 0, &Violation{Port, "the port is not a number from 1 to 65535"}
	}
	return uint16(n), nil
}

// canonical returns the one form in which hosts are compared: lower case, ASCII, labels of letters, digits and hyphens, no
// trailing dot (a different name for TLS and virtual hosts), or an address.
func canonical(host string) (string, netip.Addr, *Violation) {
	if !plain.ASCII(host) {
		name, v := canonicalIDN(host)
		return name, netip.Addr{}, v
	}
	host = strings.ToLower(host)
	if endsInNumber(host) {
		// inet_aton and browsers read 2130706433, 0177.0.0.1 and 0x7f.1 as 127.0.0.1. ParseAddr knows four decimals only.
		addr, err := netip.ParseAddr(host)
		if err != nil {
			return "", netip.Addr{}, &Violation{IPLiteral, "the host is an address in an unusual notation"}
		}
		return "", addr, nil
	}
	if !isName(host) {
		return "", netip.Addr{}, &Violation{Malformed, "the host is not a valid name"}
	}
	if hasALabel(host) {
		name, v := canonicalIDN(host)
		return name, netip.Addr{}, v
	}
	return host, netip.Addr{}, nil
}

// canonicalIDN accepts an internationalised name only in one of its two canonical forms, all Unicode or all ASCII
// (xn--...). Anything that mapping would change (full-width letters, other dots, upper case) is somebody else's name for
// clients that do not map.
func canonicalIDN(host string) (string, *Violation) {
	if strings.ContainsAny(host, "ßς") {
		// IDNA2003 turns these into "ss" and "σ", IDNA2008 keeps them: two clients, two hosts.
		return "", &Violation{Lookalike, "the host holds a letter that clients map differently: write xn--"}
	}
	ascii, err := idna.Lookup.ToASCII(host)
	if err != nil {
		return "", &Violation{Lookalike, "the host is not a valid internationalised name"}
	}
	unicode, err := idna.Lookup.ToUnicode(ascii)
	if err != nil || host != ascii && host != unicode {
		return "", &Violation{Lookalike, "the host is not written in its canonical form"}
	}
	if again, err := idna.Lookup.ToASCII(unicode); err != nil || again != ascii || !isName(ascii) || endsInNumber(ascii) {
		return "", &Violation{Lookalike, "the host is not written in its canonical form"}
	}
	return ascii, nil
}

func hasALabel(host string) bool {
	return strings.HasPrefix(host, "xn--") || strings.Contains(host, ".xn--")
}

// isName reports whether s is a lower-case host name as of RFC 1123.
func isName(s string) bool {
	if len(s) > 253 {
		return false
	}
	for label, rest, more := "", s, true; more; {
		label, rest, more = strings.Cut(rest, ".")
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			if c := label[i]; (c < 'a' || 'z' < c) && !isDigit(c) && c != '-' {
				return false
			}
		}
	}
	return true
}

// endsInNumber reports whether URL parsers would try to read s as an IPv4 address: its last label is decimal or 0x-hex.
// One trailing dot does not stop them.
func endsInNumber(s string) bool {
	s = strings.TrimSuffix(s, ".")
	last := s[strings.LastIndexByte(s, '.')+1:]
	if last == "" {
		return false
	}
	if hex, found := strings.CutPrefix(last, "0x"); found {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(last, "0123456789") == ""
}
