package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PolicyMode says whether a policy is enforced or only observed.
//
// +kubebuilder:validation:Enum=Enforce;Audit
type PolicyMode string

// Policy modes.
const (
	// ModeEnforce applies the policy.
	ModeEnforce PolicyMode = "Enforce"
	// ModeAudit decides and records as if enforced, and adds nothing to the outcome.
	ModeAudit PolicyMode = "Audit"
)

// UnknownTools says what happens to a tool that a policy does not list.
//
// +kubebuilder:validation:Enum=Block;Confirm;Defer
type UnknownTools string

// Treatments of unlisted tools.
const (
	UnknownToolsBlock   UnknownTools = "Block"
	UnknownToolsConfirm UnknownTools = "Confirm"
	// UnknownToolsDefer is no opinion: another policy decides.
	UnknownToolsDefer UnknownTools = "Defer"
)

// ContextTrust says whose word a policy takes for the user's turns and facts.
//
// +kubebuilder:validation:Enum=Caller;Attested
type ContextTrust string

// Context trusts.
const (
	// TrustCaller takes the word of the workload that calls.
	TrustCaller ContextTrust = "Caller"
	// TrustAttested takes only what a front door has signed; the rest counts as said by nobody.
	TrustAttested ContextTrust = "Attested"
)

// Disclosure says how much of a decision its caller sees.
//
// +kubebuilder:validation:Enum=Minimal;Full
type Disclosure string

// Disclosures.
const (
	// DiscloseMinimal gives reason, rule and remedy.
	DiscloseMinimal Disclosure = "Minimal"
	// DiscloseFull gives the probabilities too.
	DiscloseFull Disclosure = "Full"
)

// CaptureState says what is kept of a call beside its record, so that it can be judged again later.
//
// +kubebuilder:validation:Enum=Digest;Encrypted;Plain
type CaptureState string

// What is kept, from the most private to the least.
const (
	// CaptureDigest keeps digests only.
	CaptureDigest CaptureState = "Digest"
	// CaptureEncrypted keeps the call and its context, readable with a key that the gate does not have.
	CaptureEncrypted CaptureState = "Encrypted"
	// CapturePlain keeps the call and its context as they are.
	CapturePlain CaptureState = "Plain"
)

// PolicyRules is what ToolPolicy and ClusterToolPolicy have in common.
type PolicyRules struct {
	// mode is Enforce (default), or Audit: decided and recorded as if enforced, but nothing is added to the outcome;
	// the answer says what it would have been. An Audit policy never weakens an Enforce policy that also applies.
	// +optional
	// +kubebuilder:default=Enforce
	Mode PolicyMode `json:"mode,omitempty"`

	// contextTrust is Caller (default), or Attested: user turns and facts count only when context.attestation is a
	// valid signature by one of attestors; what is not attested has source Nowhere.
	// +optional
	// +kubebuilder:default=Caller
	ContextTrust ContextTrust `json:"contextTrust,omitempty"`

	// attestors are the front doors whose signature over the context is accepted. Required with contextTrust Attested.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Attestors []Attestor `json:"attestors,omitempty"`

	// deciderRef names the DeciderModel that answers questions. Needed as soon as a class or tool asks one.
	// +optional
	DeciderRef *DeciderReference `json:"deciderRef,omitempty"`

	// timeoutMilliseconds is how long the decider may take, 2000 by default. Over it, whenDeciderUnavailable of the
	// class decides.
	// +optional
	// +kubebuilder:default=2000
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=10000
	TimeoutMilliseconds int32 `json:"timeoutMilliseconds,omitempty"`

	// disclose says how much of a decision the caller sees: Minimal, or Full, with probabilities. Empty: Minimal in a
	// cluster, Full in gatewright serve. Of several policies the least disclosing decides.
	// +optional
	Disclose Disclosure `json:"disclose,omitempty"`

	// captureState says what is kept of a call and its context beside the audit record: Digest keeps digests only,
	// Encrypted the whole call, readable with a key that the gate does not have, Plain the whole call as it is. Only
	// what is kept can be judged again under another policy. Empty: no opinion; when no policy has one, Digest. Of
	// several policies the most private decides. A gate without a place to keep calls keeps digests.
	// +optional
	CaptureState CaptureState `json:"captureState,omitempty"`

	// questions are asked beside the built-in set, which is always there: asked, matches_request, exceeds_scope,
	// deletes_data, moves_money, leaves_the_system, declined, same_item, args_grounded, appropriate, needs_clarify,
	// severity, instructed_by_content, verdict.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Questions []Question `json:"questions,omitempty"`

	// classes say what happens to the tools of a class. A class that is used and not listed has the defaults of its
	// name: ReadOnly is allowed by rules alone, Write asks a person, External and Destructive always ask a person.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Classes []ClassPolicy `json:"classes,omitempty"`

	// tools lists the tools that may be called, by exact name or prefix. The most specific name wins.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +listMapKey=server
	// +kubebuilder:validation:MaxItems=256
	Tools []ToolRule `json:"tools,omitempty"`

	// grants are the scopes that service accounts hold. A scope never comes from a call.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Grants []Grant `json:"grants,omitempty"`

	// factsFrom lists the facts that a caller may state and those that it must. A fact that is not listed is not
	// seen by rules, questions or argument sources.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	FactsFrom []FactSource `json:"factsFrom,omitempty"`

	// approvals says how long a confirmation holds and how many a caller may cause.
	// +optional
	Approvals *ApprovalSettings `json:"approvals,omitempty"`

	// clarifyLimit is how often the same call may be answered Clarify without a new user turn (default 2); after that it
	// is Block, ClarifyExhausted.
	// +optional
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	ClarifyLimit int32 `json:"clarifyLimit,omitempty"`
}

