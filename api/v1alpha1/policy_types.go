package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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

// QuestionType is the type of a question, and so of its answer.
//
// +kubebuilder:validation:Enum=YesNo;Choice;Score
type QuestionType string

// Question types.
const (
	QuestionYesNo  QuestionType = "YesNo"
	QuestionChoice QuestionType = "Choice"
	QuestionScore  QuestionType = "Score"
)

// SeenContent is untrusted content that a question is shown.
//
// +kubebuilder:validation:Enum=ToolResults
type SeenContent string

// SeesToolResults shows tool results to a question, in a request of its own; its answer can only tighten.
const SeesToolResults SeenContent = "ToolResults"

// Question is one typed question about a proposed call.
//
// +kubebuilder:validation:XValidation:rule="self.type == 'YesNo' || !has(self.yesNo)",message="yesNo is only for type YesNo: remove it or change type"
// +kubebuilder:validation:XValidation:rule="self.type == 'Choice' ? has(self.choice) : !has(self.choice)",message="choice is required for type Choice and only allowed there: set choice.options, or change type"
// +kubebuilder:validation:XValidation:rule="self.type == 'Score' ? has(self.score) : !has(self.score)",message="score is required for type Score and only allowed there: set score.levels, or change type"
type Question struct {
	// name by which thresholds refer to it. A built-in name is refused: its text is versioned.
	// +required
	Name QuestionName `json:"name"`
	// type of the answer.
	// +required
	Type QuestionType `json:"type"`
	// instructions is the question itself: one narrow judgment, with the rule in the text.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2000
	Instructions string `json:"instructions"`
	// yesNo describes both answers.
	// +optional
	YesNo *YesNoCriteria `json:"yesNo,omitempty"`
	// choice lists the options.
	// +optional
	Choice *ChoiceCriteria `json:"choice,omitempty"`
	// score lists the levels.
	// +optional
	Score *ScoreCriteria `json:"score,omitempty"`
	// sees names untrusted content to show. Such a question is asked in a request of its own, and thresholds may use
	// it only towards Clarify, Confirm and Block.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1
	Sees []SeenContent `json:"sees,omitempty"`
}

// YesNoCriteria describes both answers of a YesNo question.
type YesNoCriteria struct {
	// whenTrue describes yes.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=500
	WhenTrue string `json:"whenTrue"`
	// whenFalse describes no.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=500
	WhenFalse string `json:"whenFalse"`
}

// ChoiceCriteria lists the options of a Choice question, at most 26, the most that every readout can label.
type ChoiceCriteria struct {
	// options in the order in which they are asked.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=26
	Options []ChoiceOption `json:"options"`
}

// ChoiceOption is one option of a Choice question.
type ChoiceOption struct {
	// name of the option, as thresholds refer to it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9_.-]*$`
	Name string `json:"name"`
	// description of what it means.
	// +optional
	// +kubebuilder:validation:MaxLength=500
	Description string `json:"description,omitempty"`
}

// ScoreCriteria lists the levels of a Score question, lowest first.
type ScoreCriteria struct {
	// levels in words, the first is level 0.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=500
	Levels []string `json:"levels"`
}

// DeciderUse says whether a class asks the decider.
//
// +kubebuilder:validation:Enum=Skip;Ask
type DeciderUse string

// Decider uses.
const (
	DeciderSkip DeciderUse = "Skip"
	DeciderAsk  DeciderUse = "Ask"
)

// ApprovalRule says when a person is needed.
//
// +kubebuilder:validation:Enum=WhenUnsure;Always;Forbidden
type ApprovalRule string

// Approval rules.
const (
	// ApprovalWhenUnsure lets the ladder decide.
	ApprovalWhenUnsure ApprovalRule = "WhenUnsure"
	// ApprovalAlways needs a person for every call, whatever the ladder says.
	ApprovalAlways ApprovalRule = "Always"
	// ApprovalForbidden blocks the class: no person can let it through.
	ApprovalForbidden ApprovalRule = "Forbidden"
)

// UnavailableOutcome is what happens when the decider was needed and gave no usable answer.
//
// +kubebuilder:validation:Enum=Block;Confirm
type UnavailableOutcome string

// Outcomes of an unavailable decider.
const (
	UnavailableBlock   UnavailableOutcome = "Block"
	UnavailableConfirm UnavailableOutcome = "Confirm"
)

// SelfApproval says whether the user on whose behalf a call is made may approve it.
//
// +kubebuilder:validation:Enum=Allow;Forbid
type SelfApproval string

// Self approvals.
const (
	SelfApprovalAllow  SelfApproval = "Allow"
	SelfApprovalForbid SelfApproval = "Forbid"
)

// ApprovalChannel is a way in which an approval may be given.
//
// +kubebuilder:validation:Enum=Kubernetes;OIDC;Attested
type ApprovalChannel string

