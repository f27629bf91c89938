// Package names holds the names that the parts of an installation know each other by: labels, annotations, Services,
// Secrets and service accounts. The chart writes the same names; a test holds the two together.
package names

// Namespace is where Gatewright is installed unless a flag says otherwise.
const Namespace = "gatewright-system"

// Audience is the audience that tokens for the gate must have.
const Audience = "gatewright"

// Service accounts in Gatewright's namespace.
const (
	ManagerServiceAccount   = "gatewright-manager"
	GateServiceAccount      = "gatewright-gate"
	EvaluatorServiceAccount = "gatewright-evaluator"
	DeciderServiceAccount   = "gatewright-decider"
)

// Services in Gatewright's namespace.
const (
	// GateService answers reviews on port 443, by HTTPS.
	GateService = "gatewright-gate"
	// WebhookService is where the API server asks the manager, on port 443.
	WebhookService = "gatewright-webhook"
)

// Ports of containers.
const (
	// GatePort is where the gate answers callers, by HTTPS.
	GatePort = 8443
	// GateStatusPort is where a gate answers probes, metrics and what it serves, by HTTP. Callers do not reach it.
	GateStatusPort = 8081
	// DeciderPort is where a decider answers, by HTTPS with client certificates; a foreign image has its own.
	DeciderPort = 8443
	// WebhookPort is where the manager answers the API server.
	WebhookPort = 9443
	// ManagerProbePort is where the manager answers probes, by HTTP.
	ManagerProbePort = 8081
	// ManagerMetricsPort is where the manager serves metrics, by HTTP.
	ManagerMetricsPort = 8080
)

// ServedPath is where a gate says on GateStatusPort what it serves, for the manager.
const ServedPath = "/v1alpha1/served"

// Secrets in Gatewright's namespace. All of type kubernetes.io/tls hold ca.crt, tls.crt and tls.key.
const (
	// AuthoritySecret holds the authority of everything below; only the manager reads it.
	AuthoritySecret = "gatewright-authority"
	// GateTLSSecret holds the certificate by which callers know the gate.
	GateTLSSecret = "gatewright-gate-tls"
	// GateClientSecret holds the certificate by which deciders know the gate, the evaluator and the manager.
	GateClientSecret = "gatewright-decider-client-tls"
	// DeciderTLSSecret holds the certificate by which deciders are known, for the names of all their Services.
	DeciderTLSSecret = "gatewright-decider-tls"
	// WebhookTLSSecret holds the certificate by which the API server knows the webhooks.
	WebhookTLSSecret = "gatewright-webhook-tls"
	// ExternalTokensSecret holds the bearer tokens for deciders of runtime External, by Secret and host. The manager
	// writes it, and gates mount it: they may read no Secrets.
	ExternalTokensSecret = "gatewright-external-tokens"
	// GateKeysSecret holds the key rings of the gate, one key each: KeySeal, KeyPermit, KeyAudit.
	GateKeysSecret = "gatewright-gate-keys"
)

// Keys of GateKeysSecret, and the names of the files that they are mounted as.
const (
	KeySeal   = "seal.json"
	KeyPermit = "permit.json"
	KeyAudit  = "audit.json"
)

// DeciderServerName is the name that every decider of ours has in its certificate, whatever its Service is called.
const DeciderServerName = "decider.gatewright.internal"

// AuthorityConfigMap holds the certificate of the gate's authority, key ca.crt, in every namespace with agents.
const AuthorityConfigMap = "gatewright-ca"

