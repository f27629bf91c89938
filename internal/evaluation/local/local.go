// Package local starts gates for an evaluation: in this process, on a free port of loopback, from policies in memory. They
// are the gates that serve runs, with two differences: no judgement is used twice, and what deciders said is told.
package local

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/yaml"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/deciders"
	"gatewright.dev/gatewright/internal/evaluation"
	"gatewright.dev/gatewright/internal/gate"
	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/manifest"
	"gatewright.dev/gatewright/internal/policy"
	"gatewright.dev/gatewright/internal/serve"
)

// Options say what to start.
type Options struct {
	Policies evaluation.Policies
	// Configuration says which parts of the policies decide.
	Configuration evaluation.Configuration
	// Namespace and Caller are the service account that the cases count for.
	Namespace, Caller string
	// Cases that will be sent. Those that name scopes are sent by accounts that hold exactly these.
	Cases []*evaluation.Case
	// Timeout of one call, 20 s by default.
	Timeout time.Duration
	// Version in the gate's records.
	Version string
	// AuditLog is the file that keeps the gate's records; by default they go with the gate.
	AuditLog string
	// Decided, if set, is told the id of the decision about each case.
	Decided func(one *evaluation.Case, decision string)
	// Decider, if set, gives the decider that is asked for a DeciderModel in place of the one that its manifest is about;
	// nil for those that are as they are written.
	Decider func(m *v1alpha1.DeciderModel) inference.Decider
	// Processes, if set, run the deciders of runtime LlamaCpp.
	Processes *serve.Processes
	// Log of the gate; discarded by default.
	Log *slog.Logger
}

// Gate is a gate that runs in this process.
type Gate struct {
	*evaluation.Client
	// URL that it listens on.
	URL string

	folder string
	stop   context.CancelFunc
	done   chan error
	asked  askedLog
}

// Start starts a gate. A policy that would not be in force is an error: what is measured must be what was written.
func Start(ctx context.Context, o Options) (_ *Gate, err error) {
	folder, err := os.MkdirTemp("", "gatewright-evaluation-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(folder))
		}
	}()
	accounts, of := evaluation.Accounts(o.Cases)
	if err := write(filepath.Join(folder, "manifests"), o, accounts); err != nil {
		return nil, err
	}
	tokens, err := writeTokens(filepath.Join(folder, "tokens.csv"), o.Namespace, o.Caller, accounts)
	if err != nil {
		return nil, err
	}
	g := &Gate{folder: folder, done: make(chan error, 1)}
	if err := g.serve(ctx, o); err != nil {
		return nil, err
	}
	g.Client = evaluation.NewClient(evaluation.ClientOptions{
		URL: g.URL, Timeout: o.Timeout, Asked: g.asked.take, Decided: o.Decided,
		Token: func(c *evaluation.Case) string { return tokens[of[c.ID]+1] },
	})
	return g, nil
}

// serve starts serving and waits for the address.
func (g *Gate) serve(ctx context.Context, o Options) error {
	ctx, g.stop = context.WithCancel(ctx)
	address := make(chan net.Addr, 1)
	log := &watchedLog{Handler: slog.DiscardHandler}
	if o.Log != nil {
		log.Handler = o.Log.Handler()
	}
	in := func(name string) string { return filepath.Join(g.folder, name) }
	go func() {
		g.done <- serve.Run(ctx, serve.Config{
			Manifests: in("manifests"), Listen: "127.0.0.1:0", TokenFile: in("tokens.csv"), AuditLog: cmp.Or(o.AuditLog, in("audit.jsonl")),
			ApprovalLog: in("approvals.jsonl"), PermitKey: in("permit-key.json"), ApproverSecret: in("approver-secret"),
			Version: o.Version, Log: slog.New(log), NoReuse: true, Asked: g.asked.add, Decider: o.Decider, Processes: o.Processes,
			Listening: func(a net.Addr) { address <- a },
		})
	}()
	select {
	case a := <-address:
		g.URL = "http://" + a.String()
		if err := log.err(); err != nil {
			g.stop()
			return errors.Join(fmt.Errorf("a gate for %s would go on without a part of it: %w", o.Configuration, err), <-g.done)
		}
		return nil
	case err := <-g.done:
		g.stop()
		return fmt.Errorf("starting a gate for %s: %w", o.Configuration, err)
	}
}

// Close ends the gate and removes its files.
func (g *Gate) Close() error {
	g.stop()
	return errors.Join(<-g.done, os.RemoveAll(g.folder))
}

// write writes the manifests as serve reads them, and reads them as serve does.
func write(folder string, o Options, accounts []evaluation.Account) error {
	policies, err := o.Policies.Variant(o.Configuration)
	if err != nil {
		return err
	}
	policies = policies.Grant(o.Namespace, o.Caller, accounts)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	data, err := Marshal(policies)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "evaluated.yaml"), data, 0o600); err != nil {
		return err
	}
	set := manifest.Read("evaluated.yaml", data)
	if err := set.Err(); err != nil {
		return fmt.Errorf("%s: %w", o.Configuration, err)
	}
	return compile(set, o.Configuration)
}

