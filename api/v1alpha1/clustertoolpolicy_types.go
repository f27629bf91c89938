package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterToolPolicy is a floor for all or selected namespaces: policies of a namespace add to it and never take from it.
// On its own it admits nobody.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=ctp,categories=gatewright
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterToolPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what holds.
	// +required
	Spec ClusterToolPolicySpec `json:"spec"`
	// status is what is known about it.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status PolicyStatus `json:"status,omitzero"`
}

// ClusterToolPolicySpec is the policy for callers of many namespaces.
//
// +kubebuilder:validation:XValidation:rule="!has(self.contextTrust) || self.contextTrust != 'Attested' || has(self.attestors)",message="attestors is required when contextTrust is Attested: name the front door's key"
// +kubebuilder:validation:XValidation:rule="!has(self.grants) || self.grants.all(g, has(g.namespace))",message="grants in a ClusterToolPolicy need a namespace: set grants[].namespace"
type ClusterToolPolicySpec struct {
	// namespaces that it applies to. Empty: all.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	Namespaces []Namespace `json:"namespaces,omitempty"`
	// unknownTools is Defer (default), Confirm or Block: what happens to every tool that this policy does not list.
	// +optional
	// +kubebuilder:default=Defer
	UnknownTools UnknownTools `json:"unknownTools,omitempty"`
	// minimumMode is Audit (default), or Enforce: a ToolPolicy in mode Audit of a selected namespace is then enforced.
	// +optional
	// +kubebuilder:default=Audit
	MinimumMode PolicyMode `json:"minimumMode,omitempty"`

	PolicyRules `json:",inline"`
}

// ClusterToolPolicyList is a list of ClusterToolPolicy.
//
// +kubebuilder:object:root=true
type ClusterToolPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// +required
	Items []ClusterToolPolicy `json:"items"`
}
