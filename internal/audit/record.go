// Package audit keeps the decision record: JSON lines in an append-only file,
// durable by group commit and chained by hashes. It holds digests, constants
// and numbers, never arguments and never what anybody wrote.
package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
)

// Version is the schema version that stands in every line as v.
const Version = 1

// Kinds of records.
const (
	// KindDecision is a decision about a call. It is what an empty kind means.
	KindDecision = "decision"
	// KindRecovered says that a torn end was set aside when the file was opened.
	KindRecovered = "recovered"
	// KindCheckpoint holds a signature over the line before it, and so over all lines before it.
	KindCheckpoint = "checkpoint"
	// KindRotated is the first line of a file that goes on where another one ends.
	KindRotated = "rotated"
	// KindDropped says that an old file is about to be removed, and how the chain ended in it.
	KindDropped = "dropped"
	// KindLabel is a person's word about a decision: what it should have been.
	KindLabel = "label"
	// KindUnrecorded counts decisions, all of them Block, that had no room in the log.
	KindUnrecorded = "unrecorded"
	// KindAdopted says that nothing signed vouches for the lines before it: an operator took the log over as it was, or
	// its key was made only then.
	KindAdopted = "adopted"
)

// Record is one entry of the log. Digests are an algorithm, a colon and
// hexadecimal digits, as in sha256:9f86...; anything else in their place is
// refused, so that no text comes into the log by mistake.
type Record struct {
	Kind string    `json:"kind"`
	Time time.Time `json:"time"`
	// ID of the decision, as in the response.
	ID  string `json:"id,omitempty"`
	UID string `json:"uid,omitempty"`
	// RequestDigest of the whole request body.
	RequestDigest string `json:"requestDigest,omitempty"`
	Caller        Caller `json:"caller"`
	// OnBehalfOf is the end user's name, on the word of whoever gave the context.
	OnBehalfOf string `json:"onBehalfOf,omitempty"`
	// Session is a digest.
	Session string `json:"session,omitempty"`
	Tool    string `json:"tool,omitempty"`
	Server  string `json:"server,omitempty"`
	Class   string `json:"class,omitempty"`
	Base    string `json:"base,omitempty"`

	Outcome review.Outcome `json:"outcome,omitempty"`
	// Reason is a constant.
	Reason      string              `json:"reason,omitempty"`
	By          string              `json:"by,omitempty"`
	Obligations []review.Obligation `json:"obligations,omitempty"`
	WouldBe     []review.WouldBe    `json:"wouldBe,omitempty"`

	// Policies as KIND/NAMESPACE/NAME@GENERATION, or KIND/NAME@GENERATION for a cluster policy.
	Policies        []string `json:"policies,omitempty"`
	PolicyDigest    string   `json:"policyDigest,omitempty"`
	ArgumentsDigest string   `json:"argumentsDigest,omitempty"`
	StateDigest     string   `json:"stateDigest,omitempty"`
	UserTurnsDigest string   `json:"userTurnsDigest,omitempty"`

	Answers       map[string]review.Answer `json:"answers,omitempty"`
	Decider       string                   `json:"decider,omitempty"`
	Fingerprint   string                   `json:"fingerprint,omitempty"`
	ModelHash     string                   `json:"modelHash,omitempty"`
	PromptVersion string                   `json:"promptVersion,omitempty"`
	// Deciders that were asked, one for each policy that asks, each with its own answers.
	Deciders []Asked `json:"deciders,omitempty"`
	// Captured says how the call with its context is kept under StateDigest: Plain or Encrypted; empty: it is not.
	Captured string `json:"captured,omitempty"`

	Approval *Approval `json:"approval,omitempty"`
	DryRun   bool      `json:"dryRun,omitempty"`
	// Milliseconds that deciding took, and how many of them the decider.
	Milliseconds        float64 `json:"ms"`
	DeciderMilliseconds float64 `json:"deciderMs,omitempty"`
	// DeciderError is a constant, not the text of an error.
	DeciderError    string `json:"deciderError,omitempty"`
	EngineSemantics string `json:"engineSemantics,omitempty"`
	GateVersion     string `json:"gateVersion,omitempty"`
	// SnapshotAgeSeconds is how long ago the policies were last known to be in force, if that is worth a word.
	SnapshotAgeSeconds int64 `json:"snapshotAgeSeconds,omitempty"`

	Torn       *Torn       `json:"torn,omitempty"`
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
	Rotated    *Rotated    `json:"rotated,omitempty"`
	Dropped    *Dropped    `json:"dropped,omitempty"`
	Label      *Label      `json:"label,omitempty"`
	Unrecorded uint64      `json:"unrecorded,omitempty"`
}

