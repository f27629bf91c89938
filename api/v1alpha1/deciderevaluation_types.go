package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DeciderEvaluation is one run of a case set against one revision of a decider.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=de,categories=gatewright
// +kubebuilder:printcolumn:name="Decider",type=string,JSONPath=`.spec.deciderRef.name`
// +kubebuilder:printcolumn:name="Complete",type=string,JSONPath=`.status.conditions[?(@.type=="Complete")].status`
// +kubebuilder:printcolumn:name="Passed",type=string,JSONPath=`.status.conditions[?(@.type=="Passed")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Passed")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type DeciderEvaluation struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what to run. Immutable.
	// +required
	Spec DeciderEvaluationSpec `json:"spec"`
	// status is what came out.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status DeciderEvaluationStatus `json:"status,omitzero"`
}

// DeciderEvaluationSpec is what to run.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec cannot be changed: create another DeciderEvaluation"
type DeciderEvaluationSpec struct {
	// deciderRef names the DeciderModel.
	// +required
	DeciderRef EvaluatedDecider `json:"deciderRef"`
	// caseSet to run.
	// +required
	CaseSet CaseSet `json:"caseSet"`
	// floors that must hold.
	// +optional
	Floors *EvaluationFloors `json:"floors,omitempty"`
	// repeats of each case, for the flap rate; 3 by default.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=20
	Repeats int32 `json:"repeats,omitempty"`
}

// EvaluatedDecider names a revision of a DeciderModel.
type EvaluatedDecider struct {
	// name of the DeciderModel.
	// +required
	Name ObjectName `json:"name"`
	// revision to run against. Empty: the active one.
	// +optional
	Revision ObjectName `json:"revision,omitempty"`
}

// DeciderEvaluationStatus is what came out of a run. The manager computes the floors from the counts.
type DeciderEvaluationStatus struct {
	// observedGeneration is the generation that the conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are Complete, Passed and Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// fingerprint of the decider that answered.
	// +optional
	Fingerprint Fingerprint `json:"fingerprint,omitempty"`
	// confusion by class.
	// +optional
	// +listType=map
	// +listMapKey=class
	// +kubebuilder:validation:MaxItems=16
	Confusion []ClassConfusion `json:"confusion,omitempty"`
	// flapped counts cases whose answer changed over the repeats.
	// +optional
	Flapped int32 `json:"flapped,omitempty"`
	// p50Milliseconds of a decision.
	// +optional
	P50Milliseconds int32 `json:"p50Milliseconds,omitempty"`
	// p95Milliseconds of a decision.
	// +optional
	P95Milliseconds int32 `json:"p95Milliseconds,omitempty"`
	// p99Milliseconds of a decision.
	// +optional
	P99Milliseconds int32 `json:"p99Milliseconds,omitempty"`
}

// ClassConfusion counts the cases of one class. Confirm counts as stopped.
type ClassConfusion struct {
	// class of the cases.
	// +required
	Class ClassName `json:"class"`
	// dangerousStopped are dangerous calls that were stopped.
	// +optional
	DangerousStopped int32 `json:"dangerousStopped,omitempty"`
	// dangerousAllowed are dangerous calls that were allowed.
	// +optional
	DangerousAllowed int32 `json:"dangerousAllowed,omitempty"`
	// benignStopped are benign calls that were stopped.
	// +optional
	BenignStopped int32 `json:"benignStopped,omitempty"`
	// benignAllowed are benign calls that were allowed.
	// +optional
	BenignAllowed int32 `json:"benignAllowed,omitempty"`
}

// DeciderEvaluationList is a list of DeciderEvaluation.
//
// +kubebuilder:object:root=true
type DeciderEvaluationList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// +required
	Items []DeciderEvaluation `json:"items"`
}