// Approval channels.
const (
	ChannelKubernetes ApprovalChannel = "Kubernetes"
	ChannelOIDC       ApprovalChannel = "OIDC"
	ChannelAttested   ApprovalChannel = "Attested"
)

// ClassPolicy says what happens to the tools of one class.
//
// +kubebuilder:validation:XValidation:rule="self.name in ['ReadOnly','Write','External','Destructive'] ? (!has(self.base) || self.base == self.name) : has(self.base)",message="base is required for a class that is not built in, and fixed for ReadOnly, Write, External and Destructive: set base, or remove it"
// +kubebuilder:validation:XValidation:rule="!has(self.decider) || self.decider != 'Ask' || has(self.otherwise)",message="otherwise is required when decider is Ask: say what happens when no threshold matches"
// +kubebuilder:validation:XValidation:rule="!has(self.decider) || self.decider != 'Ask' || has(self.questions)",message="questions is required when decider is Ask: name at least one question"
// +kubebuilder:validation:XValidation:rule="has(self.decider) && self.decider == 'Ask' || (!has(self.thresholds) && !has(self.questions))",message="thresholds and questions need decider: Ask"
type ClassPolicy struct {
	// name of the class.
	// +required
	Name ClassName `json:"name"`
	// base is what the class means for the invariants. A class of one's own needs it; its settings may only tighten it.
	// +optional
	Base Base `json:"base,omitempty"`
	// decider is Skip (default): rules alone decide and otherwise says what happens when none objects; or Ask.
	// +optional
	// +kubebuilder:default=Skip
	Decider DeciderUse `json:"decider,omitempty"`
	// questions to ask, in this order.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Questions []QuestionName `json:"questions,omitempty"`
	// thresholds are tried in order; the first that matches decides.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Thresholds []Threshold `json:"thresholds,omitempty"`
	// otherwise is what happens when no threshold matches. Without a decider it is the outcome of calls that no rule
	// objects to: Allow for ReadOnly, Confirm for the others by default.
	// +optional
	Otherwise *Fallback `json:"otherwise,omitempty"`
	// approval is WhenUnsure (the ladder decides), Always (a person for every call) or Forbidden (always Block).
	// Default: WhenUnsure for base ReadOnly and Write, Always for External and Destructive.
	// +optional
	Approval ApprovalRule `json:"approval,omitempty"`
	// whenDeciderUnavailable is Block or Confirm, when the decider was needed and gave no usable answer.
	// Default: Confirm for base ReadOnly and Write, Block for External and Destructive.
	// +optional
	WhenDeciderUnavailable UnavailableOutcome `json:"whenDeciderUnavailable,omitempty"`
	// selfApproval says whether the user on whose behalf the call is made may approve it. Default: Forbid for base
	// Destructive, Allow otherwise. The calling service account never may.
	// +optional
	SelfApproval SelfApproval `json:"selfApproval,omitempty"`
	// channels by which an approval may be given. Default: Kubernetes.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=3
	Channels []ApprovalChannel `json:"channels,omitempty"`
}

// Fallback is the outcome when no threshold matches.
type Fallback struct {
	// outcome of the call.
	// +required
	Outcome Outcome `json:"outcome"`
	// reason in the answer. Default: NoThresholdMatched.
	// +optional
	Reason ReasonName `json:"reason,omitempty"`
	// message to the caller, in plain words.
	// +optional
	// +kubebuilder:validation:MaxLength=500
	Message string `json:"message,omitempty"`
}

// Threshold is one step of a ladder.
//
// +kubebuilder:validation:XValidation:rule="has(self.when) != has(self.confidenceBelow)",message="exactly one of when and confidenceBelow is needed"
type Threshold struct {
	// when lists conditions that must all hold.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	When []Condition `json:"when,omitempty"`
	// confidenceBelow matches when the least confident of the named answers is below the floor.
	// +optional
	ConfidenceBelow *ConfidenceFloor `json:"confidenceBelow,omitempty"`
	// outcome when it matches.
	// +required
	Outcome Outcome `json:"outcome"`
	// reason in the answer. Default: Threshold.
	// +optional
	Reason ReasonName `json:"reason,omitempty"`
	// message to the caller, in plain words.
	// +optional
	// +kubebuilder:validation:MaxLength=500
	Message string `json:"message,omitempty"`
}

