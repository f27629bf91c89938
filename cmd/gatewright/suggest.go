package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/evaluation"
	"gatewright.dev/gatewright/internal/evaluation/local"
	"gatewright.dev/gatewright/internal/learn"
)

type suggestOptions struct {
	gateOptions
	labels, approvals        []string
	log, manifests           string
	query                    auditQuery
	maximumFalseAllow, nears float64
	harm                     int
	window                   time.Duration
	seed                     uint64
	format, output           string
	stderr                   io.Writer
}

func newSuggest() *cobra.Command {
	var o suggestOptions
	c := &cobra.Command{
		Use: "suggest --manifests DIR (--labels FILE | --audit LOG | --approvals FILE)", Short: "Propose thresholds from what people said about calls", Args: cobra.NoArgs,
		Long: "Reads what people said about calls and proposes thresholds as a part of a ToolPolicy, with the effect on calls that were\n" +
			"held back. It applies nothing. Tightening is proposed on weaker evidence than loosening, and nothing is proposed that would\n" +
			"get past a rule, or past the person that a call needs which cannot be undone. It also names what people approve nearly\n" +
			"always, and what they suddenly do not.\n" +
			"Exit status: 0 with or without a proposal, 1 if it could not be run, 2 if the command line is wrong.",
		Example: "  gatewright suggest --manifests policies --audit gatewright-audit.jsonl\n" +
			"  gatewright suggest --manifests policies --labels cases.jsonl --caller shop/agent --maximum-false-allow 2",
	}
	o.bind(c)
	f := c.Flags()
	f.StringVar(&o.manifests, "manifests", "", "folder with the policies to propose thresholds for (required)")
	f.StringSliceVar(&o.labels, "labels", nil, "files with labelled calls: cases, or what labels export --texts wrote; they are judged by the manifests")
	f.StringVar(&o.log, "audit", "", "audit log, a file or a folder: its numbers, its labels, and how its approvals were decided")
	f.StringSliceVar(&o.approvals, "approvals", nil, "files that labels export wrote, with texts or without: they give approve rates only")
	f.StringVar(&o.query.since, "since", "", "with --audit: from then on, a time as in RFC 3339, or how long ago, as in 720h")
	f.Float64Var(&o.maximumFalseAllow, "maximum-false-allow", 5, "percent of calls labelled block that may run on their own, as the upper end of an interval at 95 percent, before anything is loosened")
	f.IntVar(&o.harm, "harm", 20, "how many needless stops one dangerous call that runs is worth")
	f.Float64Var(&o.nears, "near", 95, "percent of approvals from which a question is no control")
	f.DurationVar(&o.window, "window", 168*time.Hour, "the latest window, whose approve rate is compared with the time before")
	f.Uint64Var(&o.seed, "seed", 1, "of the split in two halves and of the intervals")
	f.StringVar(&o.format, "format", "yaml", "yaml or json")
	f.StringVar(&o.output, "output", "", "file to write to; standard output by default")
	c.RunE = func(c *cobra.Command, _ []string) error {
		o.stderr = c.ErrOrStderr()
		if err := o.validate(); err != nil {
			return exit{exitUsage, err.Error()}
		}
		return o.run(c.Context(), c.OutOrStdout())
	}
	return c
}

func (o *suggestOptions) validate() error {
	switch {
	case o.manifests == "":
		return errors.New("--manifests is required: name the policies to propose thresholds for")
	case o.log == "" && len(o.labels) == 0 && len(o.approvals) == 0:
		return errors.New("name what to learn from: --labels, --audit or --approvals")
	case o.maximumFalseAllow <= 0 || o.maximumFalseAllow >= 100:
		return errors.New("--maximum-false-allow: want a percentage above 0 and below 100; no number of labels shows that something never happens")
	case o.nears <= 0 || o.nears >= 100:
		return errors.New("--near: want a percentage above 0 and below 100")
	case o.harm < 1 || o.window <= 0 || o.concurrency < 1:
		return errors.New("--harm and --concurrency are at least 1, and --window is above 0")
	case o.format != "yaml" && o.format != "json":
		return errors.New("--format: want yaml or json")
	}
	return o.query.complete(time.Now())
}

func (o *suggestOptions) run(ctx context.Context, out io.Writer) error {
	policies, err := local.LoadPolicies(o.manifests)
	if err != nil {
		return err
	}
	evidence, err := o.gather(ctx, policies)
	if err != nil {
		return err
	}
	report, err := learn.Suggest(learn.Policies{Tool: policies.Tool, Cluster: policies.Cluster}, evidence, learn.Options{
		Seed: o.seed, MaxFalseAllow: o.maximumFalseAllow / 100, Harm: o.harm,
	})
	if err != nil {
		return err
	}
	report.Rates = learn.Rates(evidence.Words, learn.RateOptions{Near: o.nears / 100, Window: o.window})
	return writeTo(o.output, out, func(w io.Writer) error {
		if o.format == "json" {
			e := json.NewEncoder(w)
			e.SetIndent("", "  ")
			return e.Encode(report)
		}
		return report.WriteText(w)
	})
}

