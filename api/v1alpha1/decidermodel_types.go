package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DeciderModel is one pinned decider: a small model that answers typed questions about a proposed call.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=dm,categories=gatewright
// +kubebuilder:printcolumn:name="Runtime",type=string,JSONPath=`.spec.runtime`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Fingerprint",type=string,priority=1,JSONPath=`.status.active.fingerprint`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type DeciderModel struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the decider that is wanted.
	// +required
	Spec DeciderModelSpec `json:"spec"`
	// status is what is known about it.
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status DeciderModelStatus `json:"status,omitzero"`
}

// Runtime says what runs the decider.
//
// +kubebuilder:validation:Enum=Embedded;LlamaCpp;Container;External
type Runtime string

// Runtimes.
const (
	// RuntimeEmbedded is the small judge inside the gate. No pods.
	RuntimeEmbedded Runtime = "Embedded"
	// RuntimeLlamaCpp is the decider server of this project, with one GGUF file.
	RuntimeLlamaCpp Runtime = "LlamaCpp"
	// RuntimeContainer is an image, by digest, that speaks System One.
	RuntimeContainer Runtime = "Container"
	// RuntimeExternal is a server at a URL.
	RuntimeExternal Runtime = "External"
)

// DeciderModelSpec is the decider that is wanted.
//
// +kubebuilder:validation:XValidation:rule="self.runtime in ['Embedded','LlamaCpp'] ? has(self.artifact) : !has(self.artifact)",message="artifact is required for runtime Embedded and LlamaCpp and only allowed there: pin the file with its sha256"
// +kubebuilder:validation:XValidation:rule="self.runtime == 'Container' ? has(self.container) : !has(self.container)",message="container is required for runtime Container and only allowed there"
// +kubebuilder:validation:XValidation:rule="self.runtime == 'External' ? has(self.external) : !has(self.external)",message="external is required for runtime External and only allowed there"
// +kubebuilder:validation:XValidation:rule="self.runtime != 'Embedded' || !has(self.pod)",message="pod is not for runtime Embedded, which runs inside the gate: remove pod"
type DeciderModelSpec struct {
	// runtime says what runs it.
	// +required
	Runtime Runtime `json:"runtime"`
	// artifact is the model file, pinned by sha256, which is checked over the bytes that are loaded.
	// +optional
	Artifact *Artifact `json:"artifact,omitempty"`
	// container is an image that speaks System One.
	// +optional
	Container *ContainerRuntime `json:"container,omitempty"`
	// external is a server that somebody else runs.
	// +optional
	External *ExternalRuntime `json:"external,omitempty"`
	// readout says how probabilities are read: Auto (default) takes what the file or server is made for.
	// +optional
	// +kubebuilder:default=Auto
	Readout Readout `json:"readout,omitempty"`
	// contextTokens is the window. A longer input is refused and never cut. Default 4096.
	// +optional
	// +kubebuilder:default=4096
	// +kubebuilder:validation:Minimum=128
	// +kubebuilder:validation:Maximum=131072
	ContextTokens int32 `json:"contextTokens,omitempty"`
	// threads are the CPU threads to compute with. Default: the CPU request of the pod; in gatewright serve, one less than the
	// processors that it may use, and at least one.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	Threads *int32 `json:"threads,omitempty"`
	// calibration holds fitted temperatures. They belong to one fingerprint.
	// +optional
	Calibration *Calibration `json:"calibration,omitempty"`
	// allowedNamespaces may refer to it. Default: all, but none for runtime External.
	// +optional
	AllowedNamespaces *NamespaceAllowance `json:"allowedNamespaces,omitempty"`
	// languages that it reads, as BCP 47 primary tags. A request in another language is Confirm, LanguageNotSupported.
	// Empty: every language.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=8
	// +kubebuilder:validation:items:Pattern=`^[a-z]{2,8}$`
	Languages []string `json:"languages,omitempty"`
	// requireVerified is Required (default): a decider whose hash is only reported by itself allows nothing; or Optional.
	// +optional
	// +kubebuilder:default=Required
	RequireVerified Requirement `json:"requireVerified,omitempty"`
	// pod says where and with what it runs.
	// +optional
	Pod *DeciderPod `json:"pod,omitempty"`
	// rollout says when a new revision may take over.
	// +optional
	Rollout *Rollout `json:"rollout,omitempty"`
}

// Requirement says whether something must hold.
//
// +kubebuilder:validation:Enum=Required;Optional
type Requirement string

// Requirements.
const (
	Required Requirement = "Required"
	Optional Requirement = "Optional"
)

// Readout says how probabilities are read.
//
// +kubebuilder:validation:Enum=Auto;LabelLogits;ClassHead;Verdict
type Readout string

