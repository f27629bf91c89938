package approval

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
)

// Binding is what an approval is bound to. A call that differs in any of it is
// another call, and needs an approval of its own.
type Binding struct {
	PolicyDigest string `json:"policyDigest"`
	// Caller is the service account, as namespace/name.
	Caller          string `json:"caller"`
	Server          string `json:"server"`
	Tool            string `json:"tool"`
	ArgumentsDigest string `json:"argumentsDigest"`
	OnBehalfOf      string `json:"onBehalfOf"`
	Session         string `json:"session"`
	UserTurnsDigest string `json:"userTurnsDigest"`
	// AttestedBy is the front door that has signed end user and user's turns. Empty: the caller claims them.
	AttestedBy string `json:"attestedBy"`
	// CallKey is the digest of the call as its caller put it, as CallKey gives it. A rejection goes by it, so that no
	// change of a policy lifts one.
	CallKey string `json:"callKey"`
	// ConfirmReasons are what the person is shown as the reasons for asking. An
	// approval discharges these and no others. Order and repetition do not count.
	ConfirmReasons []string `json:"confirmReasons"`
}

// Digest of everything, as "sha256:" and hexadecimal digits.
func (b Binding) Digest() string {
	return hash("gatewright.dev/approval/binding/v2", b.parts(), normalReasons(b.ConfirmReasons))
}

// Key is the digest of everything but ConfirmReasons.
func (b Binding) Key() string { return hash("gatewright.dev/approval/key/v2", b.parts(), nil) }

func (b Binding) parts() []string {
	return []string{
		b.PolicyDigest, b.Caller, b.Server, b.Tool, b.ArgumentsDigest, b.OnBehalfOf, b.Session, b.UserTurnsDigest,
		b.AttestedBy, b.CallKey,
	}
}

// CallKey is the digest of a call as its caller put it: what it says of the end user and of the user's turns, and
// nothing that depends on a policy.
func CallKey(caller, server, tool, argumentsDigest, session, onBehalfOf, userTurnsDigest string) string {
	return hash("gatewright.dev/approval/call/v1", []string{caller, server, tool, argumentsDigest, session, onBehalfOf, userTurnsDigest}, nil)
}

// IsSameCall says whether a rejection of b holds for a call with binding o: the caller puts it the same way, and as far
// as a front door has signed both, the user has said nothing new. Policies and reasons do not count.
func (b Binding) IsSameCall(o Binding) bool {
	if b.CallKey == "" || b.CallKey != o.CallKey {
		return b.Key() == o.Key()
	}
	return b.AttestedBy == "" || o.AttestedBy == "" || b.UserTurnsDigest == o.UserTurnsDigest && b.OnBehalfOf == o.OnBehalfOf
}

// hash puts the length in front of every part. Parts that are written one after
// the other could be cut at another place and give the same bytes: tool "a" of
// server "bc" is not tool "ab" of server "c".
func hash(context string, parts, reasons []string) string {
	buf := make([]byte, 0, 1024) // enough for most, so that it grows for few
	for _, list := range [][]string{{context}, parts, reasons} {
		for _, p := range list {
			buf = binary.BigEndian.AppendUint64(buf, uint64(len(p)))
			buf = append(buf, p...)
		}
	}
	sum := sha256.Sum256(buf)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func normalReasons(reasons []string) []string {
	sorted := slices.Clone(reasons)
	slices.Sort(sorted)
	return slices.Compact(sorted)
}

// prefix is what all names for this binding start with. Eighty bits can be made
// to collide by who tries hard; names are for people, and nothing goes by them
// but Decide, where the person sees the call.
func (b Binding) prefix() string {
	return "ta-" + strings.TrimPrefix(b.Digest(), "sha256:")[:20] + "-"
}

// Namespace of the caller, not ok unless the caller is namespace/name.
func (b Binding) Namespace() (string, bool) {
	namespace, name, ok := strings.Cut(b.Caller, "/")
	return namespace, ok && namespace != "" && name != "" && !strings.Contains(name, "/")
}

// isCaller says whether a person's name is that of the calling service account,
// in our form or in that of Kubernetes.
func (b Binding) isCaller(by string) bool {
	namespace, name, _ := strings.Cut(b.Caller, "/")
	return by == b.Caller || by == "system:serviceaccount:"+namespace+":"+name
}
