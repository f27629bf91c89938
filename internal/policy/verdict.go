package policy

import (
	"slices"

	"gatewright.dev/gatewright/api/v1alpha1"
)

// Outcome of a verdict, strictest first so that the zero value is Block.
type Outcome uint8

// Outcomes.
const (
	Block Outcome = iota
	Clarify
	Confirm
	Allow
)

// String returns the outcome as the API writes it.
func (o Outcome) String() string { return string(o.API()) }

// API returns the outcome as an API constant. An unknown outcome is Block.
func (o Outcome) API() v1alpha1.Outcome {
	switch o {
	case Allow:
		return v1alpha1.OutcomeAllow
	case Confirm:
		return v1alpha1.OutcomeConfirm
	case Clarify:
		return v1alpha1.OutcomeClarify
	case Block:
	}
	return v1alpha1.OutcomeBlock
}

// outcomeOf reads an API constant. Anything unknown is Block.
func outcomeOf[T ~string](s T) Outcome {
	switch v1alpha1.Outcome(s) {
	case v1alpha1.OutcomeAllow:
		return Allow
	case v1alpha1.OutcomeConfirm:
		return Confirm
	case v1alpha1.OutcomeClarify:
		return Clarify
	case v1alpha1.OutcomeBlock:
	}
	return Block
}

// Remedy is the kind of change that would change an outcome.
type Remedy uint8

// Remedies.
const (
	RemedyNone Remedy = iota
	RemedyAskUser
	RemedyWaitForApproval
	RemedyChangeArguments
	RemedyAskAdmin
	RemedyRetry
)

// Obligation is one thing that stands between a call and its tool.
type Obligation struct {
	Outcome Outcome
	Reason  Reason
	// By is the rule that decided: rule:NAME, decider, policy:NAME.
	By string
	// Policy that asks for it, as PolicyID.String. Empty for the engine's own.
	Policy string
	// Message says what would change the outcome, without any argument's value.
	Message string
	Remedy  Remedy
	// Missing are JSON Pointers of arguments that are missing or came from elsewhere.
	Missing []string
}

// Key identifies a reason to confirm: an approval discharges the keys that its person saw, and no others.
func (o Obligation) Key() string { return o.Policy + " " + o.By + " " + string(o.Reason) }

// Verdict is what all policies together say about a call. The zero value is Block.
type Verdict struct {
	Outcome Outcome
	Reason  Reason
	By      string
	Message string
	Remedy  Remedy
	Missing []string
	// Obligations that remain, in the order in which they were found.
	Obligations []Obligation
	// WouldBe holds one verdict for each policy in mode Audit that came to one.
	WouldBe []AuditVerdict
}

// AuditVerdict is what a policy in mode Audit would have said.
type AuditVerdict struct {
	Policy  string
	Outcome Outcome
	Reason  Reason
	By      string
}

// ConfirmKeys returns the sorted keys of all reasons to confirm.
func (v Verdict) ConfirmKeys() []string {
	var keys []string
	for _, o := range v.Obligations {
		if o.Outcome == Confirm {
			keys = append(keys, o.Key())
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// strictest returns the first of the strictest obligations, or nil.
func strictest(obligations []Obligation) *Obligation {
	var found *Obligation
	for i := range obligations {
		if found == nil || obligations[i].Outcome < found.Outcome {
			found = &obligations[i]
		}
	}
	return found
}

// join shows the strictest obligation, or the given allowance where there is none.
func join(obligations []Obligation, allowed Verdict) Verdict {
	first := strictest(obligations)
	if first == nil {
		return allowed
	}
	return Verdict{
		Outcome: first.Outcome, Reason: first.Reason, By: first.By, Message: first.Message, Remedy: first.Remedy,
		Missing: first.Missing, Obligations: obligations,
	}
}
