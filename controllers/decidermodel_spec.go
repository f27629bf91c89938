package controllers

import (
	"fmt"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/names"
)

// deciderProblem says what of a spec makes no sense on its own, beyond what the schema refuses, or needs a flag that this
// manager was not given. Empty: nothing.
func deciderProblem(spec *v1alpha1.DeciderModelSpec, o DeciderOptions) string {
	if spec.Pod.HasSystemPriority() {
		return "spec.pod.priorityClassName: " + spec.Pod.PriorityClassName + " is for the parts of the cluster itself: name a class of your own"
	}
	switch spec.Runtime {
	case v1alpha1.RuntimeEmbedded:
		return embeddedProblem(spec)
	case v1alpha1.RuntimeLlamaCpp:
		return llamaProblem(spec, o)
	case v1alpha1.RuntimeContainer:
		return containerProblem(spec, o)
	case v1alpha1.RuntimeExternal:
		if spec.Readout != "" && spec.Readout != v1alpha1.ReadoutAuto {
			return "spec.readout: follows from spec.external.protocol: remove it"
		}
		if spec.External == nil {
			return "spec.external is missing"
		}
		return ""
	}
	return fmt.Sprintf("spec.runtime %q is not known to this version", spec.Runtime)
}

func embeddedProblem(spec *v1alpha1.DeciderModelSpec) string {
	a := spec.Artifact
	switch {
	case a == nil || a.Type != v1alpha1.ArtifactBundled || a.Bundled == nil || a.Bundled.Name != inference.EmbeddedName:
		return "spec.artifact: runtime Embedded has only the bundled " + inference.EmbeddedName
	case spec.Readout != "" && spec.Readout != v1alpha1.ReadoutAuto:
		return "spec.readout: the embedded judge is read in one way: remove it"
	}
	return ""
}

func llamaProblem(spec *v1alpha1.DeciderModelSpec, o DeciderOptions) string {
	switch {
	case spec.Artifact == nil:
		return "spec.artifact is missing"
	case spec.Readout == v1alpha1.ReadoutVerdict:
		return "spec.readout Verdict: runtime LlamaCpp reads probabilities: use Auto, LabelLogits or ClassHead"
	case o.Image == "":
		return "this manager was started without -decider-image, so that there is nothing to run a model file with"
	case spec.Artifact.Type == v1alpha1.ArtifactURL && o.ToolImage == "":
		return "this manager was started without -tool-image, so that there is nothing to download a model file with"
	}
	return ""
}

func containerProblem(spec *v1alpha1.DeciderModelSpec, o DeciderOptions) string {
	switch {
	case spec.Container == nil:
		return "spec.container is missing"
	case spec.Container.Port == names.DeciderPort:
		return fmt.Sprintf("spec.container.port: %d is where TLS ends in front of the image: let it listen on another one", names.DeciderPort)
	case spec.Readout != "" && spec.Readout != v1alpha1.ReadoutAuto:
		return "spec.readout: the image says itself how it reads: remove it"
	case o.ToolImage == "":
		return "this manager was started without -tool-image, so that there is nothing to end TLS with in front of the image"
	}
	return ""
}
