package audit

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Checkpoint is a signature over the end of the chain, and so over every line before it. It stands in the log itself and
// is kept outside of it too: who rewrites the log cannot sign anew, and who cuts it off cannot take back what is kept
// elsewhere.
type Checkpoint struct {
	Head
	Time time.Time `json:"time"`
	// KID names the key.
	KID string `json:"kid"`
	// Signature is Ed25519 over Signed, in base64 without padding.
	Signature string `json:"signature"`
}

// timeFormat is how times stand in what is signed, as in the lines of the log.
const timeFormat = time.RFC3339Nano

// Signed is the text that is signed: five lines, each ended by a line feed.
func (c *Checkpoint) Signed() []byte {
	return fmt.Appendf(nil, "gatewright.dev/audit-checkpoint/v1\n%d\n%s\n%s\n%s\n", c.Seq, c.Digest, c.Time.UTC().Format(timeFormat), c.KID)
}

// check says whether the signature is that of one of these keys.
func (c *Checkpoint) check(keys PublicKeys) (known, good bool) {
	key, known := keys[c.KID]
	if !known {
		return false, false
	}
	signature, err := base64.RawStdEncoding.DecodeString(c.Signature)
	return true, err == nil && ed25519.Verify(key, c.Signed(), signature)
}

// ParseCheckpoint reads one line of a file of checkpoints, or what a gate logs. It does not look at the signature.
func ParseCheckpoint(line []byte) (Checkpoint, error) {
	var c Checkpoint
	d := json.NewDecoder(strings.NewReader(string(line)))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return Checkpoint{}, fmt.Errorf("not a checkpoint: %w", err)
	}
	if c.Seq == 0 || len(c.Digest) != len(noDigest) || !isDigest(c.Digest) || c.KID == "" || c.Signature == "" {
		return Checkpoint{}, fmt.Errorf("not a checkpoint: seq, digest, kid and signature are required")
	}
	return c, nil
}

// Signer signs checkpoints.
type Signer interface {
	// Checkpoint signs the end of a chain.
	Checkpoint(h Head, now time.Time) Checkpoint
}
