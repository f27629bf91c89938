package deciders

import (
	"errors"
	"fmt"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/inference"
)

// IsGenerative says whether a decider writes its answer, so that the answer can be drawn at a temperature. All others are
// read by the probability of each answer, and nothing is drawn.
func IsGenerative(spec *v1alpha1.DeciderModelSpec) bool {
	return spec.Runtime == v1alpha1.RuntimeExternal && spec.External != nil &&
		(spec.External.Protocol == v1alpha1.ProtocolOllamaVerdict || spec.External.Protocol == v1alpha1.ProtocolOpenAIVerdict)
}

// Drawn makes the client of a generative decider that draws its answers at a temperature above 0, to measure how much they
// waver. No gate that decides asks like this. The fingerprint is that of the decider as it is served.
func Drawn(spec *v1alpha1.DeciderModelSpec, temperature float64) (inference.Decider, error) {
	if !IsGenerative(spec) {
		return nil, fmt.Errorf("runtime %s writes no answer that could be drawn", spec.Runtime)
	}
	if spec.External.TokenSecretRef != nil {
		return nil, errors.New("spec.external.tokenSecretRef: secrets are not there outside of a cluster: run a proxy on loopback that adds the token")
	}
	return calibrated(spec, "")(external(spec, nil, temperature))
}
