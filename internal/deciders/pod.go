package deciders

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/inference"
)

// ownMaxBody is the longest request in bytes that the decider server takes unless told otherwise.
const ownMaxBody = 256 << 10

// Pod makes the client of a revision that runs in pods of its own and answers at a URL. Model is the name by which it is
// asked, and transport presents the certificate by which it knows its callers. Whoever asks a revision makes its client
// here, so that all see the same fingerprint.
func Pod(spec *v1alpha1.DeciderModelSpec, model, url string, transport http.RoundTripper) (inference.Decider, error) {
	o := inference.ServerOptions{BaseURL: url, Model: model, Transport: transport}
	switch spec.Runtime {
	case v1alpha1.RuntimeLlamaCpp: // applies temperatures itself, and states a fingerprint that covers them
		o.MaxBody = ownMaxBody
		return inference.NewSystemOne(inference.SystemOneOptions{Own: true, ServerOptions: o})
	case v1alpha1.RuntimeContainer:
		d, err := inference.NewSystemOne(inference.SystemOneOptions{ServerOptions: o})
		if err != nil {
			return nil, err
		}
		_, digest, _ := strings.Cut(spec.Container.Image, "@")
		return calibrated(spec, "")(&ofImage{d, digest}, nil)
	case v1alpha1.RuntimeEmbedded, v1alpha1.RuntimeExternal:
	}
	return nil, fmt.Errorf("spec.runtime %s runs in no pods of its own", spec.Runtime)
}

// ofImage makes the digest of a foreign image part of the fingerprint: whatever such a server says of itself, another image
// is another decider.
type ofImage struct {
	decider inference.Decider
	digest  string
}

// Decide implements inference.Decider.
func (o *ofImage) Decide(ctx context.Context, r inference.Request) (inference.Result, error) {
	result, err := o.decider.Decide(ctx, r)
	if err != nil {
		return inference.Result{}, err
	}
	h := sha256.New()
	for _, part := range []string{"image", o.digest, result.Fingerprint} {
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	result.Fingerprint = "sha256:" + hex.EncodeToString(h.Sum(nil))
	return result, nil
}
