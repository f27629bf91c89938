// Package serve runs a gate in one process from manifests in a folder: what a cluster does with objects, on one machine.
package serve

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/gate"
	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/keywatch"
	"gatewright.dev/gatewright/internal/loopback"
	"gatewright.dev/gatewright/internal/permit"
	"gatewright.dev/gatewright/internal/policy"
	"gatewright.dev/gatewright/internal/records"
)

// Config is how a gate is served.
type Config struct {
	// Manifests is a folder with ToolPolicy, ClusterToolPolicy and DeciderModel manifests.
	Manifests string
	// Listen is the address, 127.0.0.1:8470 by default.
	Listen string
	// TokenFile knows callers by their tokens. Required to listen on anything but loopback.
	TokenFile string
	// Caller is for whom every request counts when there is no token file, as namespace/name.
	Caller string
	// AuditLog is the file that decisions are recorded in, or records.NoFile.
	AuditLog string
	// Audit says where else records go, and what is kept.
	Audit records.Config
	// ApprovalLog is the file that approvals are kept in.
	ApprovalLog string
	// SealKey is a file with the keys that approvals are sealed with; beside ApprovalLog by default. It is made if it is
	// not there.
	SealKey string
	// PermitKey is a file with the keys that permits are signed with. It is made if it is not there.
	PermitKey string
	// ApproverSecret is a file with the secret by which a person decides approvals. It is made if it is not there.
	ApproverSecret string
	// ApproverTokens says whose tokens decide approvals too.
	ApproverTokens OIDCConfig
	// ShutdownDelay is how long the gate, told to end, is not ready and still answers. 0 on one machine; behind a load
	// balancer, as long as that takes to notice.
	ShutdownDelay time.Duration
	// Processes, if set, run deciders of runtime LlamaCpp in place of processes of this gate's own.
	Processes *Processes
	// Llama says with what deciders of runtime LlamaCpp are run.
	Llama LlamaConfig
	// Version of the binary, in records.
	Version string
	// Log takes what an operator acts on.
	Log *slog.Logger
	// NoReuse and Asked are for evaluations: every call is judged anew and asks a decider whatever became of the calls
	// before it, and what deciders said is told. No flag sets them.
	NoReuse bool
	Asked   func(decision string, a gate.Asked)
	// Decider, if set, gives the decider that is asked for a DeciderModel in place of the one that its manifest is about;
	// nil for those that are as they are written. It is for evaluations too.
	Decider func(m *v1alpha1.DeciderModel) inference.Decider
	// Listening is told the address that the gate listens on, once it does.
	Listening func(net.Addr)
}

// BindFlags binds the configuration to flags.
func (c *Config) BindFlags(f *flag.FlagSet) {
	f.StringVar(&c.Manifests, "manifests", "", "folder with ToolPolicy, ClusterToolPolicy and DeciderModel manifests; read again when it changes (required)")
	f.StringVar(&c.Listen, "listen", "127.0.0.1:8470", "address to listen on; anything but loopback needs --token-auth-file")
	f.StringVar(&c.TokenFile, "token-auth-file", "", "callers as lines token,system:serviceaccount:NAMESPACE:NAME,uid; must not be readable by others")
	f.StringVar(&c.Caller, "caller", "default/default", "service account that every request counts for when there is no token file, as NAMESPACE/NAME")
	f.StringVar(&c.AuditLog, "audit-log", "gatewright-audit.jsonl", "file to record decisions in; none for no file, with another --audit-sink")
	c.Audit.BindFlags(f)
	c.Llama.bindFlags(f)
	c.ApproverTokens.bindFlags(f)
	f.StringVar(&c.ApprovalLog, "approval-log", "gatewright-approvals.jsonl", "file to keep approvals in")
	f.StringVar(&c.SealKey, "seal-key", "", "file with the keys that approvals are sealed with; made, readable by its owner only, if it is not there (default: the approval log's name with .seal-key.json)")
	f.StringVar(&c.PermitKey, "permit-key", "gatewright-permit-key.json", "file with the keys that permits are signed with; made, readable by its owner only, if it is not there")
	f.DurationVar(&c.ShutdownDelay, "shutdown-delay", 0, "how long the gate, told to end, is not ready and still answers, such as 5s behind a load balancer")
	f.StringVar(&c.ApproverSecret, "approver-secret", "gatewright-approver-secret", "file with the secret by which a person decides approvals; made, readable by its owner only, if it is not there")
}

// Validate says what is wrong with the configuration, with field and remedy.
func (c *Config) Validate() error {
	var errs []error
	if c.Manifests == "" {
		errs = append(errs, errors.New("--manifests is required: name the folder with the policies"))
	}
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		errs = append(errs, fmt.Errorf("--listen %q is no host:port", c.Listen))
	} else if c.TokenFile == "" && !loopback.IsHost(host) {
		errs = append(errs, fmt.Errorf("--listen %q is not loopback: everybody who reaches it could ask in anybody's name, so give --token-auth-file", c.Listen))
	}
	if _, err := parseCaller(c.Caller); c.TokenFile == "" && err != nil {
		errs = append(errs, err)
	}
	return errors.Join(append(errs, c.ApproverTokens.validate(), c.Audit.Validate(c.AuditLog))...)
}

func parseCaller(s string) (policy.Caller, error) {
	namespace, name, _ := strings.Cut(s, "/")
	caller, err := gate.ServiceAccount(namespace, name)
	if err != nil {
		return policy.Caller{}, fmt.Errorf("--caller %q is no NAMESPACE/NAME of a service account", s)
	}
	return caller, nil
}

