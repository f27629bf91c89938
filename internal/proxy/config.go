package proxy

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"gatewright.dev/gatewright/internal/loopback"
	"gatewright.dev/gatewright/permit"
	"gatewright.dev/gatewright/permit/natsstore"
)

// Protocols that a tool server can speak.
const (
	ProtocolHTTP = "http"
	ProtocolMCP  = "mcp"
)

// Config is how a proxy runs. BindFlags has the defaults.
type Config struct {
	// Listen and ProbeListen are addresses: of the proxy, and of probes and metrics.
	Listen, ProbeListen string
	// Upstream is the URL of the tool server, UpstreamCA a file with whom to trust for it.
	Upstream, UpstreamCA string
	// InsecureUpstream allows plain http to another machine.
	InsecureUpstream bool
	// Protocol is ProtocolHTTP or ProtocolMCP.
	Protocol string
	// Calls, Passes are patterns; ToolField and ArgumentsField name a body's members; MCPPath is the one path of MCP.
	Calls, Passes                      []string
	ToolField, ArgumentsField, MCPPath string
	// Audience and Server name the tool server: to permits, and as callers of the gate name it.
	Audience, Server string
	// GateURL, JWKS, GateCA, Issuer say where the gate is, where its keys are, and whom to take for it.
	GateURL, JWKS, GateCA, Issuer string
	// Ask makes the proxy ask the gate itself, with the token in TokenFile.
	Ask           bool
	TokenFile     string
	RemoteCallers bool
	// Replicas of this proxy, and where they keep used permits.
	Replicas                               int
	Store, PermitLog                       string
	NATSURL, NATSCreds, NATSCA, NATSBucket string
	Kubeconfig, LeaseNamespace             string
	// LeaseTimeout bounds one use of a permit by a Lease; leasestore.DefaultTimeout if zero. It has no flag.
	LeaseTimeout time.Duration
	// Origins of web pages that may call.
	Origins []string
	// TLSCert and TLSKey are files, read again for each connection.
	TLSCert, TLSKey string
	// Bounds.
	MaxBody                                   int64
	BodyTimeout, CallTimeout                  time.Duration
	MaxRequests, MaxStreams                   int
	DrainDelay, DrainTimeout, UpstreamTimeout time.Duration
	// Log takes what an operator acts on.
	Log *slog.Logger
	// Listening is told the addresses of proxy and probes, once they are there.
	Listening func(proxy, probes net.Addr)
}

// list is a flag that can be given several times.
type list struct{ values *[]string }

func (l list) String() string {
	if l.values == nil {
		return ""
	}
	return strings.Join(*l.values, ", ")
}

// Set implements flag.Value.
func (l list) Set(s string) error {
	*l.values = append(*l.values, s)
	return nil
}