// Readouts.
const (
	ReadoutAuto Readout = "Auto"
	// ReadoutLabelLogits reads the logits of label tokens of a generative model.
	ReadoutLabelLogits Readout = "LabelLogits"
	// ReadoutClassHead reads the class head of an encoder.
	ReadoutClassHead Readout = "ClassHead"
	// ReadoutVerdict reads a verdict in forced JSON, with no probability behind it.
	ReadoutVerdict Readout = "Verdict"
)

// Calibration holds fitted temperatures.
type Calibration struct {
	// fingerprint for which they were fitted, without its calibration part. Another one is DeciderMismatch.
	// +required
	Fingerprint Fingerprint `json:"fingerprint"`
	// yesNoMilli is the temperature of YesNo questions in thousandths; 1000 changes nothing.
	// +optional
	// +kubebuilder:validation:Minimum=50
	// +kubebuilder:validation:Maximum=20000
	YesNoMilli *int32 `json:"yesNoMilli,omitempty"`
	// choiceMilli is the temperature of Choice questions in thousandths.
	// +optional
	// +kubebuilder:validation:Minimum=50
	// +kubebuilder:validation:Maximum=20000
	ChoiceMilli *int32 `json:"choiceMilli,omitempty"`
	// scoreMilli is the temperature of Score questions in thousandths.
	// +optional
	// +kubebuilder:validation:Minimum=50
	// +kubebuilder:validation:Maximum=20000
	ScoreMilli *int32 `json:"scoreMilli,omitempty"`
}

// NamespaceSelection says which namespaces are meant.
//
// +kubebuilder:validation:Enum=All;None;Listed
type NamespaceSelection string

// Namespace selections.
const (
	NamespacesAll    NamespaceSelection = "All"
	NamespacesNone   NamespaceSelection = "None"
	NamespacesListed NamespaceSelection = "Listed"
)

// NamespaceAllowance says which namespaces may refer to a decider.
//
// +kubebuilder:validation:XValidation:rule="self.from == 'Listed' ? has(self.namespaces) : !has(self.namespaces)",message="namespaces is required for from Listed and only allowed there"
type NamespaceAllowance struct {
	// from is All, None or Listed.
	// +required
	From NamespaceSelection `json:"from"`
	// namespaces that are listed.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	Namespaces []Namespace `json:"namespaces,omitempty"`
}

// DeciderPod says where and with what a decider runs.
type DeciderPod struct {
	// replicas that serve, 1 by default.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Replicas *int32 `json:"replicas,omitempty"`
	// resources of the decider container.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// modelMemoryLimit bounds the private copy of the model, which is 55 % larger than the file for weights in Q5_0 and as large as
	// the file otherwise, and a download. Default: what the memory limit of the container leaves, and 32Gi for a download.
	// +optional
	ModelMemoryLimit *resource.Quantity `json:"modelMemoryLimit,omitempty"`
	// nodeSelector of the pods.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// tolerations of the pods.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// affinity of the pods.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
	// priorityClassName of the pods. Those that begin with system- are refused.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// DeciderModelStatus is what is known about a decider.
type DeciderModelStatus struct {
	// observedGeneration is the generation that the conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are Accepted, Verified, Evaluated, Available and Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// active is the revision that serves.
	// +optional
	Active *DeciderRevision `json:"active,omitempty"`
	// candidate is the revision that is being rolled out.
	// +optional
	Candidate *DeciderRevision `json:"candidate,omitempty"`
	// history holds the last ten revisions that have served, newest first. Their pods are gone; kubectl gatewright model
	// rollback starts them again.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	History []DeciderRevision `json:"history,omitempty"`
}

// DeciderRevision is one revision of a decider.
type DeciderRevision struct {
	// name of the revision.
	// +required
	Name ObjectName `json:"name"`
	// sha256 that was verified over the loaded bytes.
	// +optional
	SHA256 SHA256 `json:"sha256,omitempty"`
	// fingerprint that it reports.
	// +optional
	Fingerprint Fingerprint `json:"fingerprint,omitempty"`
	// evaluation names the DeciderEvaluation of this revision.
	// +optional
	Evaluation ObjectName `json:"evaluation,omitempty"`
	// shadow on a candidate that has passed its evaluation lets gates compare it with the active revision on live calls:
	// they do while it is there and empty. Once enough calls were compared it holds how they came out, and they stop.
	// +optional
	Shadow *ShadowResult `json:"shadow,omitempty"`
	// since is when it took this place.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}

// DeciderModelList is a list of DeciderModel.
//
// +kubebuilder:object:root=true
type DeciderModelList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// +required
	Items []DeciderModel `json:"items"`
}
