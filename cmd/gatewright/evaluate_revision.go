package main

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/deciders"
	"gatewright.dev/gatewright/internal/evaluation"
	"gatewright.dev/gatewright/internal/evaluation/local"
	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/inference/workload"
	"gatewright.dev/gatewright/internal/names"
)

// revisionEvaluation is what the Job of a DeciderEvaluation does.
type revisionEvaluation struct {
	decider, spec                string
	endpoint, cert, key, ca      string
	tokenFile                    string
	cases, casesHash, ladderHash string
	repeats                      int
	result                       string
	stderr                       io.Writer
	serverName                   string // another one in tests only
}

// evaluatedName is what the decider is called in the gate that asks it: in that gate there is no other.
const evaluatedName = "evaluated"

func newEvaluateRevision() *cobra.Command {
	o := revisionEvaluation{serverName: names.DeciderServerName}
	c := &cobra.Command{
		Use: "evaluate-revision", Hidden: true, Args: cobra.NoArgs,
		Short: "Run labelled cases against one revision of a decider, for a DeciderEvaluation",
		RunE: func(c *cobra.Command, _ []string) error {
			o.stderr = c.ErrOrStderr()
			return o.run(c.Context())
		},
	}
	f := c.Flags()
	f.StringVar(&o.decider, "decider", "", "name of the DeciderModel")
	f.StringVar(&o.spec, "spec", "", "file with the spec of the revision, as JSON")
	f.StringVar(&o.endpoint, "endpoint", "", "address of the revision, for those that run in pods")
	f.StringVar(&o.cert, "tls-cert", "", "file with the certificate to show there")
	f.StringVar(&o.key, "tls-key", "", "file with its key")
	f.StringVar(&o.ca, "ca", "", "file with the authority to trust there")
	f.StringVar(&o.tokenFile, "token-file", "", "file with a bearer token, for runtime External")
	f.StringVar(&o.cases, "cases", "", "file with the cases, one a line; a ladder lies beside it as "+workload.LadderFile)
	f.StringVar(&o.casesHash, "cases-sha256", "", "SHA-256 that the cases must have")
	f.StringVar(&o.ladderHash, "ladder-sha256", "", "SHA-256 that the ladder must have; without it matches_request alone decides")
	f.IntVar(&o.repeats, "repeats", 3, "how often each case is asked about")
	f.StringVar(&o.result, "result", "", "file to write the counts to")
	return c
}

func (o *revisionEvaluation) run(ctx context.Context) error {
	spec, err := o.readSpec()
	if err != nil {
		return err
	}
	cases, ladder, err := o.readCases()
	if err != nil {
		return err
	}
	decider, err := o.client(spec)
	if err != nil {
		return err
	}
	fingerprint, err := identify(ctx, spec, decider, clock.RealClock{})
	if err != nil {
		return fmt.Errorf("asking the decider who it is: %w", err)
	}
	report, err := o.measure(ctx, spec, cases, ladder, decider, fingerprint)
	if err != nil {
		return err
	}
	status, err := o.counts(report, fingerprint)
	if err != nil {
		return err
	}
	text, err := json.Marshal(status)
	if err != nil {
		return err
	}
	if len(text) > workload.MaxResult {
		return fmt.Errorf("the counts have %d bytes, at most %d can be handed over", len(text), workload.MaxResult)
	}
	return os.WriteFile(o.result, text, 0o600)
}

// identify asks the decider who it is. In a pod that has just started it asks again for a minute: rules of the network that
// let it out come a moment later than the pod.
func identify(ctx context.Context, spec *v1alpha1.DeciderModelSpec, decider inference.Decider, c clock.Clock) (v1alpha1.Fingerprint, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		fingerprint, err := deciders.Fingerprint(ctx, spec, decider)
		if inference.ReasonOf(err) != inference.Unreachable {
			return fingerprint, err
		}
		select {
		case <-c.After(time.Second):
		case <-ctx.Done():
			return "", err
		}
	}
}

func (o *revisionEvaluation) readSpec() (*v1alpha1.DeciderModelSpec, error) {
	if o.result == "" || o.decider == "" {
		return nil, exit{exitUsage, "--result and --decider are required"}
	}
	text, err := os.ReadFile(o.spec)
	if err != nil {
		return nil, fmt.Errorf("reading the decider's spec: %w", err)
	}
	var spec v1alpha1.DeciderModelSpec
	if err := yaml.UnmarshalStrict(text, &spec); err != nil {
		return nil, fmt.Errorf("reading the decider's spec: %w", err)
	}
	return &spec, nil
}

// readCases reads the cases and the ladder that judges them, which have to be those that were named.
func (o *revisionEvaluation) readCases() (cases []*evaluation.Case, ladder string, err error) {
	text, err := pinnedFile(o.cases, o.casesHash)
	if err != nil {
		return nil, "", fmt.Errorf("reading the cases: %w", err)
	}
	if cases, err = evaluation.ReadCases(strings.NewReader(string(text)), filepath.Base(o.cases)); err != nil {
		return nil, "", err
	}
	if len(cases) == 0 {
		return nil, "", errors.New("there are no cases")
	}
	if o.ladderHash == "" {
		return cases, "", nil
	}
	ladder = filepath.Join(filepath.Dir(o.cases), workload.LadderFile)
	if _, err := pinnedFile(ladder, o.ladderHash); err != nil {
		return nil, "", fmt.Errorf("reading the ladder: %w", err)
	}
	return cases, ladder, nil
}

