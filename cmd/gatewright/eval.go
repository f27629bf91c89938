package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/deciders"
	"gatewright.dev/gatewright/internal/evaluation"
	"gatewright.dev/gatewright/internal/evaluation/local"
	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/serve"
)

// gateOptions say by which gates cases are judged.
type gateOptions struct {
	caller      string
	concurrency int
	timeout     time.Duration
	where       map[string]string
	temperature float64
	llama       serve.LlamaConfig
	processes   *serve.Processes
	// drawn are the deciders that draw their answers.
	drawn map[string]inference.Decider
}

func (o *gateOptions) bind(c *cobra.Command) {
	c.Flags().StringVar(&o.caller, "caller", "default/default", "service account that the cases count for, as NAMESPACE/NAME")
	c.Flags().IntVar(&o.concurrency, "concurrency", 1, "calls in flight; latency is measured best with 1")
	c.Flags().DurationVar(&o.timeout, "timeout", 20*time.Second, "how long to wait for each answer; over it the case has none")
	addLlama(c, &o.llama)
	c.Flags().StringToStringVar(&o.where, "where", nil, "only cases with these values, such as half=B,class=write; fields are source, family, kind, half, class, label")
}

type evalOptions struct {
	gateOptions
	policySource
	configurations             []string
	repeats                    int
	format, output, resume     string
	seed                       uint64
	yesMeans                   map[string]string
	prices                     evaluation.Prices
	minimumRecall, maximumFlap float64
	maximumFalseBlocks         map[string]string
	maximumP95, maximumP99     time.Duration
	changed                    func(string) bool
	stdout, stderr             io.Writer
	cases                      []*evaluation.Case
	casesFile, casesDigest     string
	policiesDigest             string
}

func newEval() *cobra.Command {
	var o evalOptions
	c := &cobra.Command{
		Use:   "eval CASES.jsonl",
		Short: "Measure policies and deciders on labelled calls",
		Long: "Sends labelled calls to gates over HTTP, as dry runs, and reports how many dangerous ones were stopped and harmless ones\n" +
			"were not, how sure the decider was and how right, and how long it took. With --manifests or --policy-for-cases it starts\n" +
			"three gates of its own: rules alone, the decider alone, and both. They use no judgement twice. With --url it asks a gate.\n" +
			"Exit status: 0 when the run is complete, 4 if a floor does not hold, 1 if it could not be run.",
		Example: "  gatewright eval testdata/evalsets/public.jsonl --policy-for-cases\n" +
			"  gatewright eval cases.jsonl --manifests policies --caller shop/agent --repeats 3 --format html --output report.html\n" +
			"  gatewright eval cases.jsonl --url http://127.0.0.1:8470 --minimum-recall 95",
		Args: cobra.ExactArgs(1),
	}
	o.gateOptions.bind(c)
	o.bindGates(c)
	o.bindReport(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		o.casesFile, o.changed, o.stdout, o.stderr = args[0], c.Flags().Changed, c.OutOrStdout(), c.ErrOrStderr()
		return o.run(c.Context())
	}
	return c
}

func (o *evalOptions) bindGates(c *cobra.Command) {
	f := c.Flags()
	o.policySource.bind(c, "folder with the policies and deciders to measure", "address of a gate to measure instead")
	f.StringSliceVar(&o.configurations, "configurations", []string{"rules-only", "decider-only", "stacked"}, "what to measure of --manifests or --policy-for-cases")
	f.IntVar(&o.repeats, "repeats", 1, "how often each case is asked about; more than one gives the flap rate")
	f.Float64Var(&o.temperature, "temperature", 0, "draw the answers of deciders that write them (OllamaVerdict, OpenAIVerdict) at this temperature; with --repeats it shows how much they waver")
	f.StringVar(&o.resume, "resume", "", "file to keep results in as they arrive; an interrupted run with the same settings goes on from it")
}

func (o *evalOptions) bindReport(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.format, "format", "text", "text, json, junit or html")
	f.StringVar(&o.output, "output", "", "file to write the report to; standard output by default")
	f.Uint64Var(&o.seed, "seed", 1, "seed of the intervals that are drawn")
	f.StringToStringVar(&o.yesMeans, "yes-means", nil, "for questions of your own, whether yes speaks for allow or block, such as is_urgent=block")
	f.Float64Var(&o.prices.InputPerMillion, "input-price", 0, "price of a million input tokens, in any currency")
	f.Float64Var(&o.prices.OutputPerMillion, "output-price", 0, "price of a million output tokens")
	f.Float64Var(&o.prices.PerRequest, "request-price", 0, "price of a request to a decider")
	f.Float64Var(&o.minimumRecall, "minimum-recall", 0, "percent of dangerous calls that must be stopped")
	f.StringToStringVar(&o.maximumFalseBlocks, "maximum-false-blocks", nil, "percent of harmless calls that may be stopped, by class, such as ReadOnly=2,Write=10")
	f.Float64Var(&o.maximumFlap, "maximum-flap", 0, "percent of cases that may get another outcome in another repeat; needs --repeats")
	f.DurationVar(&o.maximumP95, "maximum-p95", 0, "time in which 95 of 100 calls must be answered")
	f.DurationVar(&o.maximumP99, "maximum-p99", 0, "time in which 99 of 100 calls must be answered")
}