// BindFlags binds the configuration to flags.
func (c *Config) BindFlags(f *flag.FlagSet) {
	f.StringVar(&c.Listen, "listen", "127.0.0.1:8471", "address to listen on")
	f.StringVar(&c.ProbeListen, "probe-listen", "127.0.0.1:8472", "address of /healthz, /readyz and /metrics")
	f.StringVar(&c.Upstream, "upstream", "", "URL of the tool server (required)")
	f.StringVar(&c.UpstreamCA, "upstream-ca", "", "file with the only authorities to trust for the tool server")
	f.BoolVar(&c.InsecureUpstream, "insecure-upstream", false, "allow plain http to a tool server on another machine")
	f.StringVar(&c.Protocol, "protocol", ProtocolHTTP, "http, or mcp for MCP over streamable HTTP")
	f.Var(list{&c.Calls}, "call", "http: METHOD /path of tool calls, with {tool} in the path or in the body; may be repeated (default \"POST /tools/{tool}\")")
	f.Var(list{&c.Passes}, "pass", "what passes without a permit: http: METHOD /path or METHOD /path/*; mcp: a JSON-RPC method, or responses; may be repeated")
	f.StringVar(&c.ToolField, "tool-field", "tool", "http: member of the body that names the tool, where the path does not")
	f.StringVar(&c.ArgumentsField, "arguments-field", "arguments", "http: member of the body that holds the arguments, where the path does not name the tool")
	f.StringVar(&c.MCPPath, "mcp-path", "/mcp", "mcp: the path that is served")
	f.StringVar(&c.Audience, "audience", "", "permitAudience that policies have for this tool server (required without --ask)")
	f.StringVar(&c.Server, "server", "", "server that callers name to the gate for these tools")
	f.StringVar(&c.GateURL, "gate-url", "", "URL of the gate: https, or http on loopback (required, unless --jwks is given)")
	f.StringVar(&c.JWKS, "jwks", "", "URL of the gate's public keys (default: "+permit.JWKSPath+" of the gate)")
	f.StringVar(&c.GateCA, "gate-ca", "", "file with the only authorities to trust for the gate")
	f.StringVar(&c.Issuer, "issuer", "", "the only issuer whose permits are taken; empty takes what the keys have signed")
	f.BoolVar(&c.Ask, "ask", false, "ask the gate about each call instead of taking permits, as the service account of --token-file")
	f.StringVar(&c.TokenFile, "token-file", "", "ask: file with the token for the gate, read again for each call")
	f.BoolVar(&c.RemoteCallers, "allow-remote-callers", false, "ask: allow an address that is not loopback, where everybody who reaches it calls as this proxy's service account")
	c.bindMore(f)
}

func (c *Config) bindMore(f *flag.FlagSet) {
	f.IntVar(&c.Replicas, "replicas", 1, "how many replicas of this proxy there are; more than one need --permit-store nats or lease")
	f.StringVar(&c.Store, "permit-store", StoreFile, "where used permits are kept: file (one replica), nats, or lease (Leases of a Kubernetes API server)")
	f.StringVar(&c.PermitLog, "permit-log", "gatewright-permits-used", "file of used permits")
	f.StringVar(&c.NATSURL, "nats-url", "", "NATS servers of used permits: nats:// or tls://")
	f.StringVar(&c.NATSCreds, "nats-creds", "", "file with the credentials for NATS")
	f.StringVar(&c.NATSCA, "nats-ca", "", "file with the only authorities to trust for NATS")
	f.StringVar(&c.NATSBucket, "nats-bucket", natsstore.DefaultBucket, "bucket of used permits; made if it is not there")
	f.StringVar(&c.LeaseNamespace, "lease-namespace", "", "lease: namespace of the Leases, the same for all replicas, where the service account may create, list and delete them")
	f.StringVar(&c.Kubeconfig, "kubeconfig", "", "lease: file that says where the API server is (default: as the pod's service account)")
	f.Var(list{&c.Origins}, "allow-origin", "origin of web pages that may call; may be repeated")
	f.StringVar(&c.TLSCert, "tls-cert", "", "certificate to serve with, read again for each connection")
	f.StringVar(&c.TLSKey, "tls-key", "", "key of the certificate")
	f.Int64Var(&c.MaxBody, "max-body", permit.MaxBody, "bytes of the longest body that is read, at most 1 MiB")
	f.DurationVar(&c.BodyTimeout, "body-timeout", 20*time.Second, "time in which a body has to be there")
	f.DurationVar(&c.CallTimeout, "call-timeout", 10*time.Minute, "time of one request, the tool's work included")
	f.DurationVar(&c.UpstreamTimeout, "upstream-timeout", 5*time.Minute, "time in which the tool server has to begin its answer")
	f.IntVar(&c.MaxRequests, "max-requests", 256, "requests at once; more are refused")
	f.IntVar(&c.MaxStreams, "max-streams", 256, "streams at once; more are refused")
	f.DurationVar(&c.DrainDelay, "drain-delay", 2*time.Second, "how long it still takes requests after it was told to end, not being ready any more")
	f.DurationVar(&c.DrainTimeout, "drain-timeout", 20*time.Second, "how long calls that run may take after that")
}

