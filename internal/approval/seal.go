package approval

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/keyring"
	"gatewright.dev/gatewright/internal/strictjson"
)

// Contexts keep signatures of one key apart: what was signed as one thing is never taken for another.
const (
	contextSeal  = "gatewright.dev/approval/seal/v1"
	contextEvent = "gatewright.dev/approval/event/v1"
)

// Seals seals approvals with the keys of a gate, and tells sealed ones from all others.
type Seals struct{ keys *keyring.Ring }

// OpenSeals reads the file with the sealing keys, mode 0600, or makes it. Without a path the keys live as long as the
// process. A retired key verifies until nothing that it has sealed can count.
func OpenSeals(path string, c clock.PassiveClock) (*Seals, error) {
	return sealsOf(path, c, keyring.Open)
}

// LoadSeals reads a file with sealing keys that has to be there.
func LoadSeals(path string, c clock.PassiveClock) (*Seals, error) {
	return sealsOf(path, c, keyring.Load)
}

func sealsOf(path string, c clock.PassiveClock, open func(keyring.Options) (*keyring.Ring, error)) (*Seals, error) {
	keys, err := open(keyring.Options{Path: path, Clock: c, MinOverlap: MaxLifetime + retention})
	if err != nil {
		return nil, err
	}
	return &Seals{keys}, nil
}

// Keys are the sealing keys, for rotating and reloading.
func (s *Seals) Keys() *keyring.Ring { return s.keys }

// sealed is what is signed, as canonical JSON.
type sealed struct {
	Context   string     `json:"context"`
	Namespace string     `json:"namespace"`
	Name      string     `json:"name"`
	Call      sealedCall `json:"call"`
}

type sealedCall struct {
	ID string `json:"id"`
	*Call
}

// sealLimits let a call be nested in what is sealed, whatever its arguments are.
var sealLimits = strictjson.Limits{MaxBytes: 2 * MaxCall, MaxDepth: 200, MaxKeys: MaxCall}

func sealMessage(a *Approval) ([]byte, error) {
	namespace, ok := a.Call.Namespace()
	if !ok {
		return nil, fmt.Errorf("%w: caller is not namespace/name", ErrBadCall)
	}
	data, err := encode(sealed{contextSeal, namespace, a.Name, sealedCall{a.ID, &a.Call}})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadCall, err)
	}
	tree, err := strictjson.Parse(data, sealLimits)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadCall, err)
	}
	return strictjson.Canonical(tree)
}

// Seal gives the seal of an approval: the name of a key, a dot and the signature over namespace, name, ID and call.
func (s *Seals) Seal(a *Approval) (string, error) {
	message, err := sealMessage(a)
	if err != nil {
		return "", err
	}
	return s.sign(message)
}

// Verify returns ErrNotSealed unless a key of this gate that has not ended has sealed the approval as it is.
func (s *Seals) Verify(a *Approval) error {
	message, err := sealMessage(a)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotSealed, err)
	}
	if err := s.verify(a.Seal, message); err != nil {
		return fmt.Errorf("%w: %w", ErrNotSealed, err)
	}
	return nil
}

func (s *Seals) sign(message []byte) (string, error) {
	kid, signature, err := s.keys.Sign(message)
	if err != nil {
		return "", fmt.Errorf("sealing: %w", err)
	}
	return kid + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

func (s *Seals) verify(seal string, message []byte) error {
	kid, text, ok := strings.Cut(seal, ".")
	signature, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if !ok || err != nil {
		return keyring.ErrBadSignature
	}
	return s.keys.Verify(kid, message, signature)
}

// line is an event as it stands in a journal.
type line struct {
	V int `json:"v"`
	// Seal is the signature over the bytes of the event.
	Seal  string          `json:"seal"`
	Event json.RawMessage `json:"event"`
}

func eventMessage(event []byte) []byte { return append([]byte(contextEvent+"\n"), event...) }
