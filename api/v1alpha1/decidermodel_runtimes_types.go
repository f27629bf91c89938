package v1alpha1

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
