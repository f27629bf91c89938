package hosts

import (
	"strings"

	"gatewright.dev/gatewright/internal/policy/paths/plain"
)

// cutAuthority splits what follows "scheme://" where the path, query or fragment begins.
func cutAuthority(rest string) (authority, tail string) {
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		return rest[:end], rest[end:]
	}
	return rest, ""
}

// checkLocation judges "host:port/path?query#fragment". An empty scheme is a value that was written without one.
func (w *walk) checkLocation(scheme, rest string) *Violation {
	authority, tail := cutAuthority(rest)
	if v := inspectLocation(scheme, authority, tail); v != nil {
		return v
	}
	t, v := parseAuthority(scheme, authority)
	if v != nil {
		return v
	}
	if v := w.hosts.match(t); v != nil {
		return v
	}
	return w.checkParameters(scheme, tail)
}

func inspectLocation(scheme, authority, tail string) *Violation {
	switch {
	case strings.IndexByte(authority, '@') >= 0:
		// "https://good.com@evil.com" leads to evil.com, and credentials do not belong into arguments.
		return &Violation{Userinfo, "the URL has a user name before the host"}
	case authority == "":
		// Browsers skip further slashes: "https:///evil.com" leads to evil.com.
		return &Violation{Malformed, "the URL has no host"}
	case tail != "" && tail[0] != '/' && strings.IndexByte(tail, '@') >= 0:
		// "https://good.com#@evil.com": older parsers look for the last @ before they look for # and ?.
		return &Violation{Userinfo, "an @ follows the host without a path between"}
	case scheme == "" && strings.IndexByte(tail, '@') >= 0:
		return &Violation{Malformed, "the value may be a URL or an address: write the scheme"}
	case hasSpace(tail) || hasSpace(authority):
		// A tool that takes several URLs splits at white space, and the second one would go unseen.
		return &Violation{NotText, "the URL holds white space"}
	}
	return inspectEscapes(tail)
}

// inspectEscapes refuses a broken escape outside the query, where parsers stop at it, skip it or keep it.
func inspectEscapes(tail string) *Violation {
	before, fragment, _ := strings.Cut(tail, "#")
	path, _, _ := strings.Cut(before, "?")
	if !plain.WellFormed(path) || !plain.WellFormed(fragment) {
		return &Violation{Malformed, "the path or fragment holds a broken percent escape"}
	}
	return nil
}
