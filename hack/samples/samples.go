// Package samples lays out what the demo and the check of the dashboards run a gate on.
package samples

import (
	"bytes"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/evaluation"
	"gatewright.dev/gatewright/internal/inference"
)

// Folder of the sample manifests, from the root of the module.
const Folder = "config/samples"

// Files are the sample manifests.
func Files() ([]string, error) { return filepath.Glob(filepath.Join(Folder, "*.yaml")) }

// Copy writes the sample manifests into a folder that is there, and a policy for cases of callers in a namespace.
func Copy(folder, namespace string, cases []*evaluation.Case) error {
	files, err := Files()
	if err != nil {
		return err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, filepath.Base(file)), data, 0o600); err != nil {
			return err
		}
	}
	policy, err := policyFor(cases, namespace)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "public-cases.yaml"), policy, 0o600)
}

// policyFor lists the tools of the cases, and lets the embedded decider's matches_request decide.
func policyFor(cases []*evaluation.Case, namespace string) ([]byte, error) {
	decider := v1alpha1.DeciderReference{Name: "embedded", Fingerprint: v1alpha1.Fingerprint(inference.EmbeddedFingerprint())}
	policies, err := evaluation.PolicyForCases(cases, evaluation.Matching(decider), namespace, "public-cases")
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, p := range policies {
		document, err := yaml.Marshal(map[string]any{"apiVersion": p.APIVersion, "kind": p.Kind, "metadata": p.ObjectMeta, "spec": p.Spec})
		if err != nil {
			return nil, err
		}
		out.WriteString("---\n")
		out.Write(document)
	}
	return out.Bytes(), nil
}
