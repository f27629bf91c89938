package hosts

import (
	"net/netip"
	"strings"
)

// defaultPorts are the ports of schemes that are used without one.
var defaultPorts = map[string]uint16{
	"http": 80, "ws": 80, "https": 443, "wss": 443, "ftp": 21, "ftps": 990, "ssh": 22, "sftp": 22, "git": 9418,
	"ldap": 389, "ldaps": 636, "smtp": 25, "smtps": 465, "imap": 143, "imaps": 993,
	"postgres": 5432, "postgresql": 5432, "mysql": 3306, "redis": 6379, "rediss": 6379, "mongodb": 27017,
	"amqp": 5672, "amqps": 5671, "nats": 4222,
}

// browsed are the schemes after which browsers take what follows for a host, with or without slashes: "https:8080" is the
// address 0.0.31.144 and not port 8080 of a host named https.
var browsed = map[string]bool{"http": true, "https": true, "ws": true, "wss": true, "ftp": true}

// hostless are schemes whose content is code, data, or something local: what stands where a host would is none.
var hostless = map[string]bool{
	"about": true, "blob": true, "chrome": true, "cid": true, "data": true, "file": true, "filesystem": true,
	"intent": true, "jar": true, "javascript": true, "resource": true, "tel": true, "urn": true, "vbscript": true,
	"view-source": true,
}

// target is where a value leads. Exactly one of host and addr is set.
type target struct {
	scheme string // lower case; empty if the value has none
	host   string // canonical
	addr   netip.Addr
	port   uint16 // 0 if the value has none
}

// rule is what an entry says beside its host.
type rule struct {
	scheme string // empty: https and http, a value without scheme, and e-mail
	port   uint16 // 0: the scheme's default port
}

type network struct {
	prefix netip.Prefix
	rule   rule
}

// fit is how far a target gets with a rule; the best over all rules decides what the caller is told.
type fit int

const (
	noHost fit = iota
	hostOnly
	hostAndScheme
	allowed
)

func (r rule) fit(t target) fit {
	switch {
	case !r.allowsScheme(t.scheme):
		return hostOnly
	case !r.allowsPort(t):
		return hostAndScheme
	default:
		return allowed
	}
}

// allowsScheme: an entry with a scheme allows that one only, and a value without a scheme proves none.
func (r rule) allowsScheme(scheme string) bool {
	if r.scheme != "" {
		return r.scheme == scheme
	}
	return scheme == "" || scheme == "https" || scheme == "http" || scheme == "mailto"
}

// allowsPort: an entry without a port allows the default port of the value's scheme, and a value that has no scheme may
// name the default port of either https or http.
func (r rule) allowsPort(t target) bool {
	port := t.port
	if port == 0 {
		port = defaultPorts[t.scheme]
	}
	switch {
	case r.port != 0:
		return port == r.port
	case t.scheme == "":
		return port == 0 || port == 80 || port == 443
	default:
		return port == defaultPorts[t.scheme]
	}
}

func bestFit(rules []rule, t target, best fit) fit {
	for _, r := range rules {
		best = max(best, r.fit(t))
	}
	return best
}

// match judges a target whose host is canonical. An address is compared with listed addresses only, never with names.
func (h *Hosts) match(t target) *Violation {
	best := noHost
	if h != nil {
		best = h.bestFit(t)
	}
	switch best {
	case allowed:
		return nil
	case hostAndScheme:
		return about(Port, t, "not allowed at this port")
	case hostOnly:
		return about(Scheme, t, "not allowed with this scheme")
	}
	if t.addr.IsValid() {
		return about(IPLiteral, t, "not a listed address")
	}
	if hasALabel(t.host) {
		return about(Lookalike, t, "not allowed and may be a look-alike")
	}
	return about(NotAllowed, t, "not allowed")
}

func (h *Hosts) bestFit(t target) fit {
	best := noHost
	if t.addr.IsValid() {
		for _, n := range h.networks {
			if n.prefix.Contains(t.addr) {
				best = max(best, n.rule.fit(t))
			}
		}
		return best
	}
	best = bestFit(h.exact[t.host], t, best)
	if len(h.below) == 0 {
		return best
	}
	for _, rest, found := strings.Cut(t.host, "."); found; _, rest, found = strings.Cut(rest, ".") {
		best = bestFit(h.below[rest], t, best)
	}
	return best
}

// maxEcho keeps every Detail within 80 bytes, the prefix of a parameter or recipient included.
const maxEcho = 25

// about names the host and nothing else of the value. A canonical host is ASCII, so it can be cut at any byte; its end
// says whose it is.
func about(code Code, t target, what string) *Violation {
	name := t.host
	if t.addr.IsValid() {
		name = t.addr.String()
	}
	if len(name) > maxEcho {
		name = "..." + name[len(name)-(maxEcho-3):]
	}
	return &Violation{code, name + " is " + what}
}
