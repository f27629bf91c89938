package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"gatewright.dev/gatewright/internal/cluster"
	"gatewright.dev/gatewright/internal/cmdline"
	"gatewright.dev/gatewright/internal/console"
	"gatewright.dev/gatewright/internal/names"
	"gatewright.dev/gatewright/internal/records"
)

// config is what the gate is started with.
type config struct {
	namespace, kubeconfig string
	identity              string

	listen, statusListen, pprof string
	tlsDir, clientDir           string
	keysDir, tokensDir          string

	audience, cluster, issuer string
	tokenTTL                  time.Duration
	authorizeTools            bool
	maxStaleness              time.Duration
	shutdownDelay             time.Duration

	auditLog string
	audit    records.Config

	console      bool
	consoleHosts hosts

	logLevel slog.Level
	version  bool

	// listening is told the addresses for callers and for status, once they are taken.
	listening func(callers, status net.Addr)
}

// BindFlags declares the flags with their defaults, which are what the chart mounts.
func (c *config) BindFlags(f *flag.FlagSet) {
	f.StringVar(&c.namespace, "namespace", names.Namespace, "`namespace` of Gatewright, where revisions of deciders and Leases of approvals are")
	f.StringVar(&c.kubeconfig, "kubeconfig", "", "`file` that says where the API server is (default: the service account of this pod)")
	f.StringVar(&c.identity, "identity", "", "`name` by which this gate stands in the Lease of an approval that it used (default: the host's name, which is the pod's)")
	f.StringVar(&c.listen, "listen", fmt.Sprintf(":%d", names.GatePort), "`address` for callers, by HTTPS")
	f.StringVar(&c.statusListen, "status-listen", fmt.Sprintf(":%d", names.GateStatusPort), "`address` of probes, metrics and what is served, by HTTP; callers must not reach it")
	f.StringVar(&c.pprof, "pprof", "", "loopback `address` for profiles of this process (default: none)")
	f.StringVar(&c.tlsDir, "tls-dir", "/etc/gatewright/tls", "`folder` with tls.crt and tls.key, by which callers know this gate; read again when they change")
	f.StringVar(&c.clientDir, "decider-client-dir", "/etc/gatewright/decider-client", "`folder` with tls.crt, tls.key and ca.crt, by which deciders know this gate and it knows them; read again when they change")
	f.StringVar(&c.keysDir, "keys-dir", "/etc/gatewright/keys", "`folder` with the keys of approvals and permits: "+names.KeySeal+" and "+names.KeyPermit+"; read again when they change")
	f.StringVar(&c.tokensDir, "external-tokens-dir", "/etc/gatewright/external-tokens", "`folder` with the bearer tokens of deciders of runtime External, by name of their Secret and host")
	f.StringVar(&c.audience, "audience", names.Audience, "`audience` that tokens of callers must have")
	f.StringVar(&c.cluster, "cluster", names.Name, "`name` of the cluster, which keeps permits of two clusters apart")
	f.StringVar(&c.issuer, "permit-issuer", names.Name, "`issuer` that permits name")
	f.DurationVar(&c.tokenTTL, "token-ttl", cluster.MaxTokenTTL, "`time` for which a token is taken without asking the API server again, at most 50s")
	f.BoolVar(&c.authorizeTools, "authorize-tools", false, "ask the API server whether the service account has the verb invoke on the resource tools of gatewright.dev, by name of the tool, for each call that rules do not block")
	f.DurationVar(&c.maxStaleness, "max-staleness", 5*time.Minute, "`time` without contact with the API server after which only reads are judged")
	f.DurationVar(&c.shutdownDelay, "shutdown-delay", 5*time.Second, "`time` for which the gate, told to end, is not ready and still answers")
	f.StringVar(&c.auditLog, "audit-log", "/var/lib/gatewright/audit.jsonl", "`file` to record decisions in; none for no file, with another -audit-sink")
	c.audit.Key = "/etc/gatewright/keys/" + names.KeyAudit
	c.audit.BindFlags(f)
	f.BoolVar(&c.console, "console", false, "serve the web page at "+console.Path+" on -listen, for people with a Kubernetes token of their own")
	f.Var(&c.consoleHosts, "console-host", "`name` by which browsers reach the web page, beside those of loopback and of the gate's Service; may be repeated")
	f.TextVar(&c.logLevel, "log-level", slog.LevelInfo, "least `level` that is logged: debug, info, warn, error")
	f.BoolVar(&c.version, "version", false, "print the version")
}

// key is where a key of the mounted Secret is.
func (c *config) key(name string) string { return filepath.Join(c.keysDir, name) }

// Validate says what is wrong with the flags.
func (c *config) Validate() error {
	if problems := validation.IsDNS1123Label(c.namespace); len(problems) > 0 {
		return fmt.Errorf("-namespace %q is no name of a namespace", c.namespace)
	}
	for name, address := range map[string]string{"listen": c.listen, "status-listen": c.statusListen} {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return fmt.Errorf("-%s %q is no host:port", name, address)
		}
	}
	switch {
	case c.pprof != "" && !cmdline.IsLoopback(c.pprof):
		return errors.New("-pprof must be a loopback address: profiles can hold what users wrote")
	case c.audience == "":
		return errors.New("-audience must not be empty: a token for anybody would do")
	case c.cluster == "" || c.issuer == "":
		return errors.New("-cluster and -permit-issuer must not be empty")
	case c.tokenTTL < time.Second || c.tokenTTL > cluster.MaxTokenTTL:
		return fmt.Errorf("-token-ttl: want 1s to %s", cluster.MaxTokenTTL)
	case c.maxStaleness < time.Second || c.maxStaleness > time.Hour:
		return errors.New("-max-staleness: want 1s to 1h")
	case c.shutdownDelay < 0 || c.shutdownDelay > 10*time.Minute:
		return errors.New("-shutdown-delay: want 0 to 10m")
	case len(c.consoleHosts) > 0 && !c.console:
		return errors.New("-console-host needs -console")
	}
	return c.audit.Validate(c.auditLog)
}

// parse reads and checks the command line.
func parse(args []string, stderr io.Writer) (config, error) {
	var c config
	f := flag.NewFlagSet("gate", flag.ContinueOnError)
	c.BindFlags(f)
	err := cmdline.ParseFlags(f, args, "gate judges tool calls in a cluster.", stderr)
	if err == nil && f.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q: the gate takes flags only", f.Arg(0))
	}
	if err != nil || c.version {
		return c, err
	}
	return c, c.Validate()
}