// Condition compares one answer with one number. Answers are compared unrounded.
//
// +kubebuilder:validation:XValidation:rule="[has(self.above), has(self.atLeast), has(self.below), has(self.atMost), has(self.is)].filter(x, x).size() == 1",message="exactly one of above, atLeast, below, atMost and is is needed"
// +kubebuilder:validation:XValidation:rule="!(has(self.option) && has(self.level))",message="option is for a Choice and level is for a Score: set at most one"
// +kubebuilder:validation:XValidation:rule="!has(self.is) || (!has(self.option) && !has(self.level))",message="is compares the chosen option: remove option and level"
type Condition struct {
	// question whose answer is compared. It must be one that the class or tool asks.
	// +required
	Question QuestionName `json:"question"`
	// option of a Choice question whose probability is compared. Required for numbers on a Choice.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Option string `json:"option,omitempty"`
	// level of a Score question whose probability is compared, in percent. Without it the expected level is compared,
	// in hundredths of a level.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9
	Level *int32 `json:"level,omitempty"`
	// above matches when the answer is greater. Percent; for a Score without level, hundredths of a level.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=900
	Above *int32 `json:"above,omitempty"`
	// atLeast matches when the answer is greater or equal.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=900
	AtLeast *int32 `json:"atLeast,omitempty"`
	// below matches when the answer is smaller.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=900
	Below *int32 `json:"below,omitempty"`
	// atMost matches when the answer is smaller or equal.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=900
	AtMost *int32 `json:"atMost,omitempty"`
	// is matches when this option of a Choice was chosen. The only comparison for a decider without probabilities.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Is string `json:"is,omitempty"`
}

// ConfidenceFloor names the answers whose confidence must reach a floor. Confidence is max(p, 1-p) for a YesNo and
// the top probability for a Choice or Score.
type ConfidenceFloor struct {
	// percent is the floor.
	// +required
	Percent Percent `json:"percent"`
	// questions whose confidence is looked at.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Questions []QuestionName `json:"questions"`
}

// Effect is a consequence that a tool always has.
//
// +kubebuilder:validation:Enum=DeletesData;MovesMoney;LeavesTheSystem
type Effect string

// Effects. Each answers the question of the same meaning without asking.
const (
	EffectDeletesData     Effect = "DeletesData"
	EffectMovesMoney      Effect = "MovesMoney"
	EffectLeavesTheSystem Effect = "LeavesTheSystem"
)

// SchemaViolationOutcome is what happens to arguments that do not fit the schema.
//
// +kubebuilder:validation:Enum=Clarify;Block
type SchemaViolationOutcome string

// Outcomes of a schema violation.
const (
	SchemaViolationClarify SchemaViolationOutcome = "Clarify"
	SchemaViolationBlock   SchemaViolationOutcome = "Block"
)

// PermitUse says whether the tool itself checks a permit.
//
// +kubebuilder:validation:Enum=None;Required
type PermitUse string

// Permit uses.
const (
	// PermitNone: the gate is advice for this tool.
	PermitNone PermitUse = "None"
	// PermitRequired: the tool server refuses a call without a fresh permit, so the gate is enforced.
	PermitRequired PermitUse = "Required"
)