// pinnedFile reads a file that must have a hash.
func pinnedFile(path, want string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	if got := hex.EncodeToString(sum[:]); got != want {
		return nil, fmt.Errorf("%s has SHA-256 %s, want %s", filepath.Base(path), got, want)
	}
	return text, nil
}

// client asks the revision as the gate does, so that the fingerprint is the one that the gate sees.
func (o *revisionEvaluation) client(spec *v1alpha1.DeciderModelSpec) (inference.Decider, error) {
	switch spec.Runtime {
	case v1alpha1.RuntimeEmbedded:
		return deciders.Embedded(spec)
	case v1alpha1.RuntimeExternal:
		token, err := o.token()
		if err != nil {
			return nil, err
		}
		return deciders.External(spec, token)
	case v1alpha1.RuntimeLlamaCpp, v1alpha1.RuntimeContainer:
	}
	transport, err := o.transport()
	if err != nil {
		return nil, err
	}
	return deciders.Pod(spec, workload.ModelName(o.decider, spec), o.endpoint, transport)
}

func (o *revisionEvaluation) token() (func() string, error) {
	if o.tokenFile == "" {
		return nil, nil
	}
	text, err := os.ReadFile(o.tokenFile)
	if err != nil {
		return nil, fmt.Errorf("reading the token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	return func() string { return token }, nil
}

func (o *revisionEvaluation) transport() (http.RoundTripper, error) {
	pair, err := tls.LoadX509KeyPair(o.cert, o.key)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate: %w", err)
	}
	authority, err := os.ReadFile(o.ca)
	if err != nil {
		return nil, fmt.Errorf("reading the authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, errors.New("reading the authority: the file holds no certificate")
	}
	t := inference.NewTransport()
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, Certificates: []tls.Certificate{pair}, ServerName: o.serverName}
	return t, nil
}

// measure puts the cases to a gate in this process that asks the revision.
func (o *revisionEvaluation) measure(
	ctx context.Context, spec *v1alpha1.DeciderModelSpec, cases []*evaluation.Case, ladder string, decider inference.Decider, fingerprint v1alpha1.Fingerprint,
) (_ *evaluation.Report, err error) {
	folder, err := os.MkdirTemp("", "gatewright-revision-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if err := writeEvaluated(folder, spec); err != nil {
		return nil, err
	}
	policies, err := local.ForCases(cases, local.CasesPolicy{
		Ladder: ladder, Manifests: folder, Decider: evaluatedName, Fingerprint: string(fingerprint), Namespace: evaluatedName,
	})
	if err != nil {
		return nil, err
	}
	gate, err := local.Start(ctx, local.Options{
		Policies: policies, Configuration: evaluation.Stacked, Namespace: evaluatedName, Caller: "cases", Cases: cases, Version: version,
		Decider: func(m *v1alpha1.DeciderModel) inference.Decider {
			if m.Name == evaluatedName {
				return decider
			}
			return nil
		},
	})
	if err != nil {
		return nil, err
	}
	defer closing(&err, gate)
	results, err := evaluation.Run(ctx, evaluation.RunOptions{
		Cases: cases, Gates: []evaluation.NamedGate{{Configuration: evaluation.Stacked, Gate: gate}}, Repeats: o.repeats,
		Progress: evaluation.NewProgress(o.stderr, clock.RealClock{}).Update,
	})
	if err != nil {
		return nil, err
	}
	return evaluation.NewReport(cases, results, evaluation.ReportOptions{Name: filepath.Base(o.cases), CasesDigest: "sha256:" + o.casesHash, Version: version, Seed: 1}), nil
}

// writeEvaluated writes the manifest that stands for the revision: one that may be asked, and whose answers count.
func writeEvaluated(folder string, spec *v1alpha1.DeciderModelSpec) error {
	stands := v1alpha1.DeciderModelSpec{
		Runtime: v1alpha1.RuntimeExternal, Languages: spec.Languages, RequireVerified: v1alpha1.Optional, ContextTokens: spec.ContextTokens,
		External:          &v1alpha1.ExternalRuntime{URL: "https://evaluated.invalid", Model: evaluatedName, MaxInFlight: 1},
		AllowedNamespaces: &v1alpha1.NamespaceAllowance{From: v1alpha1.NamespacesAll},
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.KindDeciderModel, "metadata": map[string]any{"name": evaluatedName}, "spec": stands,
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "decider.yaml"), text, 0o600)
}

// counts takes the counts out of a report. A run in which the decider often gave no answer is none: such calls wait for a
// person, which would count as stopped.
func (o *revisionEvaluation) counts(report *evaluation.Report, fingerprint v1alpha1.Fingerprint) (*v1alpha1.DeciderEvaluationStatus, error) {
	if len(report.Configurations) != 1 {
		return nil, errors.New("the run has no result")
	}
	c := report.Configurations[0]
	silent := 0
	for _, n := range c.Failures.Decider {
		silent += n
	}
	for reason, n := range c.Failures.Gate {
		return nil, fmt.Errorf("the gate did not answer %d times: %s", n, reason)
	}
	answered := 0
	if c.Tokens != nil {
		answered = c.Tokens.Requests
	}
	if silent*100 > answered {
		return nil, fmt.Errorf("the decider gave no answer to %d of %d requests: %v", silent, answered, c.Failures.Decider)
	}
	status := evaluation.ToStatus(&c)
	if status.Fingerprint == "" {
		return nil, errors.New("no case needed the decider, or several deciders answered")
	}
	if status.Fingerprint != fingerprint {
		return nil, fmt.Errorf("the decider changed from %s to %s while the cases were run", fingerprint, status.Fingerprint)
	}
	return &status, nil
}
