package hosts

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"gatewright.dev/gatewright/internal/policy/paths/plain"
)

// Compile prepares the allowed hosts. An entry is one of
//
//	api.example.com            that host: https and http at their default ports, and e-mail to it
//	*.example.com              every host below example.com, however deep, but not example.com
//	api.example.com:8443       that port only
//	wss://api.example.com      that scheme only, at its default port unless one is written
//	mailto:example.com         e-mail only
//	10.1.2.3, [fd00::1]:8443   an address; no name entry ever allows one
//	10.1.0.0/16, fd00::/8      the addresses of a network
func Compile(entries []string) (*Hosts, error) {
	if len(entries) == 0 {
		return nil, errors.New("no allowed host: name at least one")
	}
	h := &Hosts{exact: map[string][]rule{}, below: map[string][]rule{}}
	for _, entry := range entries {
		if err := h.add(entry); err != nil {
			return nil, fmt.Errorf("allowed host %q: %w", entry, err)
		}
	}
	return h, nil
}

func (h *Hosts) add(entry string) error {
	if entry == "" || len(entry) > 512 || !plain.Text(entry) || hasSpace(entry) {
		return errors.New("is empty, longer than 512 bytes, or holds white space: write one host")
	}
	r, rest, err := entryScheme(entry)
	if err != nil {
		return err
	}
	if strings.ContainsAny(rest, `@?#\`) {
		return errors.New("holds more than a host: remove user, query and fragment")
	}
	if strings.Contains(rest, "/") {
		return h.addPrefix(rest, r)
	}
	if addr, err := netip.ParseAddr(rest); err == nil && strings.Contains(rest, ":") {
		return h.addAddress(addr, r)
	}
	base, wildcard := strings.CutPrefix(rest, "*.")
	t, v := parseAuthority(r.scheme, base)
	if v != nil {
		return fmt.Errorf("%s: write a host such as api.example.com, with a port if needed", v.Detail)
	}
	if r.port = t.port; r.scheme == "mailto" && r.port != 0 {
		return errors.New("has a port, and e-mail has none: remove it")
	}
	if r.scheme != "" && r.scheme != "mailto" && r.port == 0 && defaultPorts[r.scheme] == 0 {
		return errors.New("has a scheme without a known default port: add the port")
	}
	return h.addTarget(t, r, wildcard)
}

func entryScheme(entry string) (rule, string, error) {
	if rest, found := strings.CutPrefix(entry, "mailto:"); found {
		return rule{scheme: "mailto"}, rest, nil
	}
	scheme, rest, found := strings.Cut(entry, "://")
	if !found {
		return rule{}, entry, nil
	}
	scheme = strings.ToLower(scheme)
	if !isScheme(scheme) || scheme == "mailto" || hostless[scheme] {
		return rule{}, "", errors.New("has a scheme that names no host: use https")
	}
	return rule{scheme: scheme}, rest, nil
}

func (h *Hosts) addTarget(t target, r rule, wildcard bool) error {
	switch {
	case t.addr.IsValid() && wildcard:
		return errors.New("is a wildcard of an address: write a network such as 10.1.0.0/16")
	case t.addr.IsValid():
		h.networks = append(h.networks, network{netip.PrefixFrom(t.addr, t.addr.BitLen()), r})
	case wildcard && !strings.Contains(t.host, "."):
		// Below a single label is a whole top-level domain.
		return errors.New("is a wildcard of a top-level domain: name at least two labels after the star")
	case wildcard:
		h.below[t.host] = append(h.below[t.host], r)
	default:
		h.exact[t.host] = append(h.exact[t.host], r)
	}
	return nil
}

func (h *Hosts) addAddress(addr netip.Addr, r rule) error {
	if v := inspectAddress(addr); v != nil {
		return fmt.Errorf("%s: write the plain address", v.Detail)
	}
	return h.addNetwork(netip.PrefixFrom(addr, addr.BitLen()), r)
}

func (h *Hosts) addPrefix(text string, r rule) error {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return errors.New("holds a slash and is not a network: remove the path, or write a network such as 10.1.0.0/16")
	}
	if prefix != prefix.Masked() {
		return fmt.Errorf("is not the first address of its network: write %s", prefix.Masked())
	}
	if prefix.Bits() == 0 || prefix.Addr().Is4In6() {
		return errors.New("allows every address, or is IPv4 written as IPv6: write a smaller, plain network")
	}
	return h.addNetwork(prefix, r)
}

func (h *Hosts) addNetwork(prefix netip.Prefix, r rule) error {
	if r.scheme != "" && r.scheme != "mailto" && defaultPorts[r.scheme] == 0 {
		return errors.New("has a scheme without a known default port: list addresses with their port")
	}
	h.networks = append(h.networks, network{prefix, r})
	return nil
}