func (o *suggestOptions) gather(ctx context.Context, policies evaluation.Policies) (learn.Evidence, error) {
	all := learn.Evidence{Left: map[string]int{}}
	add := func(e learn.Evidence, err error) error {
		all.Examples, all.Words = append(all.Examples, e.Examples...), append(all.Words, e.Words...)
		for why, n := range e.Left {
			all.Left[why] += n
		}
		return err
	}
	if o.log != "" {
		if err := add(readEvidence(ctx, o.log, o.query.filter, learn.NewLog())); err != nil {
			return all, err
		}
	}
	for _, file := range o.labels {
		if err := add(o.judge(ctx, file, policies)); err != nil {
			return all, fmt.Errorf("--labels %s: %w", file, err)
		}
	}
	for _, file := range o.approvals {
		words, err := readWords(file)
		if err := add(learn.Evidence{Words: words}, err); err != nil {
			return all, fmt.Errorf("--approvals %s: %w", file, err)
		}
	}
	return all, nil
}

func readEvidence(ctx context.Context, path string, f audit.Filter, log *learn.Log) (learn.Evidence, error) {
	parts, err := audit.Parts(path)
	if err != nil {
		return learn.Evidence{}, err
	}
	err = audit.QueryParts(ctx, parts, f, func(e audit.Entry) error { log.Add(&e); return nil })
	if err != nil && !errors.Is(err, audit.ErrTorn) { // a gate may be writing the last line
		return learn.Evidence{}, err
	}
	return log.Evidence(), nil
}

// judge has the cases judged by a gate of the manifests, and takes its records with the labels of the cases.
func (o *suggestOptions) judge(ctx context.Context, file string, policies evaluation.Policies) (_ learn.Evidence, err error) {
	if err := refuseDigests(file); err != nil {
		return learn.Evidence{}, err
	}
	cases, _, err := loadCases(file, o.where)
	if err != nil {
		return learn.Evidence{}, err
	}
	folder, err := os.MkdirTemp("", "gatewright-suggest-")
	if err != nil {
		return learn.Evidence{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	records := filepath.Join(folder, "audit.jsonl")
	log := learn.NewLog()
	log.DryRuns = true
	if err := o.runCases(ctx, cases, policies, records, log); err != nil {
		return learn.Evidence{}, err
	}
	return readEvidence(ctx, records, audit.Filter{}, log)
}

func (o *suggestOptions) runCases(ctx context.Context, cases []*evaluation.Case, policies evaluation.Policies, records string, log *learn.Log) (err error) {
	processes, err := o.startProcesses(ctx, policies, o.stderr)
	if err != nil {
		return err
	}
	defer closing(&err, processes)
	options, err := o.local(cases, policies, evaluation.Stacked)
	if err != nil {
		return err
	}
	labels := make(chan func(), len(cases))
	options.AuditLog = records
	options.Decided = func(c *evaluation.Case, decision string) {
		labels <- func() { log.SetCase(decision, c.UserRequest, learn.Label(c.Label)) }
	}
	gate, err := local.Start(ctx, options)
	if err != nil {
		return err
	}
	p := evaluation.NewProgress(o.stderr, clock.RealClock{})
	_, err = evaluation.Run(ctx, evaluation.RunOptions{
		Cases: cases, Gates: []evaluation.NamedGate{{Configuration: evaluation.Stacked, Gate: gate}}, Concurrency: o.concurrency, Progress: p.Update,
	})
	err = errors.Join(err, gate.Close())
	close(labels)
	for label := range labels {
		label()
	}
	return err
}

// digestOnly are the members that only a label without texts has.
type digestOnly struct {
	ArgumentsDigest string `json:"argumentsDigest"`
}

// refuseDigests refuses labels that hold digests in the place of calls: there is nothing to judge.
func refuseDigests(file string) error {
	n := 0
	err := eachLine(file, func(line []byte) error {
		var d digestOnly
		if json.Unmarshal(line, &d) == nil && d.ArgumentsDigest != "" {
			n++
		}
		return nil
	})
	if err == nil && n > 0 {
		err = exit{exitUsage, fmt.Sprintf("%d labels hold digests only, so their calls cannot be judged: export them with --texts, give the audit log that has their numbers, or give the file as --approvals", n)}
	}
	return err
}

// exported is what labels say of a decided approval, with texts or without.
type exported struct {
	Source string           `json:"source"`
	Tool   evaluation.Tool  `json:"tool"`
	Class  string           `json:"class"`
	Label  evaluation.Label `json:"label"`
}

func readWords(file string) ([]learn.Word, error) {
	var out []learn.Word
	n := 0
	err := eachLine(file, func(line []byte) error {
		n++
		var x exported
		if err := json.Unmarshal(line, &x); err != nil {
			return fmt.Errorf("line %d is no label: %w", n, err)
		}
		if x.Source != labelSource || x.Tool.Name == "" || x.Label != evaluation.LabelAllow && x.Label != evaluation.LabelBlock {
			return fmt.Errorf("line %d is no decided approval as labels export writes it", n)
		}
		out = append(out, learn.Word{Tool: x.Tool.Name, Class: string((&evaluation.Case{Class: x.Class}).ClassName()), Approved: x.Label == evaluation.LabelAllow})
		return nil
	})
	return out, err
}

// maxLabelLine bounds one label, in bytes.
const maxLabelLine = 1 << 20

func eachLine(file string, each func([]byte) error) (err error) {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLabelLine)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue
		}
		if err := each(lines.Bytes()); err != nil {
			return err
		}
	}
	return lines.Err()
}