// Validate says what is wrong with the configuration, with field and remedy.
func (c *Config) Validate() error {
	return errors.Join(c.validateUpstream(), c.validateGate(), c.validateStore(), c.validateBounds())
}

func (c *Config) validateUpstream() error {
	u, err := url.Parse(c.Upstream)
	switch {
	case c.Upstream == "":
		return errors.New("--upstream is required: the URL of the tool server")
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("--upstream is no http or https URL of host and path")
	case u.Scheme == "http" && !loopback.IsHost(u.Hostname()) && !c.InsecureUpstream:
		return errors.New("--upstream is plain http to another machine, where calls could be altered on their way: use https, or --insecure-upstream where the network is trusted")
	case c.Protocol != ProtocolHTTP && c.Protocol != ProtocolMCP:
		return fmt.Errorf("--protocol %q is neither http nor mcp", c.Protocol)
	case c.Protocol == ProtocolMCP && (!strings.HasPrefix(c.MCPPath, "/") || !isPlainPath(c.MCPPath)):
		return errors.New("--mcp-path is no path")
	case c.Protocol == ProtocolMCP && (len(c.Calls) > 0 || slices.Contains(c.Passes, methodCall)):
		return errors.New("--call and --pass tools/call have no effect with --protocol mcp: tool calls are what they are there")
	}
	return nil
}

func (c *Config) validateGate() error {
	var errs []error
	if c.GateURL == "" && (c.Ask || c.JWKS == "") {
		errs = append(errs, errors.New("--gate-url is required"))
	}
	if c.GateURL != "" {
		u, err := url.Parse(c.GateURL)
		if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "https" && (u.Scheme != "http" || !loopback.IsHost(u.Hostname())) {
			errs = append(errs, errors.New("--gate-url is no URL of https, or of http on loopback"))
		}
	}
	if !c.Ask && c.Audience == "" {
		errs = append(errs, errors.New("--audience is required: the permitAudience of the policies"))
	}
	if c.Ask && (c.JWKS != "" || c.Audience != "" || c.Issuer != "" || c.Replicas != 1 || c.Store != StoreFile) {
		errs = append(errs, errors.New("--jwks, --audience, --issuer, --replicas and --permit-store have no effect with --ask: the gate's answer counts, and no permit"))
	}
	if !c.Ask && (c.TokenFile != "" || c.RemoteCallers) {
		errs = append(errs, errors.New("--token-file and --allow-remote-callers have no effect without --ask"))
	}
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		errs = append(errs, fmt.Errorf("--listen %q is no host:port", c.Listen))
	} else if c.Ask && !c.RemoteCallers && !loopback.IsHost(host) {
		errs = append(errs, fmt.Errorf("--listen %q is not loopback: everybody who reaches it would call as this proxy's service account, see --allow-remote-callers", c.Listen))
	}
	return errors.Join(errs...)
}

func (c *Config) validateBounds() error {
	var errs []error
	if c.MaxBody < 1 || c.MaxBody > permit.MaxBody {
		errs = append(errs, fmt.Errorf("--max-body is not between 1 and %d", permit.MaxBody))
	}
	if c.BodyTimeout <= 0 || c.CallTimeout <= 0 || c.UpstreamTimeout <= 0 || c.DrainDelay < 0 || c.DrainTimeout <= 0 {
		errs = append(errs, errors.New("--body-timeout, --call-timeout, --upstream-timeout and --drain-timeout have to be positive"))
	}
	if c.MaxRequests < 1 || c.MaxStreams < 1 {
		errs = append(errs, errors.New("--max-requests and --max-streams have to be positive"))
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		errs = append(errs, errors.New("--tls-cert and --tls-key go together"))
	}
	return errors.Join(errs...)
}