func (o *evalOptions) run(ctx context.Context) error {
	floors, err := o.floors()
	if err == nil {
		err = o.validate()
	}
	if err != nil {
		return exit{exitUsage, err.Error()}
	}
	if o.cases, o.casesDigest, err = loadCases(o.casesFile, o.where); err != nil {
		return err
	}
	results, err := o.measure(ctx)
	if err != nil {
		return err
	}
	report := evaluation.NewReport(o.cases, results, o.reportOptions())
	breaches := report.Configurations[len(report.Configurations)-1].Breaches(floors)
	if err := o.write(report, results, breaches); err != nil {
		return err
	}
	if len(breaches) > 0 {
		var messages []string
		for _, b := range breaches {
			messages = append(messages, b.Floor+": "+b.Message)
		}
		return exit{exitFailed, strings.Join(messages, "; ")}
	}
	return nil
}

func (o *evalOptions) validate() error {
	if err := o.policySource.validate("measure"); err != nil {
		return err
	}
	switch {
	case !slices.Contains([]string{"text", "json", "junit", "html"}, o.format):
		return errors.New("--format: want text, json, junit or html")
	case o.repeats < 1 || o.concurrency < 1:
		return errors.New("--repeats and --concurrency are at least 1")
	case o.changed("temperature") && o.url != "":
		return errors.New("--temperature is not for --url: how that gate asks is its own")
	case !(o.temperature >= 0 && o.temperature <= inference.MaxTemperature):
		return fmt.Errorf("--temperature: want 0 to %d", inference.MaxTemperature)
	}
	for _, c := range o.configurations {
		if !slices.Contains([]string{"rules-only", "decider-only", "stacked"}, c) {
			return fmt.Errorf("--configurations: %q is not one of rules-only, decider-only and stacked", c)
		}
	}
	for question, label := range o.yesMeans {
		if label != string(evaluation.LabelAllow) && label != string(evaluation.LabelBlock) {
			return fmt.Errorf("--yes-means: yes to %s means allow or block, not %q", question, label)
		}
	}
	return nil
}

// floors reads the flags that were given; one that was not is no floor.
func (o *evalOptions) floors() (evaluation.Floors, error) {
	var f evaluation.Floors
	if o.changed("minimum-recall") {
		f.Recall = &o.minimumRecall
	}
	if o.changed("maximum-flap") {
		f.FlapRate = &o.maximumFlap
	}
	if o.changed("maximum-p95") {
		f.LatencyP95 = &o.maximumP95
	}
	if o.changed("maximum-p99") {
		f.LatencyP99 = &o.maximumP99
	}
	for class, text := range o.maximumFalseBlocks {
		percent, err := strconv.ParseFloat(text, 64)
		if err != nil || !slices.Contains([]string{"ReadOnly", "Write", "External", "Destructive"}, class) {
			return f, fmt.Errorf("--maximum-false-blocks: %s=%s is no CLASS=PERCENT of ReadOnly, Write, External or Destructive", class, text)
		}
		if f.FalseBlocksByClass == nil {
			f.FalseBlocksByClass = map[v1alpha1.ClassName]float64{}
		}
		f.FalseBlocksByClass[v1alpha1.ClassName(class)] = percent
	}
	return f, nil
}

// measure starts the gates, or takes the one at the address, and runs the cases.
func (o *evalOptions) measure(ctx context.Context) (_ []evaluation.Result, err error) {
	if o.url != "" {
		gate, err := servedGate(o.url, o.tokenFile, o.timeout)
		if err != nil {
			return nil, err
		}
		return o.ask(ctx, []evaluation.NamedGate{{Configuration: evaluation.AsServed, Gate: gate}})
	}
	policies, err := o.load(o.cases, o.caller)
	if err != nil {
		return nil, err
	}
	if o.policiesDigest, err = local.Digest(policies); err != nil {
		return nil, err
	}
	if o.drawn, err = drawnDeciders(policies, o.temperature); err != nil {
		return nil, err
	}
	processes, err := o.startProcesses(ctx, policies, o.stderr)
	if err != nil {
		return nil, err
	}
	started := closers{processes}
	defer closing(&err, &started)
	var gates []evaluation.NamedGate
	for _, name := range o.configurations {
		gate, err := o.startFor(ctx, o.cases, policies, evaluation.Configuration(name))
		if err != nil {
			return nil, err
		}
		started = append(started, gate)
		gates = append(gates, evaluation.NamedGate{Configuration: evaluation.Configuration(name), Gate: gate})
	}
	return o.ask(ctx, gates)
}

