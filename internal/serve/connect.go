package serve

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/models"
)

// EmbeddedHash returns the SHA-256 by which the embedded judge is pinned: that of the model file in this binary.
func EmbeddedHash() string {
	sum := sha256.Sum256(models.Judge)
	return hex.EncodeToString(sum[:])
}

// connect makes the client for the wire that an external server speaks.
func connect(spec *v1alpha1.DeciderModelSpec) (inference.Decider, error) {
	x := spec.External
	transport := inference.NewTransport()
	if x.CABundle != "" {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM([]byte(x.CABundle)) {
			return nil, errors.New("spec.external.caBundle: holds no certificate in PEM")
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	o := inference.ServerOptions{BaseURL: x.URL, Model: x.Model, Transport: transport}
	switch x.Protocol {
	case v1alpha1.ProtocolSystemOne, "":
		return inference.NewSystemOne(inference.SystemOneOptions{ServerOptions: o})
	case v1alpha1.ProtocolLlamaServer:
		return inference.NewLlamaServer(inference.LlamaServerOptions{ServerOptions: o, Slots: int(x.MaxInFlight)})
	case v1alpha1.ProtocolOllama:
		return inference.NewOllama(inference.OllamaOptions{ServerOptions: o, ContextTokens: int(spec.ContextTokens)})
	case v1alpha1.ProtocolOllamaVerdict:
		return inference.NewVerdictChat(inference.VerdictChatOptions{ServerOptions: o, ContextTokens: int(spec.ContextTokens)})
	case v1alpha1.ProtocolOpenAIVerdict:
		return inference.NewOpenAIChat(inference.OpenAIChatOptions{ServerOptions: o})
	}
	return nil, fmt.Errorf("spec.external.protocol %q is not known", x.Protocol)
}