// Attestor is a front door that signs the user's words.
type Attestor struct {
	// name says who it is, in records.
	// +required
	Name ObjectName `json:"name"`
	// publicKey is its Ed25519 public key as a JSON Web Key (RFC 8037). Any other key type is refused.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	PublicKey string `json:"publicKey"`
}

// DeciderReference names a DeciderModel.
type DeciderReference struct {
	// name of the DeciderModel.
	// +required
	Name ObjectName `json:"name"`
	// fingerprint that the thresholds were set for. Another fingerprint in an answer is DeciderMismatch. It may be
	// empty only if every ladder ends in Confirm, Clarify or Block.
	// +optional
	Fingerprint Fingerprint `json:"fingerprint,omitempty"`
}

// Grant gives scopes to a service account.
type Grant struct {
	// serviceAccount that holds the scopes.
	// +required
	ServiceAccount ObjectName `json:"serviceAccount"`
	// namespace of the service account. Required in a ClusterToolPolicy; in a ToolPolicy it is the policy's own.
	// +optional
	Namespace Namespace `json:"namespace,omitempty"`
	// scopes that it holds.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Scopes []Scope `json:"scopes"`
	// until is when the grant ends. Empty: it does not end.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
}

// FactSource declares a fact of the context.
type FactSource struct {
	// name of the fact in context.facts.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-zA-Z_][a-zA-Z0-9_]*$`
	Name string `json:"name"`
	// from says whose word counts: Caller (default), which can only tighten, or Attested.
	// +optional
	// +kubebuilder:default=Caller
	From ContextTrust `json:"from,omitempty"`
	// presence is Optional (default), or Required: a call without it is Block, FactMissing.
	// +optional
	// +kubebuilder:default=Optional
	Presence FactPresence `json:"presence,omitempty"`
}

// FactPresence says whether a fact must be stated.
//
// +kubebuilder:validation:Enum=Optional;Required
type FactPresence string

// Fact presences.
const (
	FactOptional FactPresence = "Optional"
	FactRequired FactPresence = "Required"
)

// ApprovalSettings bound what a confirmation is worth.
type ApprovalSettings struct {
	// ttlSeconds is how long a person has to decide and the caller to use it, 900 by default.
	// +optional
	// +kubebuilder:default=900
	// +kubebuilder:validation:Minimum=30
	// +kubebuilder:validation:Maximum=86400
	TTLSeconds int32 `json:"ttlSeconds,omitempty"`
	// permitSeconds is how long a permit is good for, 30 by default, at most 60.
	// +optional
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=5
	// +kubebuilder:validation:Maximum=60
	PermitSeconds int32 `json:"permitSeconds,omitempty"`
	// budget caps how many confirmations a caller may cause.
	// +optional
	Budget *ConfirmationBudget `json:"budget,omitempty"`
}

// ConfirmationBudget caps confirmations per caller and window.
type ConfirmationBudget struct {
	// confirmations in one window.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Confirmations int32 `json:"confirmations"`
	// windowSeconds is the length of the window.
	// +required
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=86400
	WindowSeconds int32 `json:"windowSeconds"`
	// beyond is what happens to a call that would need one more: Block (default), or Clarify.
	// +optional
	// +kubebuilder:default=Block
	Beyond BudgetOutcome `json:"beyond,omitempty"`
}

// BudgetOutcome is what happens beyond the budget of confirmations.
//
// +kubebuilder:validation:Enum=Clarify;Block
type BudgetOutcome string

// Outcomes beyond the budget.
const (
	BudgetClarify BudgetOutcome = "Clarify"
	BudgetBlock   BudgetOutcome = "Block"
)

// PolicyStatus is what is known about a policy. Counts by outcome are metrics.
type PolicyStatus struct {
	// observedGeneration is the generation that the conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are Accepted, ResolvedRefs, Programmed and Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
