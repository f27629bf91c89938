// Package v1alpha1 holds the kinds that a cluster admin applies: ToolPolicy, ClusterToolPolicy, DeciderModel,
// ToolApproval and DeciderEvaluation, of the group gatewright.dev.
//
// +kubebuilder:object:generate=true
// +groupName=gatewright.dev
package v1alpha1
