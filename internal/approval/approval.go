// Package approval keeps the calls that wait for a person. An approval covers
// one call, is decided once, is consumed once, and does not outlive its time.
package approval

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"gatewright.dev/gatewright/internal/audit/linefile"
)

// Call is what a person is asked to approve, as they see it.
type Call struct {
	Binding
	Class   string `json:"class,omitempty"`
	Base    string `json:"base,omitempty"`
	Message string `json:"message,omitempty"`
	// UserRequest is what the user is said to have asked for.
	UserRequest string `json:"userRequest,omitempty"`
	// Arguments are canonical JSON, with what is sensitive taken out by the gate.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Sources say where each argument came from, by JSON Pointer.
	Sources     map[string]string `json:"sources,omitempty"`
	Answers     map[string]string `json:"answers,omitempty"`
	Fingerprint string            `json:"fingerprint,omitempty"`
	Policies    []string          `json:"policies,omitempty"`
	// ExpiresAt is the first moment at which the approval no longer counts.
	ExpiresAt time.Time `json:"expiresAt"`
}

// State of an approval.
type State string

// States. Pending becomes Approved or Rejected, Approved becomes Consumed, and
// all but Consumed become Expired. Nothing goes back.
const (
	Pending  State = "Pending"
	Approved State = "Approved"
	Rejected State = "Rejected"
	Consumed State = "Consumed"
	Expired  State = "Expired"
)

// Decision of a person about a pending call.
type Decision struct {
	// Outcome is Approved or Rejected.
	Outcome State `json:"outcome"`
	// By is who decided, as verified by whoever calls Decide.
	By      string `json:"by"`
	Message string `json:"message,omitempty"`
	// At is set by the store.
	At time.Time `json:"at"`
}

// Approval is a call with what became of it.
type Approval struct {
	Name string `json:"name"`
	// ID is 128 random bits, and what is consumed. A name may come again a long
	// time after its approval has ended; an ID never does.
	ID       string    `json:"id"`
	Call     Call      `json:"call"`
	State    State     `json:"state"`
	Decision *Decision `json:"decision,omitempty"`
}

// Store keeps approvals. Its methods may be called concurrently. What it gives
// away shares nothing with what it keeps.
type Store interface {
	// Find gives the approvals that are Pending, Approved or Rejected for a call,
	// sorted by name, whatever reasons were shown. The caller checks that the
	// reasons it has now are among ConfirmReasons of the one it goes by.
	Find(ctx context.Context, b Binding) ([]Approval, error)
	// Raise gives the approval with this very binding that is Pending, Approved
	// or Rejected, or else makes a pending one.
	Raise(ctx context.Context, c Call) (Approval, error)
	// Consume returns nil once for an approved call, and never after it expired.
	Consume(ctx context.Context, id string) error
	// Decide records what a person said about a pending call.
	Decide(ctx context.Context, name string, d Decision) error
	Get(ctx context.Context, name string) (Approval, error)
	// List gives all that are kept, sorted by name.
	List(ctx context.Context) ([]Approval, error)
}

// Limits.
const (
	// MaxCall is the longest call in bytes of JSON: a person must see all of it.
	MaxCall = 32 << 10
	// MaxMessage is the longest message of a decision in bytes.
	MaxMessage = 4 << 10
	// MaxPendingPerCaller and MaxPendingPerNamespace bound what waits, so that an
	// agent cannot bury one call among many.
	MaxPendingPerCaller    = 50
	MaxPendingPerNamespace = 1000
)

// retention is how long an approval stays to be looked at after its time.
const retention = time.Hour

var (
	// ErrNotFound: there is no such approval.
	ErrNotFound = errors.New("no such approval")
	// ErrUsed: the approval was consumed before.
	ErrUsed = errors.New("approval was used")
	// ErrExpired: its time is over.
	ErrExpired = errors.New("approval has expired")
	// ErrNotApproved: nobody has approved it, or somebody rejected it.
	ErrNotApproved = errors.New("call is not approved")
	// ErrDecided: somebody has decided it before.
	ErrDecided = errors.New("approval is decided")
	// ErrSelfApproval: the caller of a call cannot decide about it.
	ErrSelfApproval = errors.New("a caller cannot decide about its own call")
	// ErrBadDecision: the decision names nobody, or neither approves nor rejects.
	ErrBadDecision = errors.New("decision is not valid")
	// ErrBadCall: the caller is not namespace/name, or the arguments are not JSON.
	ErrBadCall = errors.New("call is not valid")
	// ErrTooManyPending: the caller or its namespace has too many calls waiting.
	ErrTooManyPending = errors.New("too many calls wait for approval")
	// ErrUnavailable: the journal cannot be written now. Nothing has happened.
	ErrUnavailable = linefile.ErrUnavailable
	// ErrTooLarge: the call is longer than MaxCall, or a message than MaxMessage.
	ErrTooLarge = errors.New("too large to approve")
)
