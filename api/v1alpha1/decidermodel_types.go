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

// ArtifactType says where the model file comes from.
//
// +kubebuilder:validation:Enum=URL;OCI;PersistentVolumeClaim;Bundled
type ArtifactType string

// Artifact types.
const (
	ArtifactURL     ArtifactType = "URL"
	ArtifactOCI     ArtifactType = "OCI"
	ArtifactPVC     ArtifactType = "PersistentVolumeClaim"
	ArtifactBundled ArtifactType = "Bundled"
)

// Artifact is a model file.
//
// +kubebuilder:validation:XValidation:rule="self.type == 'URL' ? has(self.url) : !has(self.url)",message="url is required for type URL and only allowed there"
// +kubebuilder:validation:XValidation:rule="self.type == 'OCI' ? has(self.oci) : !has(self.oci)",message="oci is required for type OCI and only allowed there"
// +kubebuilder:validation:XValidation:rule="self.type == 'PersistentVolumeClaim' ? has(self.persistentVolumeClaim) : !has(self.persistentVolumeClaim)",message="persistentVolumeClaim is required for type PersistentVolumeClaim and only allowed there"
// +kubebuilder:validation:XValidation:rule="self.type == 'Bundled' ? has(self.bundled) : !has(self.bundled)",message="bundled is required for type Bundled and only allowed there"
type Artifact struct {
	// type says which of the members is used.
	// +required
	Type ArtifactType `json:"type"`
	// sha256 of the file, in lower-case hexadecimal. Checked in the process that loads it, and again on a timer.
	// +required
	SHA256 SHA256 `json:"sha256"`
	// url to download the file from; https only.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https://[^@\s]+$`
	URL string `json:"url,omitempty"`
	// oci is an image volume.
	// +optional
	OCI *OCIArtifact `json:"oci,omitempty"`
	// persistentVolumeClaim is a volume in Gatewright's namespace.
	// +optional
	PersistentVolumeClaim *PVCArtifact `json:"persistentVolumeClaim,omitempty"`
	// bundled is the judge in the gate, or a file in a decider image of your own.
	// +optional
	Bundled *BundledArtifact `json:"bundled,omitempty"`
}

// OCIArtifact is a file in an image.
type OCIArtifact struct {
	// image by digest.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[^@\s]+@sha256:[0-9a-f]{64}$`
	Image string `json:"image"`
	// path of the file in the image.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path"`
}

// PVCArtifact is a file on a volume.
type PVCArtifact struct {
	// claimName of the volume.
	// +required
	ClaimName ObjectName `json:"claimName"`
	// path of the file on the volume.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path"`
}

// BundledArtifact is the judge in the gate, or a file in the image of the decider.
type BundledArtifact struct {
	// name of the file.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9_.-]*$`
	Name string `json:"name"`
}

// ContainerRuntime is an image that speaks System One.
type ContainerRuntime struct {
	// image by digest.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[^@\s]+@sha256:[0-9a-f]{64}$`
	Image string `json:"image"`
	// model that is asked for and that must answer. Default: the name of the DeciderModel.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Model string `json:"model,omitempty"`
	// port that it listens on, 8080 by default.
	// +optional
	// +kubebuilder:default=8080
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
	// args of the container.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=1024
	Args []string `json:"args,omitempty"`
	// maxInFlight is how many requests each pod gets at once. Default 1: some servers mix up answers under concurrency.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	MaxInFlight int32 `json:"maxInFlight,omitempty"`
}

// ExternalProtocol is the wire of an external server.
//
// +kubebuilder:validation:Enum=SystemOne;LlamaServer;Ollama;OllamaVerdict;OpenAIVerdict
type ExternalProtocol string

// External protocols.
const (
	ProtocolSystemOne     ExternalProtocol = "SystemOne"
	ProtocolLlamaServer   ExternalProtocol = "LlamaServer"
	ProtocolOllama        ExternalProtocol = "Ollama"
	ProtocolOllamaVerdict ExternalProtocol = "OllamaVerdict"
	ProtocolOpenAIVerdict ExternalProtocol = "OpenAIVerdict"
)

// ExternalRuntime is a server that somebody else runs.
type ExternalRuntime struct {
	// url of the server, without the path of the wire. Plain http is accepted for loopback addresses only.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^(https://[^@\s]+|http://(127\.0\.0\.1|localhost|\[::1\])(:[0-9]+)?(/[^@\s]*)?)$`
	URL string `json:"url"`
	// protocol that it speaks, SystemOne by default.
	// +optional
	// +kubebuilder:default=SystemOne
	Protocol ExternalProtocol `json:"protocol,omitempty"`
	// model that is asked for and that must answer. An alias that moves is a mismatch when it moves.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Model string `json:"model"`
	// tokenSecretRef names a Secret in Gatewright's namespace whose key token holds a bearer token. It must have the label
	// gatewright.dev/external-token=true and the annotation gatewright.dev/allowed-host with the host of url.
	// +optional
	TokenSecretRef *SecretReference `json:"tokenSecretRef,omitempty"`
	// caBundle is PEM certificates to trust. Default: the system's.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	CABundle string `json:"caBundle,omitempty"`
	// maxInFlight is how many requests each gate has at the server at once. Default 1. Divide what the server bears by the
	// number of gates.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	MaxInFlight int32 `json:"maxInFlight,omitempty"`
}

// SecretReference names a Secret.
type SecretReference struct {
	// name of the Secret.
	// +required
	Name ObjectName `json:"name"`
}

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
	// modelMemoryLimit bounds the private copy of the model file, and a download. Default: what the memory limit of the
	// container leaves, and 32Gi for a download.
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
