package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ToolPolicy says what the callers of its namespace may do with tools.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=tp,categories=gatewright
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Decider",type=string,priority=1,JSONPath=`.spec.deciderRef.name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ToolPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what holds.
	// +required
	Spec ToolPolicySpec `json:"spec"`
	// status is what is known about it.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status PolicyStatus `json:"status,omitzero"`
}

// ToolPolicySpec is the policy for callers of one namespace.
//
// +kubebuilder:validation:XValidation:rule="!has(self.contextTrust) || self.contextTrust != 'Attested' || has(self.attestors)",message="attestors is required when contextTrust is Attested: name the front door's key"
// +kubebuilder:validation:XValidation:rule="!has(self.grants) || self.grants.all(g, !has(g.namespace))",message="grants in a ToolPolicy are for its own namespace: remove namespace"
type ToolPolicySpec struct {
	// subjects are the service accounts of this namespace that it applies to. Empty: all.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	Subjects []ObjectName `json:"subjects,omitempty"`
	// unknownTools is Block (default), Confirm, or Defer: what happens to every tool that this policy does not list,
	// whatever other policies list. Only Defer is no opinion.
	// +optional
	// +kubebuilder:default=Block
	UnknownTools UnknownTools `json:"unknownTools,omitempty"`

	PolicyRules `json:",inline"`
}

// ToolPolicyList is a list of ToolPolicy.
//
// +kubebuilder:object:root=true
type ToolPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// +required
	Items []ToolPolicy `json:"items"`
}
