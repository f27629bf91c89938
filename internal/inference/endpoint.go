package inference

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"gatewright.dev/gatewright/internal/loopback"
	"gatewright.dev/gatewright/internal/questions"
)

const (
	// DefaultMaxBody is the smallest body limit among the known servers.
	DefaultMaxBody = 64 << 10
	maxReply       = 1 << 20
)

// ServerOptions says how to reach a decider and which model must answer there.
type ServerOptions struct {
	// BaseURL is http or https, without credentials or query.
	BaseURL string
	// Model is the name to ask for and, unless Expect is set, the one that every reply must carry.
	Model string
	// Expect is the concrete name that replies must carry when Model is an alias.
	Expect string
	// Fingerprint identifies what stands behind the name; empty derives it from names and versions alone.
	Fingerprint string
	// Token returns the bearer token to send, read anew for each request. It never goes over plain HTTP off this host.
	Token func() string
	// Transport is shared by all deciders of a process; see NewTransport.
	Transport http.RoundTripper
	// MaxBody bounds the request body; 0 is DefaultMaxBody. Longer requests are refused, never cut.
	MaxBody     int
	Calibration Calibration
	// MinCoverage is the least probability mass that the offered answers must hold together, where it is known.
	MinCoverage float64
}

// NewTransport returns the transport that all deciders of a process should share.
func NewTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy = nil // what is judged must not pass through a proxy that the environment names
	t.MaxIdleConnsPerHost = 64
	t.DialContext = (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext
	t.TLSHandshakeTimeout = 5 * time.Second
	t.DisableCompression = true // replies are small, and a bounded reply should be what came over the wire
	return t
}

func (o ServerOptions) expected() string {
	if o.Expect != "" {
		return o.Expect
	}
	return o.Model
}

func (o ServerOptions) fingerprint(kind string, parts ...string) string {
	if o.Fingerprint != "" {
		return o.Fingerprint
	}
	parts = append([]string{kind, o.expected(), questions.PromptVersion}, parts...)
	for _, t := range []questions.Type{questions.YesNo, questions.Choice, questions.Score} {
		if milli, ok := o.Calibration[t]; ok { // a temperature moves every number
			parts = append(parts, string(t)+"="+strconv.Itoa(milli))
		}
	}
	return fingerprintOf(parts...)
}

// endpoint sends bounded requests and reads bounded replies.
type endpoint struct {
	client  *http.Client
	base    *url.URL
	token   func() string
	maxBody int
}

func newEndpoint(o ServerOptions) (*endpoint, error) {
	base, err := url.Parse(o.BaseURL)
	switch {
	case err != nil:
		return nil, errors.New("base URL cannot be parsed")
	case base.Scheme != "http" && base.Scheme != "https" || base.Host == "":
		return nil, errors.New("base URL must be http or https with a host")
	case base.User != nil || base.RawQuery != "" || base.Fragment != "":
		return nil, errors.New("base URL must have no credentials, query or fragment")
	case o.Transport == nil:
		return nil, errors.New("transport is required")
	case o.Model == "":
		return nil, errors.New("model is required: a number belongs to its model")
	case o.Token != nil && base.Scheme == "http" && !loopback.IsHost(base.Hostname()):
		return nil, errors.New("a token may be sent over https only")
	case o.MinCoverage < 0 || o.MinCoverage > 1 || o.MaxBody < 0:
		return nil, errors.New("limits must not be negative, and coverage at most 1")
	}
	for _, milli := range o.Calibration {
		if milli < 0 {
			return nil, errors.New("a temperature must not be negative")
		}
	}
	e := &endpoint{base: base, token: o.Token, maxBody: o.MaxBody}
	if e.maxBody == 0 {
		e.maxBody = DefaultMaxBody
	}
	// A redirect would carry the call and the token to a place that nobody configured.
	e.client = &http.Client{Transport: o.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return e, nil
}

// post sends a body that must fit and returns a reply that must fit.
func (e *endpoint) post(ctx context.Context, path string, body []byte, limit int) ([]byte, error) {
	if len(body) > e.maxBody {
		return nil, fail(TooLong, "request has %d bytes, the limit is %d", len(body), e.maxBody)
	}
	return e.do(ctx, http.MethodPost, path, body, limit)
}

func (e *endpoint) get(ctx context.Context, path string) ([]byte, error) {
	return e.do(ctx, http.MethodGet, path, nil, maxReply)
}

func (e *endpoint) do(ctx context.Context, method, path string, body []byte, limit int) ([]byte, error) {
	target := *e.base
	target.Path = strings.TrimSuffix(target.Path, "/") + path
	req, err := http.NewRequestWithContext(ctx, method, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fail(Unreachable, "the request cannot be built")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	if e.token != nil {
		if token := e.token(); token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return nil, transportError(ctx, err)
	}
	defer resp.Body.Close()
	reply, err := io.ReadAll(io.LimitReader(resp.Body, int64(limit)+1))
	switch {
	case err != nil:
		return nil, transportError(ctx, err)
	case resp.StatusCode != http.StatusOK:
		return nil, statusError(resp.StatusCode, resp.Header, reply)
	case len(reply) > limit:
		return nil, fail(BadReply, "the reply exceeds %d bytes", limit)
	}
	return reply, nil
}

// transportError names the kind of failure only: the error itself holds the URL.
func transportError(ctx context.Context, err error) *Error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return &Error{Reason: Canceled}
	}
	var (
		network net.Error
		dial    *net.OpError
		trust   *tls.CertificateVerificationError
	)
	isDial := errors.As(err, &dial) && dial.Op == "dial"
	switch {
	case ctx.Err() != nil:
		return &Error{Reason: Timeout}
	case isDial && dial.Timeout():
		return &Error{Reason: Timeout, Detail: "connecting took too long", unsent: true}
	case isDial:
		return &Error{Reason: Unreachable, Detail: "no connection", unsent: true}
	case errors.As(err, &trust):
		return fail(Unreachable, "the server's certificate is not trusted")
	case errors.As(err, &network) && network.Timeout():
		return &Error{Reason: Timeout}
	default:
		return fail(Unreachable, "the connection ended before the reply did")
	}
}

// checkModel compares the name that a reply carries with the pinned one.
func checkModel(got, want string) error {
	if got != want {
		return fail(ModelMismatch, "the reply does not carry the pinned model name")
	}
	return nil
}

func (o ServerOptions) checkCoverage(name string, coverage float64) error {
	if coverage < o.MinCoverage {
		return fail(LowCoverage, "question %s: offered answers hold %.2f of the probability, %.2f is required", name, coverage, o.MinCoverage)
	}
	return nil
}
