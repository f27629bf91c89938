package controllers

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/deciders"
	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/inference/workload"
	"gatewright.dev/gatewright/internal/names"
)

const (
	// probeTimeout is how long a decider may take to say who it is. One that computes on CPU may be busy with calls.
	probeTimeout = 10 * time.Second
	// rememberOwn and rememberForeign are how long an answer counts. To ask a server of somebody else costs a question.
	rememberOwn     = 4 * time.Second
	rememberForeign = time.Minute
	maxModels       = 64 << 10
)

// prober asks revisions who they are. Answers are remembered for a while: events come in crowds.
type prober struct {
	reader    client.Reader
	namespace string
	clock     clock.PassiveClock
	url       func(namespace, revision string) string

	mu    sync.Mutex
	known map[string]remembered
}

type remembered struct {
	seen  *seen
	err   error
	until time.Time
}

func newProber(c client.Reader, namespace string, clk clock.PassiveClock) *prober {
	return &prober{reader: c, namespace: namespace, clock: clk, url: workload.URL, known: map[string]remembered{}}
}

// ask says who a revision is. An error means that it could not be asked, which says nothing about it.
func (p *prober) ask(ctx context.Context, r workload.Revision) (*seen, error) {
	now := p.clock.Now()
	p.mu.Lock()
	last, ok := p.known[r.Name]
	p.mu.Unlock()
	if ok && now.Before(last.until) {
		return last.seen, last.err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	s, err := p.askNow(ctx, r)
	keep := rememberOwn
	if r.Spec.Artifact == nil && err == nil {
		keep = rememberForeign
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, one := range p.known {
		if now.After(one.until) {
			delete(p.known, name)
		}
	}
	p.known[r.Name] = remembered{s, err, now.Add(keep)}
	return s, err
}

func (p *prober) askNow(ctx context.Context, r workload.Revision) (*seen, error) {
	switch r.Spec.Runtime {
	case v1alpha1.RuntimeEmbedded:
		return askEmbedded(&r.Spec), nil
	case v1alpha1.RuntimeLlamaCpp:
		return p.askServer(ctx, r)
	case v1alpha1.RuntimeContainer:
		return p.askContainer(ctx, r)
	case v1alpha1.RuntimeExternal:
		return p.askExternal(ctx, r)
	}
	return nil, fmt.Errorf("runtime %s is not known", r.Spec.Runtime)
}

// askEmbedded says what the judge in this binary is; that of the gates is the same build.
func askEmbedded(spec *v1alpha1.DeciderModelSpec) *seen {
	base := inference.EmbeddedFingerprint()
	s := &seen{fingerprint: v1alpha1.Fingerprint(base), sha256: v1alpha1.SHA256(deciders.EmbeddedHash())}
	if c := spec.Calibration; c != nil {
		if string(c.Fingerprint) != base {
			s.mismatch = fmt.Sprintf("spec.calibration.fingerprint is %s, but this decider has %s: its temperatures were fitted for another one", c.Fingerprint, base)
		}
		s.fingerprint = v1alpha1.Fingerprint(inference.CalibratedFingerprint(base, deciders.Temperatures(c)))
	}
	return s
}

// modelList is what the decider server says that it has loaded.
type modelList struct {
	Models []struct {
		Name        string `json:"name"`
		SHA256      string `json:"sha256"`
		Fingerprint string `json:"fingerprint"`
		Ready       bool   `json:"ready"`
	} `json:"models"`
}

var ownFingerprint = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// askServer reads what the decider server of this project has loaded.
func (p *prober) askServer(ctx context.Context, r workload.Revision) (*seen, error) {
	transport, err := p.transport(ctx)
	if err != nil {
		return nil, err
	}
	defer transport.CloseIdleConnections()
	body, err := get(ctx, transport, p.url(p.namespace, r.Name)+"/v1/models")
	if err != nil {
		return nil, err
	}
	var list modelList
	if err := json.Unmarshal(body, &list); err != nil || len(list.Models) != 1 {
		return nil, errors.New("it does not say in a known way what it has loaded")
	}
	m := list.Models[0]
	want := workload.ModelName(r.Model, &r.Spec)
	switch {
	case !ownFingerprint.MatchString(m.Fingerprint):
		return nil, errors.New("it states no fingerprint")
	case !m.Ready:
		return nil, errors.New("it is not ready")
	case m.Name != want:
		return &seen{mismatch: fmt.Sprintf("it answers as %q and not as %q", m.Name, want)}, nil
	}
	return &seen{fingerprint: v1alpha1.Fingerprint(m.Fingerprint), sha256: v1alpha1.SHA256(m.SHA256)}, nil
}

func get(ctx context.Context, transport http.RoundTripper, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, errors.New("its address makes no request")
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("asking it: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("asking it: HTTP %d", answer.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxModels))
	if err != nil {
		return nil, fmt.Errorf("reading its answer: %w", err)
	}
	return body, nil
}

// transport trusts our authority and shows the certificate by which deciders know the manager.
func (p *prober) transport(ctx context.Context) (*http.Transport, error) {
	var secret corev1.Secret
	if err := p.reader.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: names.GateClientSecret}, &secret); err != nil {
		return nil, fmt.Errorf("reading the certificate for deciders: %w", err)
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("reading the certificate for deciders: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(secret.Data["ca.crt"]) {
		return nil, errors.New("reading the certificate for deciders: ca.crt holds none")
	}
	t := inference.NewTransport()
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, Certificates: []tls.Certificate{pair}, ServerName: names.DeciderServerName}
	return t, nil
}

func (p *prober) askContainer(ctx context.Context, r workload.Revision) (*seen, error) {
	transport, err := p.transport(ctx)
	if err != nil {
		return nil, err
	}
	defer transport.CloseIdleConnections()
	decider, err := deciders.Pod(&r.Spec, workload.ModelName(r.Model, &r.Spec), p.url(p.namespace, r.Name), transport)
	if err != nil {
		return nil, err
	}
	return askQuestion(ctx, r, decider)
}

func (p *prober) askExternal(ctx context.Context, r workload.Revision) (*seen, error) {
	var token func() string
	if ref := r.Spec.External.TokenSecretRef; ref != nil {
		var secret corev1.Secret
		if err := p.reader.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: string(ref.Name)}, &secret); err != nil {
			return nil, fmt.Errorf("reading spec.external.tokenSecretRef: %w", err)
		}
		held, err := workload.Token(&secret, r.Spec.External)
		if err != nil {
			return nil, err
		}
		token = func() string { return held }
	}
	decider, err := deciders.External(&r.Spec, token)
	if err != nil {
		return nil, err
	}
	return askQuestion(ctx, r, decider)
}

// askQuestion sees who answers a question. What another model calls itself is not repeated: it is text of others.
func askQuestion(ctx context.Context, r workload.Revision, d inference.Decider) (*seen, error) {
	fingerprint, err := deciders.Fingerprint(ctx, &r.Spec, d)
	switch {
	case err == nil:
		return &seen{fingerprint: fingerprint}, nil
	case inference.ReasonOf(err) == inference.ModelMismatch:
		return &seen{mismatch: fmt.Sprintf("asked as model %q: %s", workload.ModelName(r.Model, &r.Spec), err)}, nil
	}
	return nil, err
}