// issuer is the name that permits of a gate on one machine carry.
const issuer = "gatewright"

// Run serves until the context ends.
func Run(ctx context.Context, c Config) (err error) {
	if err := c.Validate(); err != nil {
		return err
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if err := checkFolder(c.Manifests); err != nil {
		return err
	}
	if err := c.checkPlaces(); err != nil {
		return err
	}
	identify, err := c.identifier()
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	log, err := records.Open(ctx, records.Options{Config: c.Audit, File: c.AuditLog, Version: c.Version, Log: c.Log, Registry: registry})
	if err != nil {
		return err
	}
	defer closing(&err, log)
	seals, err := approval.OpenSeals(c.sealKey(), clock.RealClock{})
	if err != nil {
		return fmt.Errorf("--seal-key %s: %w", c.sealKey(), err)
	}
	approvals, err := approval.OpenFile(c.ApprovalLog, clock.RealClock{}, seals)
	if err != nil {
		return fmt.Errorf("--approval-log %s: %w", c.ApprovalLog, err)
	}
	defer closing(&err, approvals)
	if err := checkLostEnd(ctx, log.Path, approvals, clock.RealClock{}.Now()); err != nil {
		return fmt.Errorf("--approval-log %s: %w", c.ApprovalLog, err)
	}
	defer tidier(ctx, approvals, clock.RealClock{}, c.Log)()
	keys, err := permit.LoadOrCreateKeys(c.PermitKey, clock.RealClock{})
	if err != nil {
		return fmt.Errorf("--permit-key %s: %w", c.PermitKey, err)
	}
	signer, err := permit.NewSigner(keys, issuer, clock.RealClock{})
	if err != nil {
		return err
	}
	g, err := gate.New(gate.Options{
		Identify: identify, Recorder: log, Capture: log.Capturer(), Approvals: approvals, Seals: seals, Permits: signer, ApproverIssuers: c.ApproverTokens.issuers(), Cluster: issuer, Log: c.Log, Registry: registry, Version: c.Version,
		Disclose: v1alpha1.DiscloseFull, NoReuse: c.NoReuse, Asked: c.Asked,
	})
	if err != nil {
		return err
	}
	reportIgnored(ctx, approvals.Ignored(), g.CountIgnored, c.Log)
	desk, err := newDesk(c.ApproverSecret, approvals, keys, c.Log)
	if err != nil {
		return err
	}
	if err := desk.metrics.register(registry); err != nil {
		return err
	}
	if desk.tokens, err = newTokenVerifier(ctx, c.ApproverTokens, clock.RealClock{}, c.Log); err != nil {
		return err
	}
	watch := keywatch.New(keyFiles(seals, keys, log, desk.tokens), c.Log)
	if err := watch.Register(registry); err != nil {
		return err
	}
	defer watch.Start(ctx, clock.RealClock{})()
	if err := desk.openLabels(log, registry); err != nil {
		return err
	}
	if err := desk.openConsole(ctx, log); err != nil {
		return err
	}
	return c.run(ctx, g, registry, desk)
}

func (c *Config) run(ctx context.Context, g *gate.Gate, registry *prometheus.Registry, desk *desk) error {
	source := newSource(c.Manifests, g, c.Log)
	source.llama, source.shared = c.Llama, c.Processes
	if err := source.reloads.register(registry); err != nil {
		return err
	}
	if c.NoReuse { // every call asks, whatever became of those before it
		source.failuresToOpen = math.MaxInt
	}
	source.given = c.Decider
	defer source.close()
	watcher := source.openWatcher() // before the folder is read, so that no change falls between
	if watcher != nil {
		defer watcher.Close() //nolint:errcheck // nothing is left to do with it
	}
	seen := source.stamp()
	if err := source.load(); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("--listen %s: %w", c.Listen, err)
	}
	if c.Listening != nil {
		c.Listening(listener.Addr())
	}
	c.Log.Info("serving", "address", listener.Addr().String(), "manifests", c.Manifests, "auditLog", c.AuditLog)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		source.watch(watching, watcher, seen)
	}()
	err = g.Serve(ctx, listener, c.routes(g.Routes(registry), desk), c.ShutdownDelay)
	stop()
	<-watched
	return err
}

// sealKey is where the sealing keys are: beside the log, without which they are of no use.
func (c *Config) sealKey() string {
	if c.SealKey != "" {
		return c.SealKey
	}
	return c.ApprovalLog + ".seal-key.json"
}

func (c *Config) identifier() (gate.Identifier, error) {
	if c.TokenFile != "" {
		tokens, err := gate.LoadTokens(c.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("reading tokens: %w", err)
		}
		return tokens, nil
	}
	caller, err := parseCaller(c.Caller)
	return gate.Anyone{Caller: caller}, err
}

func closing(err *error, c io.Closer) { *err = errors.Join(*err, c.Close()) }

// settle is how long the folder has to be quiet before it is read: editors write a file in several steps.
const settle = 200 * time.Millisecond

// longestSettle is how long a change waits at most: a folder that is never quiet must not keep old policies in force.
const longestSettle = 10 * settle

var errNotFolder = errors.New("is no folder")

func checkFolder(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("--manifests %s: %w", path, err)
	}
	if !info.IsDir() {
		return fmt.Errorf("--manifests %s %w", path, errNotFolder)
	}
	return nil
}