// Asked is what one policy asked of its decider, and what came of it.
type Asked struct {
	// Policy as KIND/NAMESPACE/NAME, or KIND/NAME for a cluster policy.
	Policy  string `json:"policy"`
	Decider string `json:"decider"`
	// Audit says that the policy is only observed.
	Audit         bool                     `json:"audit,omitempty"`
	Answers       map[string]review.Answer `json:"answers,omitempty"`
	Fingerprint   string                   `json:"fingerprint,omitempty"`
	ModelHash     string                   `json:"modelHash,omitempty"`
	PromptVersion string                   `json:"promptVersion,omitempty"`
	Milliseconds  float64                  `json:"ms"`
	// Error is a constant that says why there is no answer.
	Error string `json:"error,omitempty"`
}

// Rotated is what a record of kind rotated tells.
type Rotated struct {
	// File that the chain comes from, a base name.
	File string `json:"file"`
	// Through is the last line there.
	Through Head `json:"through"`
}

// Dropped is what a record of kind dropped tells of a file that retention removes.
type Dropped struct {
	// File is a base name, and Bytes its length.
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
	// First is the number of its first line, and Through the last line.
	First   uint64 `json:"first"`
	Through Head   `json:"through"`
	// Why it goes: age, bytes or files.
	Why string `json:"why"`
}

// Label is a person's word about a decision.
type Label struct {
	// Decision is the id of the decision.
	Decision string `json:"decision"`
	// Outcome that was right: Allow or Block.
	Outcome review.Outcome `json:"outcome"`
	By      string         `json:"by"`
	// MessageDigest of what the person wrote, which is kept where the call is kept.
	MessageDigest string `json:"messageDigest,omitempty"`
}

// Caller is the service account that asked.
type Caller struct {
	Namespace      string `json:"namespace,omitempty"`
	ServiceAccount string `json:"serviceAccount,omitempty"`
}

// Approval that the decision raised or used.
type Approval struct {
	Name    string `json:"name"`
	By      string `json:"by,omitempty"`
	Outcome string `json:"outcome,omitempty"`
}

// Torn is what a record of kind recovered tells.
type Torn struct {
	// File that holds what was set aside, a base name.
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
}

// Entry is a line of the log: a record with what the writer gave it.
type Entry struct {
	V   int    `json:"v"`
	Seq uint64 `json:"seq"`
	// Prev is the digest of the line before, without its line feed.
	Prev string `json:"prev"`
	Record
}

// ErrNotEntry says that a line is not one of this log's lines.
var ErrNotEntry = errors.New("not a line of this log")

// Decode reads one line. It does not look at the chain; Verify does.
func Decode(line []byte) (Entry, error) {
	head, ok := parseHead(line)
	if !ok {
		return Entry{}, ErrNotEntry
	}
	var e Entry
	if err := json.Unmarshal(line, &e); err != nil {
		return Entry{}, fmt.Errorf("%w: %w", ErrNotEntry, err)
	}
	if e.V != Version || e.Seq != head.seq || e.Prev != head.prev {
		return Entry{}, ErrNotEntry // a member that stands twice
	}
	return e, nil
}
