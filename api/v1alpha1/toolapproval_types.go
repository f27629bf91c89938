package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ToolApproval is one call that waits for a person. Only a gate creates it; it covers exactly one call, once.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=ta,categories=gatewright
// +kubebuilder:printcolumn:name="Tool",type=string,JSONPath=`.spec.call.tool`
// +kubebuilder:printcolumn:name="Caller",type=string,JSONPath=`.spec.call.caller`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.spec.call.message`
// +kubebuilder:printcolumn:name="Decision",type=string,JSONPath=`.spec.decision.outcome`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.spec.call.expiresAt`
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
	Status ToolApprovalStatus `json:"status,omitempty"`
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

// PendingCall is what a person is asked about. The lengths add up to less than 32 KiB; a call that does not fit is
// Block, TooLargeToApprove.
type PendingCall struct {
	// id is 128 random bits in hexadecimal.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{32}$`
	ID string `json:"id"`
	// caller is the service account, namespace/name.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=320
	Caller string `json:"caller"`
	// onBehalfOf is the end user, as claimed or attested.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	OnBehalfOf string `json:"onBehalfOf,omitempty"`
	// session of the agent.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Session string `json:"session,omitempty"`
	// tool that would run.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Tool string `json:"tool"`
	// server that offers the tool.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Server string `json:"server,omitempty"`
	// class of the call.
	// +required
	Class ClassName `json:"class"`
	// argumentsDigest is the SHA-256 of the canonical arguments (RFC 8785).
	// +required
	ArgumentsDigest SHA256 `json:"argumentsDigest"`
	// arguments that would run, as canonical JSON, sensitive ones replaced by length and digest.
	// +required
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=16384
	Arguments string `json:"arguments"`
	// sources says where each value came from.
	// +optional
	// +listType=map
	// +listMapKey=argument
	// +kubebuilder:validation:MaxItems=64
	Sources []ShownSource `json:"sources,omitempty"`
	// userRequest is the user's latest words, as claimed by the agent or attested.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	UserRequest string `json:"userRequest,omitempty"`
	// userTurnsDigest binds the approval to what the user had said.
	// +required
	UserTurnsDigest SHA256 `json:"userTurnsDigest"`
	// message asks in plain words.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1000
	Message string `json:"message"`
	// confirmReasons that the person sees, each as policy, rule and reason; the approval discharges these and no others.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	ConfirmReasons []string `json:"confirmReasons"`
	// answers of the decider.
	// +optional
	// +listType=map
	// +listMapKey=question
	// +kubebuilder:validation:MaxItems=48
	Answers []ShownAnswer `json:"answers,omitempty"`
	// policyDigest is the digest of the policies in force for this tool.
	// +required
	PolicyDigest SHA256 `json:"policyDigest"`
	// fingerprint of the decider that answered.
	// +optional
	Fingerprint Fingerprint `json:"fingerprint,omitempty"`
	// expiresAt is when it can no longer be decided or used.
	// +required
	ExpiresAt metav1.Time `json:"expiresAt"`
}

// ShownSource says where the value of an argument came from.
type ShownSource struct {
	// argument is a JSON Pointer.
	// +required
	Argument Pointer `json:"argument"`
	// source is User, Facts, Tool, Schema or Nowhere.
	// +required
	// +kubebuilder:validation:Enum=User;Facts;Tool;Schema;Nowhere
	Source string `json:"source"`
}

// ShownAnswer is one answer of the decider.
type ShownAnswer struct {
	// question that was asked.
	// +required
	Question QuestionName `json:"question"`
	// answer in words, such as yes 93 %.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Answer string `json:"answer"`
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
	// +kubebuilder:validation:MaxLength=1000
	Message string `json:"message,omitempty"`
	// by is who decided. Filled in by admission from the user of the request.
	// +optional
	By *Approver `json:"by,omitempty"`
	// evidence is the signature by which an end user's decision is verified again when it is used.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Evidence string `json:"evidence,omitempty"`
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