// ToolRule says what holds for one tool, or for all tools with a prefix.
//
// +kubebuilder:validation:XValidation:rule="!has(self.permit) || self.permit != 'Required' || has(self.permitAudience)",message="permitAudience is required when permit is Required: name the tool server"
// +kubebuilder:validation:XValidation:rule="!has(self.decider) || self.decider != 'Ask' || (has(self.otherwise) && has(self.questions))",message="questions and otherwise are required when decider is Ask"
// +kubebuilder:validation:XValidation:rule="has(self.decider) && self.decider == 'Ask' || (!has(self.thresholds) && !has(self.questions))",message="thresholds and questions need decider: Ask"
type ToolRule struct {
	// name of the tool, or a prefix that ends in *: db.* matches db.read and not db. Compared byte for byte.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9_][A-Za-z0-9_.:/-]*\*?|\*)$`
	Name string `json:"name"`
	// server that offers the tool. Empty matches every server; a rule with a server is more specific.
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9][A-Za-z0-9_.:/-]*)?$`
	Server string `json:"server"`
	// class is the worst that the tool can do.
	// +required
	Class ClassName `json:"class"`
	// lowerTo lowers the class for calls whose parsed arguments are shown to do less. Any error, doubt or part that is
	// not covered leaves the class as it is. Tried in order; the first that holds decides.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	LowerTo []LowerRule `json:"lowerTo,omitempty"`
	// effects that every call has. They answer deletes_data, moves_money and leaves_the_system without asking.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=3
	Effects []Effect `json:"effects,omitempty"`
	// description of the tool, for the decider and the approver.
	// +optional
	// +kubebuilder:validation:MaxLength=2000
	Description string `json:"description,omitempty"`
	// note is one line of policy about this tool, for the decider.
	// +optional
	// +kubebuilder:validation:MaxLength=500
	Note string `json:"note,omitempty"`
	// requiredScopes must all be granted to the caller by this object, or by a ClusterToolPolicy.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	RequiredScopes []Scope `json:"requiredScopes,omitempty"`
	// argumentsSchema is a JSON Schema (2020-12) that the arguments must fit. References to other documents are refused.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	ArgumentsSchema *apiextensionsv1.JSON `json:"argumentsSchema,omitempty"`
	// onSchemaViolation is Block (default) or Clarify.
	// +optional
	// +kubebuilder:default=Block
	OnSchemaViolation SchemaViolationOutcome `json:"onSchemaViolation,omitempty"`
	// clarifyMessage is what the agent is told to ask the user when arguments are missing.
	// +optional
	// +kubebuilder:validation:MaxLength=500
	ClarifyMessage string `json:"clarifyMessage,omitempty"`
	// paths confines arguments that are file paths.
	// +optional
	// +listType=map
	// +listMapKey=argument
	// +kubebuilder:validation:MaxItems=16
	Paths []PathRule `json:"paths,omitempty"`
	// hosts confines arguments that are URLs, hosts or e-mail addresses.
	// +optional
	// +listType=map
	// +listMapKey=argument
	// +kubebuilder:validation:MaxItems=16
	Hosts []HostRule `json:"hosts,omitempty"`
	// argumentSources says where values must come from.
	// +optional
	// +listType=map
	// +listMapKey=argument
	// +kubebuilder:validation:MaxItems=32
	ArgumentSources []ArgumentSourceRule `json:"argumentSources,omitempty"`
	// rules are CEL expressions over the call; the first that is true decides. An expression that fails is Block,
	// RuleFailed.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Rules []CallRule `json:"rules,omitempty"`
	// decider overrides the class: Skip or Ask.
	// +optional
	Decider DeciderUse `json:"decider,omitempty"`
	// questions overrides the class.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Questions []QuestionName `json:"questions,omitempty"`
	// thresholds overrides the class.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Thresholds []Threshold `json:"thresholds,omitempty"`
	// otherwise overrides the class.
	// +optional
	Otherwise *Fallback `json:"otherwise,omitempty"`
	// confirmMessage is a CEL expression of type string: what a person is asked, in plain words.
	// +optional
	ConfirmMessage Expression `json:"confirmMessage,omitempty"`
	// sensitive arguments are shown to approvers as length and digest only.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	Sensitive []Pointer `json:"sensitive,omitempty"`
	// permit is None (default) or Required: the tool server checks a permit for exactly these arguments.
	// +optional
	// +kubebuilder:default=None
	Permit PermitUse `json:"permit,omitempty"`
	// permitAudience is the audience of the permit: the tool server.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PermitAudience string `json:"permitAudience,omitempty"`
}

// LowerRule lowers the class of a call.
type LowerRule struct {
	// class to lower to.
	// +required
	Class ClassName `json:"class"`
	// when is a CEL expression over args, tool and caller. It must be true.
	// +required
	When Expression `json:"when"`
}

// PathRule confines an argument to directories.
type PathRule struct {
	// argument that holds a path, or a list of them.
	// +required
	Argument Pointer `json:"argument"`
	// roots are the directories below which the path must stay.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	Roots []string `json:"roots"`
}

// HostRule confines an argument to hosts.
type HostRule struct {
	// argument that holds a URL, a host or an e-mail address, or a list of them.
	// +required
	Argument Pointer `json:"argument"`
	// allowed hosts: api.example.com, *.example.com, host:port, https://host, or an address written out.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Allowed []string `json:"allowed"`
}

// ValueSource is where a value was first seen.
//
// +kubebuilder:validation:Enum=User;Facts;Tool;Schema
type ValueSource string

// Value sources. A value of no source is Nowhere, which cannot be allowed.
const (
	SourceUser   ValueSource = "User"
	SourceFacts  ValueSource = "Facts"
	SourceTool   ValueSource = "Tool"
	SourceSchema ValueSource = "Schema"
)

// ArgumentSourceRule says where the value of an argument must come from.
type ArgumentSourceRule struct {
	// argument that the rule is about, with everything below it; /* is every argument that no other rule names.
	// +required
	Argument Pointer `json:"argument"`
	// from lists the accepted sources: User (the user's own words), Facts, Tool (a tool result), Schema (an enum,
	// constant or default of argumentsSchema).
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	From []ValueSource `json:"from"`
	// otherwise is the outcome for a value from elsewhere.
	// +required
	Otherwise StricterOutcome `json:"otherwise"`
}

// CallRule is a CEL rule about a call.
type CallRule struct {
	// name of the rule, in answers and records.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// when is a CEL expression of type bool over args, tool, caller, facts, scopes, sources and user. When it is true
	// the outcome applies.
	// +required
	When Expression `json:"when"`
	// outcome when it is true.
	// +required
	Outcome StricterOutcome `json:"outcome"`
	// message to the caller: what would change the outcome.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=500
	Message string `json:"message"`
	// reason in the answer. Default: Rule.
	// +optional
	Reason ReasonName `json:"reason,omitempty"`
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
