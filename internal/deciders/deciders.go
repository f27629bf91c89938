// Package deciders makes the deciders that a gate asks of what a DeciderModel says.
package deciders

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/fetch"
	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/models"
)

// EmbeddedHash returns the SHA-256 by which the embedded judge is pinned: that of the model file in this binary.
func EmbeddedHash() string {
	sum := sha256.Sum256(models.Judge)
	return hex.EncodeToString(sum[:])
}

// External makes the client for the wire that an external server speaks. Token gives the bearer token to send, read anew
// for each request; nil: none is sent.
func External(spec *v1alpha1.DeciderModelSpec, token func() string) (inference.Decider, error) {
	return calibrated(spec, "")(external(spec, token, 0))
}

func external(spec *v1alpha1.DeciderModelSpec, token func() string, temperature float64) (inference.Decider, error) {
	x := spec.External
	if _, err := url.Parse(x.URL); err != nil {
		return nil, fmt.Errorf("spec.external.url: %w", err)
	}
	transport := newTransport()
	if x.CABundle != "" {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM([]byte(x.CABundle)) {
			return nil, errors.New("spec.external.caBundle: holds no certificate in PEM")
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	o := inference.ServerOptions{BaseURL: x.URL, Model: x.Model, Token: token, Transport: transport}
	switch x.Protocol {
	case v1alpha1.ProtocolSystemOne, "":
		return inference.NewSystemOne(inference.SystemOneOptions{ServerOptions: o})
	case v1alpha1.ProtocolLlamaServer:
		return inference.NewLlamaServer(inference.LlamaServerOptions{ServerOptions: o, Slots: int(x.MaxInFlight)})
	case v1alpha1.ProtocolOllama:
		return inference.NewOllama(inference.OllamaOptions{ServerOptions: o, ContextTokens: int(spec.ContextTokens)})
	case v1alpha1.ProtocolOllamaVerdict:
		return inference.NewVerdictChat(inference.VerdictChatOptions{ServerOptions: o, ContextTokens: int(spec.ContextTokens), Temperature: temperature})
	case v1alpha1.ProtocolOpenAIVerdict:
		return inference.NewOpenAIChat(inference.OpenAIChatOptions{ServerOptions: o, Temperature: temperature})
	}
	return nil, fmt.Errorf("spec.external.protocol %q is not known", x.Protocol)
}

// newTransport is for servers of which a manifest says where they are: no name leads to an address where clouds keep credentials.
func newTransport() *http.Transport {
	t := inference.NewTransport()
	t.DialContext = (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second, Control: fetch.Control}).DialContext
	return t
}

// Embedded makes the embedded judge. Its pin is checked against the bytes in this binary before they are read.
func Embedded(spec *v1alpha1.DeciderModelSpec) (inference.Decider, error) {
	return calibrated(spec, inference.EmbeddedFingerprint())(embedded(spec))
}

func embedded(spec *v1alpha1.DeciderModelSpec) (inference.Decider, error) {
	if b := spec.Artifact.Bundled; b == nil || b.Name != inference.EmbeddedName {
		return nil, fmt.Errorf("spec.artifact: runtime Embedded has only the bundled %s", inference.EmbeddedName)
	}
	if want := EmbeddedHash(); string(spec.Artifact.SHA256) != want {
		return nil, fmt.Errorf("spec.artifact.sha256 is %s, but %s has %s: nothing is asked of it", spec.Artifact.SHA256, inference.EmbeddedName, want)
	}
	return inference.LoadEmbedded()
}
