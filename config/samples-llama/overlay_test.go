// Package samplesllama_test checks that what is laid over the sample policies fits the engine.
package samplesllama_test

import (
	"os"
	"testing"

	"sigs.k8s.io/yaml"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/inference/llama"
)

// A fingerprint covers engine and prompt too, so it changes with either of them, and the manifest has to follow.
func TestThePatchPinsWhatTheModelStates(t *testing.T) {
	var model v1alpha1.DeciderModel
	var patch v1alpha1.ToolPolicySpec
	for file, into := range map[string]any{"decidermodel.yaml": &model, "patch.yaml": &patch} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(text, into); err != nil {
			t.Fatal(err)
		}
	}
	want := llama.Fingerprint(string(model.Spec.Artifact.SHA256), llama.LabelLogits, nil)
	if string(patch.DeciderRef.Name) != model.Name || string(patch.DeciderRef.Fingerprint) != want {
		t.Errorf("patch.yaml refers to %s with %s, want %s with %s", patch.DeciderRef.Name, patch.DeciderRef.Fingerprint, model.Name, want)
	}
}
