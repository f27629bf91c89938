// Package permit signs permits and keeps the keys that they are signed with: the gate's part. What a permit is, and how a
// tool server checks it, is in gatewright.dev/gatewright/permit, which modules of tool servers import.
package permit

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"gatewright.dev/gatewright/permit"
)

// JWKSPath is where a gate serves its public keys.
const JWKSPath = permit.JWKSPath

// Claims are what a permit says.
type Claims = permit.Claims

// Subject names a service account as Kubernetes does.
func Subject(namespace, name string) string { return permit.Subject(namespace, name) }

// SessionDigest is the claim for a session, empty for none.
func SessionDigest(session string) string { return permit.SessionDigest(session) }

// JTI is the id of the permit for a request: every replica makes the same one for the same request. An approved call has
// the approval's id instead, so that no second request can use the approval up again.
func JTI(cluster, caller, uid string, bodyDigest [sha256.Size]byte) string {
	h := sha256.New()
	for _, part := range []string{cluster, caller, uid, string(bodyDigest[:])} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil))
}
