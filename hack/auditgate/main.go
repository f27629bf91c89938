// Command auditgate serves the gate of the benchmark with its audit log on a disk, or with none, so that bench/audit.sh can
// tell what the log costs. A gate that guards anything always has one: no flag of gatewright switches it off.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/gate"
	"gatewright.dev/gatewright/internal/manifest"
	"gatewright.dev/gatewright/internal/policy"
)

func main() {
	var c config
	flag.StringVar(&c.manifests, "manifests", "bench/gatewright", "folder with the policies")
	flag.StringVar(&c.log, "audit-log", "", "file to record decisions in; empty for none at all")
	flag.StringVar(&c.key, "audit-key", "", "file with the key to sign the log with; empty to sign nothing")
	flag.StringVar(&c.tokens, "token-auth-file", "", "callers by token")
	flag.StringVar(&c.listen, "listen", "127.0.0.1:0", "address")
	flag.BoolVar(&c.verify, "verify", false, "check the log and serve nothing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, c)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "auditgate:", err)
		os.Exit(1)
	}
}

type config struct {
	manifests, log, key, tokens, listen string
	verify                              bool
}

// none takes records and keeps nothing.
type none struct{}

func (none) Append(context.Context, *audit.Record) error { return nil }
func (none) Enqueue(*audit.Record) error                 { return nil }
func (none) Available() bool                             { return true }

func run(ctx context.Context, c config) (err error) {
	if c.verify {
		return verify(c)
	}
	tokens, err := gate.LoadTokens(c.tokens)
	if err != nil {
		return err
	}
	var recorder gate.Recorder = none{}
	if c.log != "" {
		log, err := openLog(c)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, log.Close()) }()
		recorder = log
	}
	approvals := approval.NewMemory(clock.RealClock{})
	registry := prometheus.NewRegistry()
	g, err := gate.New(gate.Options{Identify: tokens, Recorder: recorder, Approvals: approvals, Seals: approvals, Registry: registry})
	if err != nil {
		return err
	}
	set, err := manifest.LoadDir(c.manifests)
	if err != nil {
		return err
	}
	var policies []*policy.Compiled
	for _, p := range set.ToolPolicies() {
		compiled, errs := policy.Compile(p)
		if len(errs) > 0 {
			return errs.ToAggregate()
		}
		policies = append(policies, compiled)
	}
	g.SetSnapshot(&gate.Snapshot{Policies: policy.NewSet(policies)})
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.listen)
	if err != nil {
		return err
	}
	return g.Serve(ctx, listener, g.Routes(registry), 0)
}

func openLog(c config) (*audit.File, error) {
	o := audit.Options{}
	if c.key != "" {
		keys, err := audit.LoadOrCreateKeys(c.key, clock.RealClock{})
		if err != nil {
			return nil, err
		}
		o.Signer = keys
	}
	return audit.Open(c.log, o)
}

// verify checks the chain of the log and its signatures. The gate may be running: a last line that is not finished is left out.
func verify(c config) error {
	keys, err := audit.ReadPublicKeys(c.key)
	if err != nil {
		return err
	}
	v, err := audit.NewVerifier(audit.Evidence{Keys: keys})
	if err != nil {
		return err
	}
	in, err := os.Open(c.log)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // read only
	_, err = v.Part(in)
	if broken, ok := errors.AsType[*audit.Break](err); ok && broken.What == audit.BreakTorn {
		err = nil
	}
	if err != nil {
		return err
	}
	_, err = v.End()
	return err
}
