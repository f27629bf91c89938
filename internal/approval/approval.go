// Package approval keeps the calls that wait for a person. An approval covers one call, is decided once, is consumed
// once, and does not outlive its time. It counts only while it carries the seal of a gate's key.
package approval

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"gatewright.dev/gatewright/internal/audit/linefile"
)

// Call is what a person is asked to approve, as they see it. The seal covers all of it.
type Call struct {
	Binding
	Class string `json:"class,omitempty"`
	Base  string `json:"base,omitempty"`
	// Message asks in plain words.
	Message string `json:"message,omitempty"`
	// ToolDescription is what the policy says that the tool does.
	ToolDescription string `json:"toolDescription,omitempty"`
	// UserRequest is the latest of what the user is said to have asked for.
	UserRequest string `json:"userRequest,omitempty"`
	// EarlierTurns are what the user is said to have said before, oldest first. All of it is the caller's word, unless the
	// binding says by whom it is attested.
	EarlierTurns []string `json:"earlierTurns,omitempty"`
	// OmittedTurns is how many turns before EarlierTurns are not shown, because they are too much to read.
	OmittedTurns int `json:"omittedTurns,omitempty"`
	// Arguments are canonical JSON, with what is sensitive replaced by its length and digest.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Sensitive are the JSON Pointers whose values are not shown.
	Sensitive []string `json:"sensitive,omitempty"`
	// Sources say where each argument came from, by JSON Pointer.
	Sources map[string]string `json:"sources,omitempty"`
	// Answers of the decider in words, by question, and the number behind each.
	Answers       map[string]string  `json:"answers,omitempty"`
	Probabilities map[string]float64 `json:"probabilities,omitempty"`
	// Reasons say the same as ConfirmReasons, in parts and in words.
	Reasons []Reason `json:"reasons,omitempty"`
	// InbandClaims name who in the conversation claims that the call was approved already: user, assistant or tool. Such
	// a claim is no approval.
	InbandClaims []string `json:"inbandClaims,omitempty"`
	Fingerprint  string   `json:"fingerprint,omitempty"`
	Policies     []string `json:"policies,omitempty"`
	// CaptureState is what the policies let be kept of the call elsewhere: Plain or Encrypted, or else digests only.
	CaptureState string `json:"captureState,omitempty"`
	// Approvers says who may decide.
	Approvers Approvers `json:"approvers"`
	RaisedAt  time.Time `json:"raisedAt"`
	// ExpiresAt is the first moment at which the approval no longer counts.
	ExpiresAt time.Time `json:"expiresAt"`
}

// Reason is one of the reasons to ask a person.
type Reason struct {
	// Key is the reason as ConfirmReasons has it.
	Key     string `json:"key"`
	Policy  string `json:"policy,omitempty"`
	By      string `json:"by,omitempty"`
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
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
	By      Approver `json:"by"`
	Message string   `json:"message,omitempty"`
	// ID of the approval that the person saw. If it is set, the decision counts for no other.
	ID string `json:"id,omitempty"`
	// Evidence is what an end user's front door has signed. It is verified again when the approval is used.
	Evidence string `json:"evidence,omitempty"`
	// At is set by the store.
	At time.Time `json:"at"`
}

// Approval is a call with what became of it.
type Approval struct {
	Name string `json:"name"`
	// ID is 128 random bits, and what is consumed. A name may come again a long
	// time after its approval has ended; an ID never does.
	ID   string `json:"id"`
	Call Call   `json:"call"`
	// Seal is a gate's signature over namespace, name, ID and call.
	Seal     string    `json:"seal"`
	State    State     `json:"state"`
	Decision *Decision `json:"decision,omitempty"`
	// EndedAt is when it was consumed or expired; nil before.
	EndedAt *time.Time `json:"endedAt,omitempty"`
}

// Store keeps approvals. Its methods may be called concurrently. What it gives
// away shares nothing with what it keeps.
type Store interface {
	// Find gives what stands for a call, sorted by name: what is Pending, Approved or Rejected under these policies,
	// whatever reasons were shown, and what is Rejected under any. The caller verifies the seals, and checks that the
	// reasons it has now are among ConfirmReasons of the one it goes by.
	Find(ctx context.Context, b Binding) ([]Approval, error)
	// Raise gives the approval with this very binding that is Pending, Approved or Rejected, or the rejection that stands
	// for the call, or else makes a pending one and seals it.
	Raise(ctx context.Context, c Call) (Approval, error)
	// Consume returns nil once for an approved call, and never after it expired or while a rejection of the same call
	// stands.
	Consume(ctx context.Context, id string) error
	// Decide records what a person said about a pending call, if Approvers of the call let them.
	Decide(ctx context.Context, name string, d Decision) error
	Get(ctx context.Context, name string) (Approval, error)
	// List gives what has not ended more than an hour ago, sorted by name.
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
	// MaxLifetime is the longest time from raising to expiry.
	MaxLifetime = 24 * time.Hour
)

// retention is how long an approval stays to be looked at after it has ended.
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
	// ErrRejected: a rejection of the same call stands, whatever else was approved.
	ErrRejected = errors.New("the same call was rejected")
	// ErrDecided: somebody has decided it before.
	ErrDecided = errors.New("approval is decided")
	// ErrSelfApproval: the caller of a call cannot decide about it, nor the user on whose behalf it is made where the
	// policy forbids that.
	ErrSelfApproval = errors.New("nobody approves their own call")
	// ErrChannel: the policy does not let approvers of this type decide.
	ErrChannel = errors.New("the policy does not accept decisions from this channel")
	// ErrBadDecision: the decision names nobody, neither approves nor rejects, or is about another call.
	ErrBadDecision = errors.New("decision is not valid")
	// ErrBadEvidence: no front door of the policy has signed this decision about this call.
	ErrBadEvidence = errors.New("evidence is not valid")
	// ErrBadCall: the caller is not namespace/name, or the arguments are not JSON.
	ErrBadCall = errors.New("call is not valid")
	// ErrTooManyPending: the caller or its namespace has too many calls waiting.
	ErrTooManyPending = errors.New("too many calls wait for approval")
	// ErrNotSealed: no key of this gate has sealed it as it is.
	ErrNotSealed = errors.New("approval is not sealed by a known key")
	// ErrUnavailable: the journal cannot be written now. Nothing has happened.
	ErrUnavailable = linefile.ErrUnavailable
	// ErrTooLarge: the call is longer than MaxCall, or a message than MaxMessage.
	ErrTooLarge = errors.New("too large to approve")
)