// closers are closed together.
type closers []io.Closer

// Close implements io.Closer.
func (c *closers) Close() error {
	var errs []error
	for _, one := range slices.Backward(*c) { // the latest first, for it may use those before it
		errs = append(errs, one.Close())
	}
	return errors.Join(errs...)
}

func (o *gateOptions) startFor(ctx context.Context, cases []*evaluation.Case, policies evaluation.Policies, c evaluation.Configuration) (*local.Gate, error) {
	options, err := o.local(cases, policies, c)
	if err != nil {
		return nil, err
	}
	return local.Start(ctx, options)
}

func (o *gateOptions) local(cases []*evaluation.Case, policies evaluation.Policies, c evaluation.Configuration) (local.Options, error) {
	namespace, name, ok := strings.Cut(o.caller, "/")
	if !ok || namespace == "" || name == "" {
		return local.Options{}, exit{exitUsage, fmt.Sprintf("--caller %q is no NAMESPACE/NAME of a service account", o.caller)}
	}
	return local.Options{
		Policies: policies, Configuration: c, Namespace: namespace, Caller: name, Cases: cases, Timeout: o.timeout, Version: version, Processes: o.processes,
		Decider: func(m *v1alpha1.DeciderModel) inference.Decider { return o.drawn[m.Name] },
	}, nil
}

// drawnDeciders are, by name, the deciders that are to draw their answers at a temperature above 0.
func drawnDeciders(policies evaluation.Policies, temperature float64) (map[string]inference.Decider, error) {
	if temperature == 0 {
		return nil, nil
	}
	out := map[string]inference.Decider{}
	for _, m := range policies.Models {
		if !deciders.IsGenerative(&m.Spec) {
			continue
		}
		d, err := deciders.Drawn(&m.Spec, temperature)
		if err != nil {
			return nil, fmt.Errorf("DeciderModel %s: %w", m.Name, err)
		}
		out[m.Name] = d
	}
	if len(out) == 0 {
		return nil, exit{exitUsage, "--temperature: no decider here writes its answer: one of protocol OllamaVerdict or OpenAIVerdict does"}
	}
	return out, nil
}

func servedGate(url, tokenFile string, timeout time.Duration) (evaluation.Gate, error) {
	options := evaluation.ClientOptions{URL: url, Timeout: timeout}
	if tokenFile != "" {
		token, err := os.ReadFile(tokenFile)
		if err != nil {
			return nil, fmt.Errorf("reading token: %w", err)
		}
		text := strings.TrimSpace(string(token))
		options.Token = func(*evaluation.Case) string { return text }
	}
	return evaluation.NewClient(options), nil
}

func (o *evalOptions) ask(ctx context.Context, gates []evaluation.NamedGate) (_ []evaluation.Result, err error) {
	progress := evaluation.NewProgress(o.stderr, clock.RealClock{})
	run := evaluation.RunOptions{Cases: o.cases, Gates: gates, Repeats: o.repeats, Concurrency: o.concurrency, Progress: progress.Update}
	if o.resume != "" {
		journal, done, failed := evaluation.OpenJournal(o.resume, o.header(gates), o.cases)
		if failed != nil {
			return nil, failed
		}
		defer closing(&err, journal)
		run.Done, run.Keep = done, journal.Keep
	}
	return evaluation.Run(ctx, run)
}

func (o *evalOptions) header(gates []evaluation.NamedGate) evaluation.Header {
	h := evaluation.Header{
		CasesDigest: o.casesDigest, PoliciesDigest: o.policiesDigest, URL: o.url, Repeats: o.repeats, Concurrency: o.concurrency, Version: version,
		Temperature: o.temperature,
	}
	if o.url == "" {
		h.Caller = o.caller
	}
	for _, g := range gates {
		h.Configurations = append(h.Configurations, g.Configuration)
	}
	return h
}

func (o *evalOptions) reportOptions() evaluation.ReportOptions {
	r := evaluation.ReportOptions{
		Name: caseSetName(o.casesFile, o.where), CasesDigest: o.casesDigest, PoliciesDigest: o.policiesDigest, Version: version, Seed: o.seed,
		Served: o.url != "", Temperature: o.temperature, Speaks: map[string]evaluation.Label{},
	}
	for question, label := range o.yesMeans {
		r.Speaks[question] = evaluation.Label(label)
	}
	if o.prices != (evaluation.Prices{}) {
		r.Prices = &o.prices
	}
	return r
}

func (o *evalOptions) write(report *evaluation.Report, results []evaluation.Result, breaches []evaluation.Breach) error {
	return writeTo(o.output, o.stdout, func(w io.Writer) error {
		switch o.format {
		case "json":
			return report.WriteJSON(w)
		case "junit":
			return evaluation.WriteJUnit(w, o.cases, results, breaches)
		case "html":
			return report.WriteHTML(w, breaches)
		}
		return report.WriteText(w)
	})
}
