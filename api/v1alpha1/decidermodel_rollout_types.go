package v1alpha1

// Rollout says when a new revision may take over.
type Rollout struct {
	// evaluation that a candidate must pass before it serves.
	// +optional
	Evaluation *EvaluationGate `json:"evaluation,omitempty"`
	// shadow sends live calls to active and candidate and counts disagreements before the change.
	// +optional
	Shadow *ShadowComparison `json:"shadow,omitempty"`
}

// EvaluationGate is the case set and the floors of a rollout.
type EvaluationGate struct {
	// caseSet to run.
	// +required
	CaseSet CaseSet `json:"caseSet"`
	// floors that must hold.
	// +required
	Floors EvaluationFloors `json:"floors"`
}

// CaseSetType says where labelled cases come from.
//
// +kubebuilder:validation:Enum=ConfigMap;OCI
type CaseSetType string

// Case set types.
const (
	CaseSetConfigMap CaseSetType = "ConfigMap"
	CaseSetOCI       CaseSetType = "OCI"
)

// CaseSet names labelled cases, pinned by digest.
//
// +kubebuilder:validation:XValidation:rule="self.type == 'ConfigMap' ? has(self.configMapName) : !has(self.configMapName)",message="configMapName is required for type ConfigMap and only allowed there"
// +kubebuilder:validation:XValidation:rule="self.type == 'OCI' ? has(self.oci) : !has(self.oci)",message="oci is required for type OCI and only allowed there"
type CaseSet struct {
	// type says which of the members is used.
	// +required
	Type CaseSetType `json:"type"`
	// sha256 of the cases.
	// +required
	SHA256 SHA256 `json:"sha256"`
	// ladderSHA256 is that of a file ladder.yaml beside the cases: a ToolPolicy whose classes, questions and thresholds
	// judge them. Without it matches_request alone decides.
	// +optional
	LadderSHA256 SHA256 `json:"ladderSHA256,omitempty"`
	// configMapName in Gatewright's namespace, with the cases as JSON lines under the key cases.jsonl.
	// +optional
	ConfigMapName ObjectName `json:"configMapName,omitempty"`
	// oci is a file in an image.
	// +optional
	OCI *OCIArtifact `json:"oci,omitempty"`
}

// EvaluationFloors are the bars of an evaluation. An absent one is not looked at.
type EvaluationFloors struct {
	// recallPercent of dangerous calls that must be stopped.
	// +optional
	RecallPercent *Percent `json:"recallPercent,omitempty"`
	// falseBlockPercent of benign calls that may be stopped, by class.
	// +optional
	// +listType=map
	// +listMapKey=class
	// +kubebuilder:validation:MaxItems=16
	FalseBlockPercent []ClassPercent `json:"falseBlockPercent,omitempty"`
	// flapPercent of cases whose answer may change over repeats.
	// +optional
	FlapPercent *Percent `json:"flapPercent,omitempty"`
	// p95Milliseconds that a decision may take.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=60000
	P95Milliseconds *int32 `json:"p95Milliseconds,omitempty"`
	// p99Milliseconds that a decision may take. Of fewer than 100 decisions it is the slowest.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=60000
	P99Milliseconds *int32 `json:"p99Milliseconds,omitempty"`
}

// ClassPercent is a bar for one class.
type ClassPercent struct {
	// class it is for.
	// +required
	Class ClassName `json:"class"`
	// percent at most.
	// +required
	Percent Percent `json:"percent"`
}

// ShadowComparison compares a candidate with the active revision on live calls.
type ShadowComparison struct {
	// decisions to compare before the change.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Decisions int32 `json:"decisions"`
	// maxDisagreementPercent of decisions that may differ.
	// +required
	MaxDisagreementPercent Percent `json:"maxDisagreementPercent"`
}

// ShadowResult counts live calls on which two revisions were compared.
type ShadowResult struct {
	// compared counts the calls.
	// +optional
	Compared int64 `json:"compared,omitempty"`
	// disagreed counts those of them that would have had another outcome.
	// +optional
	Disagreed int64 `json:"disagreed,omitempty"`
	// failed counts further calls to which the candidate gave no answer. They count as disagreements.
	// +optional
	Failed int64 `json:"failed,omitempty"`
	// byClass has compared and disagreed by class of the call: of the 16 classes with the most disagreement.
	// +optional
	// +listType=map
	// +listMapKey=class
	// +kubebuilder:validation:MaxItems=16
	ByClass []ShadowClassResult `json:"byClass,omitempty"`
}

// ShadowClassResult is a ShadowResult of one class of calls.
type ShadowClassResult struct {
	// class of the calls.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Class string `json:"class"`
	// compared counts the calls.
	// +optional
	Compared int64 `json:"compared,omitempty"`
	// disagreed counts those of them that would have had another outcome.
	// +optional
	Disagreed int64 `json:"disagreed,omitempty"`
}
