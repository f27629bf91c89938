package v1alpha1

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