// Labels and annotations.
const (
	// InjectLabel on a namespace lets its pods get the gate's URL, its authority and a token: value InjectEnabled.
	// On a pod, InjectDisabled leaves that pod alone.
	InjectLabel    = "gatewright.dev/inject"
	InjectEnabled  = "enabled"
	InjectDisabled = "disabled"
	// InjectedAnnotation on a pod says that it was given them.
	InjectedAnnotation = "gatewright.dev/injected"
	// ModelLabel names the DeciderModel that an object belongs to.
	ModelLabel = "gatewright.dev/decider-model"
	// RevisionLabel names its revision.
	RevisionLabel = "gatewright.dev/decider-revision"
	// ExternalTokenLabel on a Secret, with value ExternalTokenEnabled, says that its key token may be sent to the server that
	// AllowedHostAnnotation names. No other Secret is read for spec.external.tokenSecretRef.
	ExternalTokenLabel   = "gatewright.dev/external-token" //nolint:gosec // the name of a label
	ExternalTokenEnabled = "true"
	// AllowedHostAnnotation on such a Secret is the one host that its token may be sent to, as HOST or HOST:PORT. Without a
	// port it is that of the scheme: 443 for https.
	AllowedHostAnnotation = "gatewright.dev/allowed-host"
	// RollbackAnnotation on a DeciderModel names a revision of its history that is to be the candidate again.
	RollbackAnnotation = "gatewright.dev/rollback-to"
	// ApproversAnnotation on a namespace names the service accounts that may decide about its approvals, as namespace/name,
	// separated by commas. Without it none may, whatever RBAC says.
	ApproversAnnotation = "gatewright.dev/service-account-approvers"
	// LeaseLabel says what a Lease of a gate stands for: LeaseUse and so on.
	LeaseLabel = "gatewright.dev/lease"
	// CallLabel on the Lease of a rejection is the beginning of its call's key.
	CallLabel = "gatewright.dev/call"
	// RejectionAnnotation on a Lease holds the rejected approval as JSON.
	RejectionAnnotation = "gatewright.dev/rejected-approval"
	// ComponentLabel says what part of the installation an object is: ComponentGate and so on.
	ComponentLabel = "app.kubernetes.io/component"
	// NameLabel has the value Name on everything.
	NameLabel = "app.kubernetes.io/name"
	Name      = "gatewright"
)

// Values of LeaseLabel.
const (
	// LeaseUse is the use of an approval, named UseLeasePrefix and its call's id. Whoever makes it has used the approval.
	LeaseUse = "use"
	// LeaseRejection keeps a rejection, named RejectionLeasePrefix and the digest of its binding.
	LeaseRejection = "rejection"
	// LeaseRaise keeps that a caller has caused an approval, named RaiseLeasePrefix and its call's id, longer than the approval.
	LeaseRaise = "raise"
	// LeasePermit is the use of a permit, named PermitLeasePrefix and a digest of its id.
	LeasePermit = "permit"

	UseLeasePrefix       = "use-"
	RejectionLeasePrefix = "rejection-"
	RaiseLeasePrefix     = "raise-"
	PermitLeasePrefix    = "permit-"
)

// Admission policies, each with a binding of the same name.
const (
	// ApprovalPolicy keeps approvals from being forged. The gate honours none without it.
	ApprovalPolicy = "gatewright-approvals"
	// ApproverPolicy fills in who has decided.
	ApproverPolicy = "gatewright-approver"
	// EvaluationPolicy keeps evaluations of roll-outs from being forged.
	EvaluationPolicy = "gatewright-evaluations"
	// SelfProtectionPolicy keeps service accounts from changing the policies that select them.
	SelfProtectionPolicy = "gatewright-self-protection"
	// ClusterSelfProtectionPolicy does the same for what a ClusterToolPolicy makes an agent, in all namespaces.
	ClusterSelfProtectionPolicy = "gatewright-self-protection-cluster"
)

// Values of ComponentLabel.
const (
	ComponentManager   = "manager"
	ComponentGate      = "gate"
	ComponentDecider   = "decider"
	ComponentEvaluator = "evaluator"
	// ComponentProxy is a proxy in front of a tool server, which takes permits or asks the gate.
	ComponentProxy = "proxy"
)

// What an injected pod finds.
const (
	// URLVariable holds the URL of the gate.
	URLVariable = "GATEWRIGHT_URL"
	// CAFileVariable holds the path of the authority's certificate.
	CAFileVariable = "GATEWRIGHT_CA_FILE"
	// TokenFileVariable holds the path of the token.
	TokenFileVariable = "GATEWRIGHT_TOKEN_FILE"
	// InjectedVolume is mounted at InjectedPath and holds ca.crt and token.
	InjectedVolume = "gatewright"
	InjectedPath   = "/var/run/secrets/gatewright.dev"
)

// Paths in the images.
const (
	// BinaryPath has the programs: manager, gate and gatewright in one image, decider in the other.
	BinaryPath = "/usr/local/bin"
	// DeciderLibraryPath has the shared libraries of llama.cpp, in the image of the decider.
	DeciderLibraryPath = "/usr/lib/llama"
	// DeciderModelsPath has the files that an artifact of type Bundled names, in an image of the decider that was built with them.
	DeciderModelsPath = "/usr/share/gatewright/models"
)
