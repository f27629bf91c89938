package v1alpha1

// Outcome is what a rule or a threshold asks for. The zero value is no outcome and is read as Block.
//
// +kubebuilder:validation:Enum=Allow;Clarify;Confirm;Block
type Outcome string

// Outcomes, weakest first.
const (
	OutcomeAllow   Outcome = "Allow"
	OutcomeConfirm Outcome = "Confirm"
	OutcomeClarify Outcome = "Clarify"
	OutcomeBlock   Outcome = "Block"
)

// StricterOutcome is an outcome that a rule may ask for: a rule never allows, it only leaves a call alone.
//
// +kubebuilder:validation:Enum=Clarify;Confirm;Block
type StricterOutcome string

// Base is what a class means for the invariants: whether a person is needed, whether a decision must be durable
// before it leaves. ReadOnly < Write < {External, Destructive}; the last two are not ordered.
//
// +kubebuilder:validation:Enum=ReadOnly;Write;External;Destructive
type Base string

// Bases, and the names of the classes that every policy has.
const (
	BaseReadOnly    Base = "ReadOnly"
	BaseWrite       Base = "Write"
	BaseExternal    Base = "External"
	BaseDestructive Base = "Destructive"
)

// ClassName names a class of tools: ReadOnly, Write, External, Destructive, or one that the policy declares.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[A-Z][A-Za-z0-9]*$`
type ClassName string

// QuestionName names a question: one of the built-in set, or one that the policy declares.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9_]*$`
type QuestionName string

// ObjectName is the name of another object.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
type ObjectName string

// Namespace is the name of a namespace.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
type Namespace string

// Scope is a permission that a service account holds, such as db:delete.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9:._/*-]*$`
type Scope string

// ReasonName is the machine-readable reason of an outcome, in PascalCase.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:Pattern=`^[A-Z][A-Za-z0-9]*$`
type ReasonName string

// Pointer is a JSON Pointer (RFC 6901) into the arguments of a call, such as /order/id.
//
// +kubebuilder:validation:MinLength=2
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:Pattern=`^(/([^~/]|~[01])*)+$`
type Pointer string

// Expression is a CEL expression.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=4096
type Expression string

// SHA256 is a SHA-256 in lower-case hexadecimal.
//
// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
// +kubebuilder:validation:MaxLength=64
type SHA256 string

// Fingerprint identifies everything that moves a decider's numbers: model bytes, engine, readout, prompt version,
// calibration. Thresholds belong to one fingerprint.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9:._/+-]*$`
type Fingerprint string

// Percent is an integer percentage of a probability.
//
// +kubebuilder:validation:Minimum=0
// +kubebuilder:validation:Maximum=100
type Percent int32

// ConditionType is the type of a condition of one of our kinds.
type ConditionType string

// ConditionReason is the reason of a condition, and of the event that goes with it.
type ConditionReason string

// Conditions shared by several kinds. A condition is present from the first pass, Unknown with reason Pending
// until it could be observed.
const (
	// ConditionAccepted says that the spec makes sense on its own.
	// True: Accepted. False: Invalid. Unknown: Pending.
	ConditionAccepted ConditionType = "Accepted"
	// ConditionResolvedRefs says that what the spec refers to exists and may be used.
	// True: ResolvedRefs. False: DeciderNotFound, DeciderNotAllowed, DeciderMismatch, FingerprintRequired,
	// DeciderNotVerified. Unknown: Pending.
	ConditionResolvedRefs ConditionType = "ResolvedRefs"
	// ConditionProgrammed says that every gate replica serves this generation.
	// True: Programmed. False: GenerationNotServed. Unknown: Pending, GatesNotObserved.
	ConditionProgrammed ConditionType = "Programmed"
	// ConditionReady sums up the others.
	// True: Ready. False: the reason of the first condition that is False. Unknown: Pending.
	ConditionReady ConditionType = "Ready"
	// ConditionVerified says that the bytes that were loaded have the pinned hash.
	// True: Verified. False: HashMismatch. Unknown: Pending, SelfReported.
	ConditionVerified ConditionType = "Verified"
	// ConditionEvaluated says that the floors of the evaluation hold for the active revision.
	// True: Evaluated, NotRequired. False: FloorMissed, EvaluationFailed, ShadowDisagreed, DeciderMismatch.
	// Unknown: Pending, Running, Shadowing.
	ConditionEvaluated ConditionType = "Evaluated"
	// ConditionAvailable says that the decider answers.
	// True: Available. False: Unavailable, DeciderMismatch, NameTaken. Unknown: Pending, GatesNotObserved.
	ConditionAvailable ConditionType = "Available"
	// ConditionDecided says that a person decided an approval.
	// True: Approved, Rejected. Unknown: Pending.
	ConditionDecided ConditionType = "Decided"
	// ConditionConsumed says that the approved call was let through, once.
	// True: Consumed. Unknown: Pending.
	ConditionConsumed ConditionType = "Consumed"
	// ConditionExpired says that the time to decide or to use the approval is over.
	// True: Expired. Unknown: Pending.
	ConditionExpired ConditionType = "Expired"
	// ConditionComplete says that an evaluation ran to its end.
	// True: Complete. False: Failed, NameTaken. Unknown: Pending, Running.
	ConditionComplete ConditionType = "Complete"
	// ConditionPassed says that an evaluation held its floors.
	// True: Passed. False: FloorMissed. Unknown: Pending.
	ConditionPassed ConditionType = "Passed"
)

// Reasons of conditions.
const (
	ReasonAccepted            ConditionReason = "Accepted"
	ReasonInvalid             ConditionReason = "Invalid"
	ReasonPending             ConditionReason = "Pending"
	ReasonResolvedRefs        ConditionReason = "ResolvedRefs"
	ReasonDeciderNotFound     ConditionReason = "DeciderNotFound"
	ReasonDeciderNotAllowed   ConditionReason = "DeciderNotAllowed"
	ReasonDeciderMismatch     ConditionReason = "DeciderMismatch"
	ReasonDeciderNotVerified  ConditionReason = "DeciderNotVerified"
	ReasonFingerprintRequired ConditionReason = "FingerprintRequired"
	ReasonProgrammed          ConditionReason = "Programmed"
	ReasonGenerationNotServed ConditionReason = "GenerationNotServed"
	ReasonGatesNotObserved    ConditionReason = "GatesNotObserved"
	ReasonReady               ConditionReason = "Ready"
	ReasonVerified            ConditionReason = "Verified"
	ReasonHashMismatch        ConditionReason = "HashMismatch"
	ReasonSelfReported        ConditionReason = "SelfReported"
	ReasonEvaluated           ConditionReason = "Evaluated"
	ReasonNotRequired         ConditionReason = "NotRequired"
	ReasonFloorMissed         ConditionReason = "FloorMissed"
	ReasonEvaluationFailed    ConditionReason = "EvaluationFailed"
	ReasonShadowing           ConditionReason = "Shadowing"
	ReasonShadowDisagreed     ConditionReason = "ShadowDisagreed"
	ReasonNameTaken           ConditionReason = "NameTaken"
	ReasonAvailable           ConditionReason = "Available"
	ReasonUnavailable         ConditionReason = "Unavailable"
	ReasonApproved            ConditionReason = "Approved"
	ReasonRejected            ConditionReason = "Rejected"
	ReasonConsumed            ConditionReason = "Consumed"
	ReasonExpired             ConditionReason = "Expired"
	ReasonComplete            ConditionReason = "Complete"
	ReasonRunning             ConditionReason = "Running"
	ReasonFailed              ConditionReason = "Failed"
	ReasonPassed              ConditionReason = "Passed"
)
