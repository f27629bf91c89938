// Package admission holds the admission policies that keep approvals from being forged, so that a gate can tell whether
// those in force are its own.
package admission

import (
	"embed"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"gatewright.dev/gatewright/internal/names"
)

// Files are the manifests, written for an installation in names.Namespace.
//
//go:embed *.yaml
var Files embed.FS

// Approvals gives the policy that keeps approvals from being forged, and its binding, for an installation in a namespace.
func Approvals(namespace string) (*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding, error) {
	data, err := Files.ReadFile("approvals.yaml")
	if err != nil {
		return nil, nil, fmt.Errorf("reading admission policy: %w", err)
	}
	first, second, ok := strings.Cut(In(string(data), namespace), "\n---\n")
	if !ok {
		return nil, nil, fmt.Errorf("reading admission policy: want two documents")
	}
	policy, binding := &admissionregistrationv1.ValidatingAdmissionPolicy{}, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
	if err := yaml.UnmarshalStrict([]byte(first), policy); err != nil {
		return nil, nil, fmt.Errorf("reading admission policy: %w", err)
	}
	if err := yaml.UnmarshalStrict([]byte(second), binding); err != nil {
		return nil, nil, fmt.Errorf("reading admission policy's binding: %w", err)
	}
	return policy, binding, nil
}

// In gives a manifest for an installation in another namespace: the service accounts in it are named with theirs.
func In(manifest, namespace string) string {
	return strings.ReplaceAll(manifest, "system:serviceaccount:"+names.Namespace+":", "system:serviceaccount:"+namespace+":")
}
