// Package permit checks permits: signed tokens by which a tool server knows that a gate has allowed exactly this call, of
// this caller, with these arguments, now, and once.
//
// A permit is a JWT of type gatewright-permit+jwt, signed with Ed25519. It is good for at most a minute and for one use.
// Whatever a verifier cannot check it refuses: a key that it cannot get, a store of used permits that does not answer, a
// header or claim that it does not know, since that could be a restriction.
//
// A tool server makes a Verifier of the gate's keys (NewRemoteKeys) and a Store, and wraps its handler with Verify.
package permit

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

const (
	// Type is the typ header, so that a token made for another purpose is not taken for a permit.
	Type = "gatewright-permit+jwt"
	// Header carries a permit from the caller to the tool server.
	Header = "Gatewright-Permit"
	// JWKSPath is where a gate serves its public keys.
	JWKSPath = "/.well-known/jwks.json"
	// MaxLifetime of a permit.
	MaxLifetime = 60 * time.Second
	// Leeway is how far the clocks of a gate and a tool server may differ.
	Leeway = 5 * time.Second
	// MaxToken is the length in bytes of the longest permit. The claims' texts have at most 256 bytes each, of which
	// JSON may make six times as many and base64 a third more: 4 texts make about 8 KiB, beside 1 KiB of the rest.
	MaxToken = 12 << 10
)

// Remembered is how long after a permit was made a Store has to know of its use, since another one with the same id can
// still be good. A gate answers the same request with the same id while its uid is fresh: 300 s, and 60 s more for a
// caller whose clock is ahead. The last such permit may be good for MaxLifetime. Three leeways are for the clocks of two
// gates and of the verifier.
const Remembered = (300+60)*time.Second + MaxLifetime + 3*Leeway

// Claims are what a permit says.
type Claims struct {
	// Issuer is the gate. Sign fills it in, and the three times.
	Issuer string
	// Audience is the tool server that the policy names.
	Audience string
	// Subject is the caller, as Subject writes it.
	Subject string
	// ID is the same for the same request at every replica of the gate. An approved call has the approval's id.
	ID string
	// IssuedAt, NotBefore and ExpiresAt have whole seconds.
	IssuedAt, NotBefore, ExpiresAt time.Time
	// Tool that may run, and the server that offers it, as the call named them.
	Tool, Server string
	// ArgumentsDigest is the digest of the canonical arguments: "sha256:" and hexadecimal.
	ArgumentsDigest string
	// PolicyDigest of the policies that were in force for the tool.
	PolicyDigest string
	// Decision is its id in the audit log.
	Decision string
	// OnBehalfOf is the end user.
	OnBehalfOf string
	// Session is the digest of the agent's session, as SessionDigest gives it.
	Session string
}

// subjectPrefix is how Kubernetes writes the user name of a service account.
const subjectPrefix = "system:serviceaccount:"

// Subject names a service account as Kubernetes does.
func Subject(namespace, name string) string { return subjectPrefix + namespace + ":" + name }

const digestPrefix = "sha256:"

// SessionDigest is the claim for a session, empty for none.
func SessionDigest(session string) string {
	if session == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(session))
	return digestPrefix + hex.EncodeToString(sum[:])
}

func isDigest(s string) bool {
	hash, ok := strings.CutPrefix(s, digestPrefix)
	if !ok || len(hash) != 2*sha256.Size {
		return false
	}
	return strings.Trim(hash, "0123456789abcdef") == ""
}

// isID says whether a text can be a permit's id. An id stands as a word in a journal's line.
func isID(s string) bool {
	if len(s) < 16 || len(s) > 128 {
		return false
	}
	for _, c := range []byte(s) {
		if !isTokenByte(c) {
			return false
		}
	}
	return true
}

// isTokenByte says whether a byte belongs to the alphabet of base64url.
func isTokenByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}
