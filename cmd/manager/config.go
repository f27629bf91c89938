package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"gatewright.dev/gatewright/controllers"
	"gatewright.dev/gatewright/internal/cmdline"
	"gatewright.dev/gatewright/internal/names"
)

// config is what the manager is started with.
type config struct {
	namespace       string
	kubeconfig      string
	metricsListen   string
	probeListen     string
	leaderElect     bool
	gatePoll        time.Duration
	gateDNSNames    []string
	shutdownTimeout time.Duration
	logLevel        slog.Level
	version         bool
	deciders        controllers.DeciderOptions
	webhooks        webhookConfig
}

// BindFlags declares the flags with their defaults.
func (c *config) BindFlags(f *flag.FlagSet) {
	f.StringVar(&c.namespace, "namespace", names.Namespace, "`namespace` of Gatewright, where its Secrets, gates and deciders are")
	f.StringVar(&c.kubeconfig, "kubeconfig", "", "`file` that says where the API server is (default: the service account of this pod)")
	f.StringVar(&c.metricsListen, "metrics-listen", fmt.Sprintf(":%d", names.ManagerMetricsPort), "`address` of /metrics, by HTTP; 0 serves none")
	f.StringVar(&c.probeListen, "probe-listen", fmt.Sprintf(":%d", names.ManagerProbePort), "`address` of /healthz and /readyz, by HTTP; 0 serves none")
	f.BoolVar(&c.leaderElect, "leader-elect", true, "run the controllers on one replica at a time; the webhooks run on all")
	f.DurationVar(&c.gatePoll, "gate-poll", 2*time.Second, "`time` after which each gate is asked again what it serves")
	f.Func("gate-dns-name", "further DNS `name` by which callers reach the gate, for its certificate; may be repeated", func(s string) error {
		c.gateDNSNames = append(c.gateDNSNames, s)
		return nil
	})
	f.DurationVar(&c.shutdownTimeout, "shutdown-timeout", 20*time.Second, "`time` in which what is in progress is finished at the end")
	f.TextVar(&c.logLevel, "log-level", slog.LevelInfo, "least `level` that is logged: debug, info, warn, error")
	f.BoolVar(&c.version, "version", false, "print the version")
	c.deciders.BindFlags(f)
	c.webhooks.BindFlags(f)
}

// Validate says what is wrong with the flags.
func (c *config) Validate() error {
	if problems := validation.IsDNS1123Label(c.namespace); len(problems) > 0 {
		return fmt.Errorf("-namespace %q: %s", c.namespace, strings.Join(problems, ", "))
	}
	for name, address := range map[string]string{"metrics-listen": c.metricsListen, "probe-listen": c.probeListen} {
		if address == "0" {
			continue
		}
		if _, _, err := net.SplitHostPort(address); err != nil {
			return fmt.Errorf("-%s: %w", name, err)
		}
	}
	for _, name := range c.gateDNSNames {
		if len(validation.IsDNS1123Subdomain(name)) > 0 && len(validation.IsWildcardDNS1123Subdomain(name)) > 0 {
			return fmt.Errorf("-gate-dns-name %q is no DNS name", name)
		}
	}
	switch {
	case c.gatePoll < 100*time.Millisecond || c.gatePoll > time.Minute:
		return errors.New("-gate-poll: want 100ms to 1m")
	case c.shutdownTimeout < time.Second || c.shutdownTimeout > 10*time.Minute:
		return errors.New("-shutdown-timeout: want 1s to 10m")
	}
	if err := c.webhooks.Validate(); err != nil {
		return err
	}
	return c.deciders.Validate()
}

// parse reads and checks the command line.
func parse(args []string, stderr io.Writer) (config, error) {
	var c config
	f := flag.NewFlagSet("manager", flag.ContinueOnError)
	c.BindFlags(f)
	err := cmdline.ParseFlags(f, args, "manager runs the controllers and webhooks of Gatewright in a cluster.", stderr)
	switch {
	case err != nil:
		return c, err
	case f.NArg() > 0:
		return c, fmt.Errorf("unexpected argument %q", f.Arg(0))
	case c.version:
		return c, nil
	}
	return c, c.Validate()
}
