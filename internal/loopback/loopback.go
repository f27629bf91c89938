// Package loopback says which addresses only this machine reaches. A name other than localhost is none, whatever it
// resolves to: it may resolve to something else the next time.
package loopback

import (
	"net"
	"strings"
)

// IsHost says so of a host without a port: localhost, or an address in digits.
func IsHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// IsAddress says so of a host with or without a port, as the header Host has it.
func IsAddress(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(address, "["), "]")
	}
	return IsHost(host)
}
