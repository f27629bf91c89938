package permit

import "errors"

// Reason says why a permit was refused.
type Reason string

// Reasons.
const (
	// ReasonMissing: there is no permit.
	ReasonMissing Reason = "Missing"
	// ReasonMalformed: it is not a compact JWT of our type with our claims and no others.
	ReasonMalformed Reason = "Malformed"
	// ReasonBadSignature: its key has not signed it, or not with EdDSA.
	ReasonBadSignature Reason = "BadSignature"
	// ReasonUnknownKey: no key of the gate has its kid, or that key was retired.
	ReasonUnknownKey Reason = "UnknownKey"
	// ReasonKeysUnavailable: the gate's keys could not be fetched, or are too old to rely on.
	ReasonKeysUnavailable Reason = "KeysUnavailable"
	// ReasonExpired: its time is over.
	ReasonExpired Reason = "Expired"
	// ReasonNotYetValid: its time has not begun, or it was made in the future.
	ReasonNotYetValid Reason = "NotYetValid"
	// ReasonTooLong: it is good for longer than a permit may be.
	ReasonTooLong Reason = "TooLong"
	// ReasonWrongIssuer: another gate has signed it than the one that is trusted.
	ReasonWrongIssuer Reason = "WrongIssuer"
	// ReasonWrongAudience: it is for another tool server.
	ReasonWrongAudience Reason = "WrongAudience"
	// ReasonWrongTool: it is for another tool, or for the tool of another server.
	ReasonWrongTool Reason = "WrongTool"
	// ReasonWrongArguments: it is for other arguments.
	ReasonWrongArguments Reason = "WrongArguments"
	// ReasonUsed: it was used before.
	ReasonUsed Reason = "Used"
	// ReasonStoreUnavailable: nobody can say whether it was used before.
	ReasonStoreUnavailable Reason = "StoreUnavailable"
)

// messages say what would help, in words for the caller.
var messages = map[Reason]string{
	ReasonMissing:          "this tool runs only with a permit: ask the gate, and send the permit of its answer in the header " + Header,
	ReasonMalformed:        "the permit cannot be read: send it exactly as the gate gave it, once",
	ReasonBadSignature:     "the permit was not signed by the gate: send it exactly as the gate gave it",
	ReasonUnknownKey:       "the permit was signed with a key that is not in force here: ask this tool server's own gate again",
	ReasonKeysUnavailable:  "the gate's keys cannot be had now: try again later",
	ReasonExpired:          "the permit has expired: ask the gate again",
	ReasonNotYetValid:      "the permit is not good yet: check the clocks of gate and tool server",
	ReasonTooLong:          "the permit is good for longer than a permit may be: check the gate",
	ReasonWrongIssuer:      "the permit is of another gate: ask this tool server's own gate",
	ReasonWrongAudience:    "the permit is for another tool server: ask the gate about this call",
	ReasonWrongTool:        "the permit is for another tool: ask the gate about this call",
	ReasonWrongArguments:   "the permit is for other arguments: call with those that the gate has allowed, or ask it about these",
	ReasonUsed:             "the permit was used before: ask the gate again",
	ReasonStoreUnavailable: "it cannot be told now whether the permit was used before: try again later",
}

// Error is a refusal. Its text is for the caller and repeats nothing of permit or call; the cause is for a log.
type Error struct {
	Reason Reason
	Cause  error
}

// Error says in plain words what would help.
func (e *Error) Error() string { return messages[e.Reason] }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// ReasonOf gives the reason of a refusal, empty for an error that is none.
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ""
}

func refuse(r Reason, cause error) *Error { return &Error{Reason: r, Cause: cause} }
