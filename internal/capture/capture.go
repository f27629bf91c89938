// Package capture keeps calls with their context, by the digest that the audit record has of them, so that a decision
// can be judged again. What a policy wants encrypted can be read only with a key that the gate does not have.
package capture

import (
	"errors"
	"fmt"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/api/v1alpha1"
)

var (
	// ErrNotFound says that nothing is kept under a digest.
	ErrNotFound = errors.New("the call was not kept")
	// ErrNoKey says that a call is kept encrypted, and its private key was not given.
	ErrNoKey = errors.New("the call is encrypted and its key was not given")
	// ErrCorrupt says that what is kept is not what was stored.
	ErrCorrupt = errors.New("the kept call cannot be read")
	// ErrFull says that calls come faster than the disk takes them. The call is not kept.
	ErrFull = errors.New("too many calls wait to be kept")
	// ErrClosed says that the store was closed, or was opened to read only.
	ErrClosed = errors.New("the store takes no calls")
	// ErrTooLarge says that a call is longer than MaxState.
	ErrTooLarge = fmt.Errorf("a call is longer than %d bytes", MaxState)
)

// MaxState is the longest state in bytes.
const MaxState = 4 << 20

// State is a call as it was judged: what Get returns is its JSON form.
type State struct {
	// Caller is the service account as NAMESPACE/NAME.
	Caller string `json:"caller"`
	// Request without what belongs to one attempt: uid, approval and dryRun are empty.
	Request review.Request `json:"request"`
}

// Mode says how a state is kept.
type Mode string

// Modes.
const (
	Plain     Mode = Mode(v1alpha1.CapturePlain)
	Encrypted Mode = Mode(v1alpha1.CaptureEncrypted)
)
