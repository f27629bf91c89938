package llama

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/questions"
)

// ReadoutVersion names the way from a prompt to probabilities: layout, pieces, cache and arithmetic. It is raised when
// answers move, and thresholds are fitted anew then.
const ReadoutVersion = "r4"

// Fingerprint is what a model file of that SHA-256 states when it is served with the pinned library: what manifests pin.
func Fingerprint(sha256 string, readout Readout, temperatures inference.Calibration) string {
	return fingerprint(sha256, libraryIdentity(nil), string(readout), temperatures)
}

// fingerprint covers everything that moves a number on one machine. Parts are hashed with their lengths, so that no two
// lists of parts run together. The variant of the CPU moves the last digits too and is reported beside it: the fleet that
// serves one model has machines of several kinds.
func fingerprint(model, library, readout string, temperatures inference.Calibration) string {
	parts := []string{"gatewright-decider", model, library, ReadoutVersion, readout, questions.PromptVersion}
	for _, kind := range slices.Sorted(maps.Keys(temperatures)) {
		if milli := temperatures[kind]; milli != 0 && milli != 1000 {
			parts = append(parts, fmt.Sprintf("%s=%d", kind, milli))
		}
	}
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
