package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is gatewright.dev/v1alpha1.
var GroupVersion = schema.GroupVersion{Group: "gatewright.dev", Version: "v1alpha1"}

// Kinds of this group version.
const (
	KindToolPolicy        = "ToolPolicy"
	KindClusterToolPolicy = "ClusterToolPolicy"
	KindDeciderModel      = "DeciderModel"
	KindToolApproval      = "ToolApproval"
	KindDeciderEvaluation = "DeciderEvaluation"
)

// AddToScheme registers the kinds of this group version.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&ToolPolicy{}, &ToolPolicyList{},
		&ClusterToolPolicy{}, &ClusterToolPolicyList{},
		&DeciderModel{}, &DeciderModelList{},
		&ToolApproval{}, &ToolApprovalList{},
		&DeciderEvaluation{}, &DeciderEvaluationList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
