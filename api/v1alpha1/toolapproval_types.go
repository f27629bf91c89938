package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ToolApproval is one call that waits for a person. Only a gate creates it; it covers exactly one call, once.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ta,categories=gatewright
// +kubebuilder:selectablefield:JSONPath=`.spec.call.id`
// +kubebuilder:selectablefield:JSONPath=`.spec.call.callKey`
// +kubebuilder:printcolumn:name="Tool",type=string,JSONPath=`.spec.call.tool`
// +kubebuilder:printcolumn:name="Caller",type=string,JSONPath=`.spec.call.caller`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.spec.call.message`
// +kubebuilder:printcolumn:name="Decision",type=string,JSONPath=`.spec.decision.outcome`
// +kubebuilder:printcolumn:name="By",type=string,JSONPath=`.spec.decision.by.name`
// +kubebuilder:printcolumn:name="Used",type=string,JSONPath=`.status.conditions[?(@.type=="Consumed")].status`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.spec.call.expiresAt`
// +kubebuilder:printcolumn:name="User",type=string,priority=1,JSONPath=`.spec.call.onBehalfOf`
// +kubebuilder:printcolumn:name="Arguments",type=string,priority=1,JSONPath=`.spec.call.arguments`
// +kubebuilder:printcolumn:name="Class",type=string,priority=1,JSONPath=`.spec.call.class`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ToolApproval struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the call and the decision about it.
	// +required
	Spec ToolApprovalSpec `json:"spec"`
	// status mirrors what happened to it.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status ToolApprovalStatus `json:"status,omitzero"`
}

// ToolApprovalSpec is a call and the decision about it.
//
// +kubebuilder:validation:XValidation:rule="self.call == oldSelf.call",message="call is what the person sees and cannot be changed"
// +kubebuilder:validation:XValidation:rule="self.seal == oldSelf.seal",message="seal cannot be changed"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.decision) || (has(self.decision) && self.decision == oldSelf.decision)",message="decision can be made once"
type ToolApprovalSpec struct {
	// call that waits. Immutable.
	// +required
	Call PendingCall `json:"call"`
	// seal is the gate's signature over namespace, name and call. Unsealed objects are ignored.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Seal string `json:"seal"`
	// decision of a person, made once.
	// +optional
	Decision *ApprovalDecision `json:"decision,omitempty"`
}

// PendingCall is what a person is asked about, and all that the approval is bound to. It has at most 32 KiB as JSON; a
// call that does not fit is Block, TooLargeToApprove. So each text below may be long, and not all of them at once.
type PendingCall struct {
	// id is 128 random bits in hexadecimal.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{32}$`
	ID string `json:"id"`
	// callKey is the digest of the call as its caller put it. A rejection goes by it, whatever the policies say by then.
	// +required
	CallKey Digest `json:"callKey"`
	// caller is the service account, namespace/name.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=320
	Caller string `json:"caller"`
	// onBehalfOf is the end user, as claimed or attested.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	OnBehalfOf string `json:"onBehalfOf,omitempty"`
	// attestedBy is the front door that has signed end user and user's turns. Empty: the agent claims them.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	AttestedBy string `json:"attestedBy,omitempty"`
	// session of the agent.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Session string `json:"session,omitempty"`
	// tool that would run.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Tool string `json:"tool"`
	// server that offers the tool.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Server string `json:"server,omitempty"`
	// toolDescription is what the policy says that the tool does.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	ToolDescription string `json:"toolDescription,omitempty"`
	// class of the call. Empty for a tool that no policy lists.
	// +optional
	Class ClassName `json:"class,omitempty"`
	// base of the class.
	// +optional
	Base Base `json:"base,omitempty"`
	// argumentsDigest is the SHA-256 of the canonical arguments (RFC 8785).
	// +required
	ArgumentsDigest Digest `json:"argumentsDigest"`
	// arguments that would run, as canonical JSON, sensitive ones replaced by length and digest.
	// +required
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32768
	Arguments string `json:"arguments"`
	// sensitive are the arguments that are not shown, as JSON Pointers.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=4096
	Sensitive []string `json:"sensitive,omitempty"`
	// sources says where each value came from.
	// +optional
	// +listType=map
	// +listMapKey=argument
	// +kubebuilder:validation:MaxItems=2048
	Sources []ShownSource `json:"sources,omitempty"`
	// userRequest is the user's latest words, as claimed by the agent or attested.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	UserRequest string `json:"userRequest,omitempty"`
	// earlierTurns are what the user is said to have said before, oldest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MaxLength=16384
	EarlierTurns []string `json:"earlierTurns,omitempty"`
	// omittedTurns is how many turns before those are not shown, because they are too much to read.
	// +optional
	// +kubebuilder:validation:Minimum=0
	OmittedTurns int32 `json:"omittedTurns,omitempty"`
	// userTurnsDigest binds the approval to what the user had said.
	// +required
	UserTurnsDigest Digest `json:"userTurnsDigest"`
	// inbandClaims name who in the conversation claims that the call was approved already: user, assistant or tool. Such
	// a claim is no approval.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=32
	InbandClaims []string `json:"inbandClaims,omitempty"`
	// message asks in plain words.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message,omitempty"`
	// confirmReasons that the person sees, each as policy, rule and reason; the approval discharges these and no others.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	ConfirmReasons []string `json:"confirmReasons"`
	// reasons say the same in parts and in words.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Reasons []ShownReason `json:"reasons,omitempty"`
	// answers of the decider, in words.
	// +optional
	// +listType=map
	// +listMapKey=question
	// +kubebuilder:validation:MaxItems=64
	Answers []ShownAnswer `json:"answers,omitempty"`
	// numbers behind the answers: the probability of yes or of the choice, or the level.
	// +optional
	// +listType=map
	// +listMapKey=question
	// +kubebuilder:validation:MaxItems=64
	Numbers []ShownNumber `json:"numbers,omitempty"`
	// policyDigest is the digest of the policies in force for this tool.
	// +required
	PolicyDigest Digest `json:"policyDigest"`
	// policies in force, each as kind, name and generation.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=600
	Policies []string `json:"policies,omitempty"`
	// fingerprint of the decider that answered.
	// +optional
	Fingerprint Fingerprint `json:"fingerprint,omitempty"`
	// captureState is what the policies let be kept of the call elsewhere.
	// +optional
	CaptureState CaptureState `json:"captureState,omitempty"`
	// approvers says who may approve.
	// +required
	Approvers AllowedApprovers `json:"approvers"`
	// raisedAt is when the call began to wait.
	// +required
	RaisedAt metav1.Time `json:"raisedAt"`
	// expiresAt is the first moment at which it can no longer be decided or used, at most a day after raisedAt.
	// +required
	ExpiresAt metav1.Time `json:"expiresAt"`
}

