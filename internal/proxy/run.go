package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/utils/clock"

	gatewright "gatewright.dev/gatewright/clients/go"
	"gatewright.dev/gatewright/permit"
)

// maxListing is how much of a listing of tools is looked at: 4 MiB is some thousand tools.
const maxListing = 4 << 20

// Run serves until the context ends, and then lets calls that run come to their end.
func Run(ctx context.Context, c Config) (err error) {
	if err := c.Validate(); err != nil {
		return err
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	gateTLS, err := trust(c.GateCA)
	if err != nil {
		return fmt.Errorf("--gate-ca: %w", err)
	}
	check, closers, err := c.checker(ctx, gateTLS)
	defer func() {
		for _, closer := range closers {
			err = errors.Join(err, closer.Close())
		}
	}()
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	p, transport, err := c.proxy(check, registry)
	if err != nil {
		return err
	}
	defer transport.CloseIdleConnections()
	if err := p.Ready(ctx); err != nil { // it can become so, and says so until then
		c.Log.Warn("calls cannot be checked yet", "error", err)
	}
	return c.serve(ctx, p, registry)
}

// checker makes what gets the gate's word, and gives what is to be closed at the end.
func (c *Config) checker(ctx context.Context, gateTLS *tls.Config) (checker, []io.Closer, error) {
	if c.Ask {
		client := gatewright.New(gatewright.Options{URL: c.GateURL, TokenFile: c.TokenFile, CAFile: c.GateCA})
		up := newProbe(strings.TrimRight(c.GateURL, "/")+"/readyz", gateTLS)
		return &byAsking{gate: client, server: c.Server, isUp: up.ready}, []io.Closer{up}, nil
	}
	address := c.JWKS
	if address == "" {
		address = strings.TrimRight(c.GateURL, "/") + permit.JWKSPath
	}
	keys, err := permit.NewRemoteKeys(permit.RemoteOptions{URL: address, TLS: gateTLS})
	if err != nil {
		return nil, nil, err
	}
	store, err := c.openStore(ctx)
	if err != nil {
		return nil, nil, err
	}
	closers := []io.Closer{store}
	verifier, err := permit.NewVerifier(permit.VerifierOptions{Keys: keys, Store: store, Issuer: c.Issuer, Replicas: c.Replicas})
	if err != nil {
		return nil, closers, err
	}
	b := &byPermit{verifier: verifier, audience: c.Audience, server: c.Server, parts: []readiness{keys}}
	if r, ok := store.(readiness); ok {
		b.parts = append(b.parts, r)
	}
	return b, closers, nil
}

func (c *Config) proxy(check checker, registry prometheus.Registerer) (*Proxy, *http.Transport, error) {
	upstream, err := url.Parse(c.Upstream)
	if err != nil {
		return nil, nil, errors.New("--upstream is no URL")
	}
	upstreamTLS, err := trust(c.UpstreamCA)
	if err != nil {
		return nil, nil, fmt.Errorf("--upstream-ca: %w", err)
	}
	tools := newToolWatch(c.Log, maxListing)
	w, err := c.wire(tools)
	if err != nil {
		return nil, nil, err
	}
	// No proxy of the environment's: it would see every call. No compression of ours: answers go as they come.
	transport := &http.Transport{
		DialContext:     (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig: upstreamTLS, TLSHandshakeTimeout: 5 * time.Second, ForceAttemptHTTP2: true, DisableCompression: true,
		MaxIdleConnsPerHost: c.MaxRequests, IdleConnTimeout: time.Minute,
		ResponseHeaderTimeout: c.UpstreamTimeout, MaxResponseHeaderBytes: 64 << 10,
	}
	p, err := newProxy(options{
		wire: w, checker: check, upstream: upstream, transport: transport, origins: c.Origins, tools: tools,
		limits: limits{body: c.MaxBody, bodyTime: c.BodyTimeout, callTime: c.CallTimeout, requests: c.MaxRequests, streams: c.MaxStreams},
		clock:  clock.RealClock{}, log: c.Log, registry: registry,
	})
	return p, transport, err
}

func (c *Config) wire(tools *toolWatch) (wire, error) {
	if c.Protocol == ProtocolMCP {
		return newMCP(c.MCPPath, c.Passes, tools), nil
	}
	calls := c.Calls
	if len(calls) == 0 {
		calls = []string{"POST /tools/" + toolSegment}
	}
	return newPlainHTTP(calls, c.Passes, c.ToolField, c.ArgumentsField, !c.Ask)
}

// trust is whom to trust by a file, nil for the system's authorities.
func trust(file string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if file == "" {
		return config, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return nil, errors.New("the file holds no certificate")
	}
	return config, nil
}

// probe asks a gate whether it is ready.
type probe struct {
	url    string
	client *http.Client
}

func newProbe(address string, c *tls.Config) *probe {
	return &probe{url: address, client: &http.Client{
		Timeout:       2 * time.Second,
		Transport:     &http.Transport{TLSClientConfig: c, DisableKeepAlives: true, ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (p *probe) ready(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, http.NoBody)
	if err != nil {
		return err
	}
	answer, err := p.client.Do(req)
	if err != nil {
		return fmt.Errorf("asking whether the gate is ready: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the gate is not ready: HTTP %d", answer.StatusCode)
	}
	return nil
}

// Close implements io.Closer.
func (p *probe) Close() error {
	p.client.CloseIdleConnections()
	return nil
}