func compile(set *manifest.Set, c evaluation.Configuration) error {
	var errs []error
	for _, p := range set.ToolPolicies() {
		if _, list := policy.Compile(p); len(list) > 0 {
			errs = append(errs, fmt.Errorf("%s: ToolPolicy %s/%s: %w", c, p.Namespace, p.Name, list.ToAggregate()))
		}
	}
	for _, p := range set.ClusterToolPolicies() {
		if _, list := policy.CompileCluster(p); len(list) > 0 {
			errs = append(errs, fmt.Errorf("%s: ClusterToolPolicy %s: %w", c, p.Name, list.ToAggregate()))
		}
	}
	return errors.Join(errs...)
}

// Marshal writes policies as one stream of YAML, always in the same bytes.
func Marshal(p evaluation.Policies) ([]byte, error) {
	var out []byte
	add := func(kind, namespace, name string, spec any) error {
		meta := map[string]any{"name": name}
		if namespace != "" {
			meta["namespace"] = namespace
		}
		document, err := yaml.Marshal(map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind, "metadata": meta, "spec": spec,
		})
		out = append(append(out, "---\n"...), document...)
		return err
	}
	var errs []error
	for _, m := range p.Models {
		errs = append(errs, add(v1alpha1.KindDeciderModel, "", m.Name, &m.Spec))
	}
	for _, one := range p.Cluster {
		errs = append(errs, add(v1alpha1.KindClusterToolPolicy, "", one.Name, &one.Spec))
	}
	for _, one := range p.Tool {
		errs = append(errs, add(v1alpha1.KindToolPolicy, one.Namespace, one.Name, &one.Spec))
	}
	return out, errors.Join(errs...)
}

// LoadPolicies reads the manifests of a folder. A manifest that is refused is an error.
func LoadPolicies(folder string) (evaluation.Policies, error) {
	set, err := manifest.LoadDir(folder)
	if err != nil {
		return evaluation.Policies{}, err
	}
	if err := set.Err(); err != nil {
		return evaluation.Policies{}, fmt.Errorf("%s holds manifests that would block their callers: %w", folder, err)
	}
	return evaluation.Policies{Tool: set.ToolPolicies(), Cluster: set.ClusterToolPolicies(), Models: set.DeciderModels()}, nil
}

// Embedded is the decider that every binary has, and the fingerprint of its answers.
func Embedded() (*v1alpha1.DeciderModel, v1alpha1.Fingerprint) {
	m := &v1alpha1.DeciderModel{}
	m.Name = "embedded"
	m.Spec = v1alpha1.DeciderModelSpec{Runtime: v1alpha1.RuntimeEmbedded, Artifact: &v1alpha1.Artifact{
		Type: v1alpha1.ArtifactBundled, SHA256: v1alpha1.SHA256(deciders.EmbeddedHash()), Bundled: &v1alpha1.BundledArtifact{Name: inference.EmbeddedName},
	}}
	return m, v1alpha1.Fingerprint(inference.EmbeddedFingerprint())
}

// writeTokens makes a token for the caller and for each account, in this order.
func writeTokens(path, namespace, caller string, accounts []evaluation.Account) ([]string, error) {
	names := []string{caller}
	for _, a := range accounts {
		names = append(names, a.Name)
	}
	tokens := make([]string, len(names))
	var file strings.Builder
	for i, name := range names {
		var random [16]byte
		if _, err := rand.Read(random[:]); err != nil {
			return nil, err
		}
		tokens[i] = hex.EncodeToString(random[:])
		fmt.Fprintf(&file, "%s,system:serviceaccount:%s:%s,%d\n", tokens[i], namespace, name, i)
	}
	return tokens, os.WriteFile(path, []byte(file.String()), 0o600)
}

// askedLog holds what deciders said until the answer of the gate is there.
type askedLog struct {
	mu         sync.Mutex
	byDecision map[string]evaluation.Asked
}

func (l *askedLog) add(decision string, a gate.Asked) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byDecision == nil {
		l.byDecision = map[string]evaluation.Asked{}
	}
	sum := l.byDecision[decision]
	sum.Requests++
	if a.Err != "" {
		sum.Errors = append(sum.Errors, string(a.Err))
	}
	sum.InputTokens += a.Result.InputTokens
	sum.OutputTokens += a.Result.OutputTokens
	sum.Milliseconds = max(sum.Milliseconds, float64(a.Took)/float64(time.Millisecond))
	l.byDecision[decision] = sum
}

func (l *askedLog) take(decision string) evaluation.Asked {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.byDecision[decision]
	delete(l.byDecision, decision)
	return a
}

// Digest identifies policies, whatever files they came in.
func Digest(p evaluation.Policies) (string, error) {
	data, err := Marshal(p)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}