// Digest is a SHA-256 as sha256: and lower-case hexadecimal.
//
// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{2,64}$`
// +kubebuilder:validation:MaxLength=71
type Digest string

// ShownSource says where the value of an argument came from.
type ShownSource struct {
	// argument is a JSON Pointer.
	// +required
	// +kubebuilder:validation:MaxLength=4096
	Argument string `json:"argument"`
	// source is User, Facts, Tool, Schema or Nowhere.
	// +required
	// +kubebuilder:validation:Enum=User;Facts;Tool;Schema;Nowhere
	Source string `json:"source"`
}

// ShownReason is one of the reasons to ask a person.
type ShownReason struct {
	// key is the reason as confirmReasons has it.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Key string `json:"key"`
	// policy that asks.
	// +optional
	// +kubebuilder:validation:MaxLength=600
	Policy string `json:"policy,omitempty"`
	// by is the part of the policy that asks, such as a rule.
	// +optional
	// +kubebuilder:validation:MaxLength=600
	By string `json:"by,omitempty"`
	// reason in PascalCase.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason"`
	// message in plain words.
	// +optional
	// +kubebuilder:validation:MaxLength=8192
	Message string `json:"message,omitempty"`
}

// ShownAnswer is one answer of the decider.
type ShownAnswer struct {
	// question that was asked.
	// +required
	Question QuestionName `json:"question"`
	// answer in words, such as yes 93 %.
	// +required
	// +kubebuilder:validation:MaxLength=512
	Answer string `json:"answer"`
}

// ShownNumber is the number behind an answer.
type ShownNumber struct {
	// question that was asked.
	// +required
	Question QuestionName `json:"question"`
	// number as the shortest decimal that denotes it.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^-?[0-9]+(\.[0-9]+)?(e[-+][0-9]+)?$`
	Number string `json:"number"`
}

// AllowedApprovers says who may approve a call, by the policies that were in force when it was raised. Without any
// channel nobody may.
type AllowedApprovers struct {
	// selfApproval says whether the user on whose behalf the call is made may approve it.
	// +required
	SelfApproval SelfApproval `json:"selfApproval"`
	// channels that an approval may come through.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Channels []ApprovalChannel `json:"channels,omitempty"`
	// attestors are the front doors whose signature counts.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Attestors []AllowedAttestor `json:"attestors,omitempty"`
	// issuers are those whose users count.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=512
	Issuers []string `json:"issuers,omitempty"`
}

// AllowedAttestor is a front door whose users may approve.
type AllowedAttestor struct {
	// name of the front door.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// publicKey is its Ed25519 key as a JSON Web Key.
	// +required
	// +kubebuilder:validation:MaxLength=4096
	PublicKey string `json:"publicKey"`
}

// ApprovalOutcome is what a person says.
//
// +kubebuilder:validation:Enum=Approve;Reject
type ApprovalOutcome string

// Approval outcomes.
const (
	Approve ApprovalOutcome = "Approve"
	Reject  ApprovalOutcome = "Reject"
)

// ApprovalDecision is what a person said.
type ApprovalDecision struct {
	// outcome is Approve or Reject.
	// +required
	Outcome ApprovalOutcome `json:"outcome"`
	// message of the person, handed on to the agent.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`
	// by is who decided. Filled in by admission from the user of the request where it is left out.
	// +optional
	By *Approver `json:"by,omitempty"`
	// evidence is the signature by which an end user's decision is verified again when it is used.
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	Evidence string `json:"evidence,omitempty"`
	// at is when it was made, by the API server's clock. Filled in by admission where it is left out; a time that is more
	// than a minute off is refused. Nothing goes by it but what people see.
	// +optional
	At *metav1.Time `json:"at,omitempty"`
}

// ApproverType says how an approver is known.
//
// +kubebuilder:validation:Enum=KubernetesUser;OIDC;Attested
type ApproverType string

// Approver types.
const (
	ApproverKubernetesUser ApproverType = "KubernetesUser"
	ApproverOIDC           ApproverType = "OIDC"
	ApproverAttested       ApproverType = "Attested"
)

// Approver is who decided.
type Approver struct {
	// type says how the name is known.
	// +required
	Type ApproverType `json:"type"`
	// issuer of the identity, for OIDC and Attested.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Issuer string `json:"issuer,omitempty"`
	// name of the user.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Name string `json:"name"`
}

// ToolApprovalStatus mirrors what happened to an approval.
type ToolApprovalStatus struct {
	// observedGeneration is the generation that the conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are Decided, Consumed and Expired.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ToolApprovalList is a list of ToolApproval.
//
// +kubebuilder:object:root=true
type ToolApprovalList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// +required
	Items []ToolApproval `json:"items"`
}
