// Package doctor looks at an installation and at the agents around it, and says what is wrong, what it means and what to
// do. Gather reads a cluster, Diagnose is a pure function over what was read.
//
// What could not be read is a finding of its own: silence would look like health.
package doctor

import (
	"cmp"
	"context"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"gatewright.dev/gatewright/api/v1alpha1"
)

// Severity of a finding.
type Severity string

// Severities, worst first.
const (
	// Error is something that does not work, or is open.
	Error Severity = "Error"
	// Warning is something that will not work, or is weaker than it looks.
	Warning Severity = "Warning"
	// Info is something to know.
	Info Severity = "Info"
)

func (s Severity) rank() int { return slices.Index([]Severity{Error, Warning, Info}, s) }

// AtLeast says whether a severity is as bad as another, or worse.
func (s Severity) AtLeast(other Severity) bool { return s.rank() <= other.rank() }

// Check names what was looked at.
type Check string

// Checks.
const (
	// CheckNotSeen: something could not be read.
	CheckNotSeen Check = "NotSeen"
	// CheckDefinitions: the kinds are there, as this binary knows them.
	CheckDefinitions Check = "Definitions"
	// CheckVersions: the parts of the installation are of one version.
	CheckVersions Check = "Versions"
	// CheckGates: gates are ready.
	CheckGates Check = "Gates"
	// CheckManager: managers are ready.
	CheckManager Check = "Manager"
	// CheckCertificates: certificates are good for long enough.
	CheckCertificates Check = "Certificates"
	// CheckAuthority: agents are given the authority of the gate.
	CheckAuthority Check = "Authority"
	// CheckAdmission: the admission policies that keep approvals from being forged are in force.
	CheckAdmission Check = "Admission"
	// CheckWebhooks: the webhooks are installed and have an authority.
	CheckWebhooks Check = "Webhooks"
	// CheckDeciders: deciders are ready, and nobody else reaches them.
	CheckDeciders Check = "Deciders"
	// CheckPolicies: policies are accepted and served.
	CheckPolicies Check = "Policies"
	// CheckCallers: callers have policies, and policies have callers.
	CheckCallers Check = "Callers"
	// CheckInjection: pods of agents were given what they need.
	CheckInjection Check = "Injection"
	// CheckEnforcement: whether a way around the gate is left.
	CheckEnforcement Check = "Enforcement"
)

// Finding is one thing that somebody should know.
type Finding struct {
	Severity Severity `json:"severity"`
	Check    Check    `json:"check"`
	// Object that it is about: KIND/NAMESPACE/NAME or KIND/NAME.
	Object string `json:"object"`
	// Message says what is so.
	Message string `json:"message"`
	// Remedy says what to do.
	Remedy string `json:"remedy"`
}

// Snapshot is what was read of a cluster.
type Snapshot struct {
	// Namespace of the installation.
	Namespace string
	// Only is the one namespace of agents that is asked about; empty: all.
	Only string
	Now  time.Time

	Namespaces      []corev1.Namespace
	Pods            []corev1.Pod
	ServiceAccounts []corev1.ServiceAccount
	NetworkPolicies []networkingv1.NetworkPolicy
	// EndpointSlices of the gate's Service.
	EndpointSlices []discoveryv1.EndpointSlice
	// Authorities are the ConfigMaps with the gate's authority.
	Authorities []corev1.ConfigMap
	// Certificates of the installation, without any key.
	Certificates []Certificate

	ToolPolicies        []v1alpha1.ToolPolicy
	ClusterToolPolicies []v1alpha1.ClusterToolPolicy
	DeciderModels       []v1alpha1.DeciderModel

	Definitions       []apiextensionsv1.CustomResourceDefinition
	Validating        []admissionregistrationv1.ValidatingWebhookConfiguration
	Mutating          []admissionregistrationv1.MutatingWebhookConfiguration
	AdmissionPolicies []admissionregistrationv1.ValidatingAdmissionPolicy
	AdmissionBindings []admissionregistrationv1.ValidatingAdmissionPolicyBinding

	// NotSeen says what could not be read.
	NotSeen []NotSeen
	// Wanted is what this version installs.
	Wanted Wanted
}

// Wanted is what an installation of this version has outside of namespaces.
type Wanted struct {
	Definitions       []apiextensionsv1.CustomResourceDefinition
	AdmissionPolicies []admissionregistrationv1.ValidatingAdmissionPolicy
	AdmissionBindings []admissionregistrationv1.ValidatingAdmissionPolicyBinding
}

// NewWanted reads it from this binary, for an installation in a namespace.
func NewWanted(namespace string) (Wanted, error) {
	definitions, err := ownDefinitions()
	if err != nil {
		return Wanted{}, err
	}
	policies, bindings, err := ownAdmission(namespace)
	return Wanted{definitions, policies, bindings}, err
}

// NotSeen is what could not be read, and why.
type NotSeen struct {
	What string
	Err  error
}

// Certificate is the public part of a certificate of the installation.
type Certificate struct {
	// Secret that holds it.
	Secret              string
	NotBefore, NotAfter time.Time
	// CA is the authority in PEM that stands beside it.
	CA string
	// Err says that it is missing or cannot be read.
	Err error
}

// Diagnose says all that is to be said about a snapshot, the worst first. The context ends the judging of policies.
func Diagnose(ctx context.Context, s *Snapshot) []Finding {
	d := &diagnosis{Snapshot: s, ctx: ctx}
	for _, look := range []func(){
		d.notSeen, d.definitions, d.versions, d.managers, d.gates, d.certificates, d.authorities, d.admission,
		d.webhooks, d.deciders, d.policies, d.callers, d.injection, d.enforcement,
	} {
		look()
	}
	slices.SortStableFunc(d.found, func(a, b Finding) int { return cmp.Compare(a.Severity.rank(), b.Severity.rank()) })
	return d.found
}

type diagnosis struct {
	*Snapshot
	ctx   context.Context
	found []Finding
}

func (d *diagnosis) add(s Severity, c Check, object, message, remedy string) {
	d.found = append(d.found, Finding{s, c, object, message, remedy})
}

// isAsked says whether a namespace of agents is asked about.
func (d *diagnosis) isAsked(namespace string) bool { return d.Only == "" || d.Only == namespace }

// blind says whether something that a check needs could not be read, so that the check would only seem to find nothing,
// or everything.
func (d *diagnosis) blind(what ...string) bool {
	return slices.ContainsFunc(d.NotSeen, func(n NotSeen) bool { return slices.Contains(what, n.What) })
}

func (d *diagnosis) notSeen() {
	for _, n := range d.NotSeen {
		d.add(Warning, CheckNotSeen, n.What, "could not be read, so nothing is said about it: "+n.Err.Error(),
			"let whoever runs the doctor list it: see the role gatewright-doctor in the guide")
	}
}
