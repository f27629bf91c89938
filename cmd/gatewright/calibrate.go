package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/deciders"
	"gatewright.dev/gatewright/internal/evaluation"
	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/learn"
	"gatewright.dev/gatewright/internal/questions"
)

type calibrateOptions struct {
	gateOptions
	policySource
	check          bool
	minimum        int
	margin         float64
	seed           uint64
	yesMeans       map[string]string
	format, output string
	stderr         io.Writer
}

func newCalibrate() *cobra.Command {
	var o calibrateOptions
	c := &cobra.Command{
		Use: "calibrate CASES.jsonl (--manifests DIR | --policy-for-cases | --url URL)", Short: "Fit the temperatures of a decider to labelled calls",
		Long: "Sends labelled calls to a gate as dry runs, and fits one temperature for each type of question to what its decider answers:\n" +
			"on one half of the users' requests, and kept only if it improves the log loss of the other half. It writes spec.calibration\n" +
			"of the DeciderModel, bound to the fingerprint that answered, and applies nothing. With --check it fits nothing to keep: it\n" +
			"says whether what is in use still fits.\n" +
			"Exit status: 0 when done, 1 if there is too little to go by or it could not be run, 4 if --check finds the probabilities\n" +
			"significantly worse than they could be.",
		Example: "  gatewright calibrate cases.jsonl --manifests policies --caller shop/agent\n" +
			"  gatewright calibrate testdata/evalsets/public.jsonl --policy-for-cases\n" +
			"  gatewright calibrate cases.jsonl --manifests policies --caller shop/agent --check",
		Args: cobra.ExactArgs(1),
	}
	o.gateOptions.bind(c)
	o.policySource.bind(c, "folder with the policies and the decider to calibrate", "address of a gate to ask instead; its decider must have no calibration yet")
	f := c.Flags()
	f.BoolVar(&o.check, "check", false, "only say whether the present probabilities fit the cases")
	f.IntVar(&o.minimum, "minimum", 50, "labelled answers of a type that each half needs")
	f.Float64Var(&o.margin, "margin", 0.02, "with --check: how much worse the calibration error has to be, interval and all, before it counts")
	f.Uint64Var(&o.seed, "seed", 1, "of the split in two halves and of the intervals")
	f.StringToStringVar(&o.yesMeans, "yes-means", nil, "for questions of your own, whether yes speaks for allow or block, such as is_urgent=block")
	f.StringVar(&o.format, "format", "yaml", "yaml or json")
	f.StringVar(&o.output, "output", "", "file to write to; standard output by default")
	c.RunE = func(c *cobra.Command, args []string) error {
		o.stderr = c.ErrOrStderr()
		if err := o.validate(); err != nil {
			return exit{exitUsage, err.Error()}
		}
		return o.run(c.Context(), c.OutOrStdout(), args[0])
	}
	return c
}

func (o *calibrateOptions) validate() error {
	if err := o.policySource.validate("calibrate"); err != nil {
		return err
	}
	switch {
	case o.minimum < 20:
		return errors.New("--minimum: want 20 or more: fewer answers fit any temperature")
	case o.margin < 0 || o.margin >= 1:
		return errors.New("--margin: want a number from 0 and below 1")
	case o.format != "yaml" && o.format != "json":
		return errors.New("--format: want yaml or json")
	case o.concurrency < 1:
		return errors.New("--concurrency is at least 1")
	}
	for question, label := range o.yesMeans {
		if label != string(evaluation.LabelAllow) && label != string(evaluation.LabelBlock) {
			return fmt.Errorf("--yes-means: yes to %s means allow or block, not %q", question, label)
		}
	}
	return nil
}

// calibrated is what calibrate prints.
type calibrated struct {
	Decider string `json:"decider"`
	// Fingerprint without the calibration part: what spec.calibration is bound to.
	Fingerprint string `json:"fingerprint"`
	// Present temperatures, and those to use, by type.
	Present inference.Calibration `json:"present,omitempty"`
	Use     inference.Calibration `json:"use,omitempty"`
	// CalibratedFingerprint is what policies then name in deciderRef.fingerprint; empty where the decider itself applies
	// temperatures, and states it.
	CalibratedFingerprint string              `json:"calibratedFingerprint,omitempty"`
	Types                 []learn.Temperature `json:"types"`
}

func (o *calibrateOptions) run(ctx context.Context, out io.Writer, file string) error {
	cases, _, err := loadCases(file, o.where)
	if err != nil {
		return err
	}
	var policies evaluation.Policies
	if o.url == "" {
		if policies, err = o.load(cases, o.caller); err != nil {
			return err
		}
	}
	results, err := o.ask(ctx, cases, policies)
	if err != nil {
		return err
	}
	report, model, err := o.whose(results, policies)
	if err != nil {
		return err
	}
	more := map[string]evaluation.Label{}
	for question, label := range o.yesMeans {
		more[question] = evaluation.Label(label)
	}
	report.Types = learn.Calibrate(forecasts(evaluation.KnownAnswers(cases, results, more)), learn.CalibrationOptions{Seed: o.seed, Minimum: o.minimum, Margin: o.margin})
	report.combine(model)
	if err := writeTo(o.output, out, func(w io.Writer) error { return o.write(w, report) }); err != nil {
		return err
	}
	return o.verdict(report)
}

// verdict is the exit status.
func (o *calibrateOptions) verdict(r *calibrated) error {
	if len(r.Types) == 0 {
		return errors.New("no answer is known to be right or wrong: label cases with expect.answers, or name your questions with --yes-means")
	}
	isEnough := func(t learn.Temperature) bool { return t.Fitted != 0 }
	if !slices.ContainsFunc(r.Types, isEnough) {
		return errors.New("too few labelled answers: " + r.Types[0].Why)
	}
	if o.check && slices.ContainsFunc(r.Types, func(t learn.Temperature) bool { return t.IsWorse }) {
		return exit{exitFailed, "the probabilities of the decider no longer fit: calibrate anew, and then look at the thresholds"}
	}
	return nil
}

func (o *calibrateOptions) ask(ctx context.Context, cases []*evaluation.Case, policies evaluation.Policies) (_ []evaluation.Result, err error) {
	progress := evaluation.NewProgress(o.stderr, clock.RealClock{})
	run := evaluation.RunOptions{Cases: cases, Concurrency: o.concurrency, Progress: progress.Update}
	if o.url != "" {
		gate, err := servedGate(o.url, o.tokenFile, o.timeout)
		if err != nil {
			return nil, err
		}
		run.Gates = []evaluation.NamedGate{{Configuration: evaluation.AsServed, Gate: gate}}
		return evaluation.Run(ctx, run)
	}
	processes, err := o.startProcesses(ctx, policies, o.stderr)
	if err != nil {
		return nil, err
	}
	defer closing(&err, processes)
	gate, err := o.startFor(ctx, cases, policies, evaluation.Stacked)
	if err != nil {
		return nil, err
	}
	defer closing(&err, gate)
	run.Gates = []evaluation.NamedGate{{Configuration: evaluation.Stacked, Gate: gate}}
	return evaluation.Run(ctx, run)
}

// whose finds the one decider that answered. Temperatures of two deciders would be of neither.
func (o *calibrateOptions) whose(results []evaluation.Result, p evaluation.Policies) (*calibrated, *v1alpha1.DeciderModel, error) {
	out := &calibrated{}
	for i := range results {
		r := &results[i]
		if len(r.Answers) == 0 || r.Fingerprint == "" {
			continue
		}
		if out.Decider != "" && (out.Decider != r.Decider || out.Fingerprint != r.Fingerprint) {
			return nil, nil, fmt.Errorf("%s and %s answered, or one of them changed on the way: choose the cases of one decider with --where", out.Decider, r.Decider)
		}
		out.Decider, out.Fingerprint = r.Decider, r.Fingerprint
	}
	if out.Decider == "" {
		return nil, nil, fmt.Errorf("no decider answered any case: the outcomes have the reasons %s", reasonsOf(results))
	}
	for _, m := range p.Models {
		if m.Name != out.Decider {
			continue
		}
		if c := m.Spec.Calibration; c != nil {
			out.Present, out.Fingerprint = deciders.Temperatures(c), string(c.Fingerprint)
		}
		return out, m, nil
	}
	return out, nil, nil
}

// reasonsOf lists why results are as they are.
func reasonsOf(results []evaluation.Result) string {
	seen := map[string]bool{}
	for i := range results {
		seen[cmp.Or(results[i].Reason, string(results[i].Failure))] = true
	}
	return cell(strings.Join(slices.Sorted(maps.Keys(seen)), ", "))
}

// combine multiplies what was kept onto what is in use: answers were already softened by that.
func (r *calibrated) combine(m *v1alpha1.DeciderModel) {
	r.Use = inference.Calibration{}
	maps.Copy(r.Use, r.Present)
	for _, t := range r.Types {
		if t.Milli == 1000 {
			continue
		}
		present := 1000
		if milli := r.Present[t.Type]; milli != 0 {
			present = milli
		}
		r.Use[t.Type] = min(learn.MaxMilli, max(learn.MinMilli, int(math.Round(float64(present)*float64(t.Milli)/1000))))
	}
	if m != nil && m.Spec.Runtime != v1alpha1.RuntimeLlamaCpp && len(r.Use) > 0 {
		r.CalibratedFingerprint = inference.CalibratedFingerprint(r.Fingerprint, r.Use)
	}
}

func forecasts(known []evaluation.Known) []learn.Forecast {
	var out []learn.Forecast
	for _, k := range known {
		f := learn.Forecast{Cluster: k.Case.UserRequest}
		switch want := k.Want.(type) {
		case bool:
			if k.Answer.Probability == nil {
				continue
			}
			f.Type, f.Probabilities = questions.YesNo, []float64{*k.Answer.Probability, 1 - *k.Answer.Probability}
			if !want {
				f.Right = 1
			}
		case string:
			f.Type = questions.Choice
			f.Probabilities, f.Right = distribution(k.Answer.Probabilities, want)
		case int64:
			f.Type = questions.Score
			f.Probabilities, f.Right = distribution(k.Answer.Probabilities, strconv.FormatInt(want, 10))
		}
		if f.Right < 0 || len(f.Probabilities) == 0 {
			continue // a verdict without numbers, or what no option is
		}
		out = append(out, f)
	}
	return out
}

// distribution lists probabilities by option, and the place of the right one; -1 if no option is.
func distribution(p map[string]float64, right string) ([]float64, int) {
	var out []float64
	at := -1
	for i, name := range slices.Sorted(maps.Keys(p)) {
		if name == right {
			at = i
		}
		out = append(out, p[name])
	}
	return out, at
}

func (o *calibrateOptions) write(w io.Writer, r *calibrated) error {
	if o.format == "json" {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	return r.writeText(w, o.check)
}

// writeText writes what was found as comments, and the part of the DeciderModel below.
func (r *calibrated) writeText(w io.Writer, isCheck bool) error {
	var b strings.Builder
	changes := false
	for _, t := range r.Types {
		fmt.Fprintf(&b, "# %s: %d labelled answers to %d requests: %s\n", t.Type, t.Answers, t.Requests, t.Why)
		if s := t.LogLossSaved; s != nil {
			fmt.Fprintf(&b, "#   fitted %.3f; log loss saved %.4f (%.4f to %.4f); calibration error %.3f, was %.3f\n",
				float64(t.Fitted)/1000, s.Value, s.Low, s.High, t.ErrorAfter, t.ErrorBefore)
		}
		if t.IsWorse {
			fmt.Fprintf(&b, "#   what is in use is worse by %.3f (%.3f to %.3f) than it could be\n", t.Excess.Value, t.Excess.Low, t.Excess.High)
		}
		changes = changes || t.Milli != 1000
	}
	if changes && !isCheck {
		r.writePatch(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *calibrated) writePatch(b *strings.Builder) {
	b.WriteString("# Every probability moves, so thresholds have to be looked at anew: see gatewright suggest and gatewright diff.\n")
	if r.CalibratedFingerprint != "" {
		fmt.Fprintf(b, "# Policies then name deciderRef.fingerprint %s\n", r.CalibratedFingerprint)
	} else {
		b.WriteString("# Policies then need another deciderRef.fingerprint: the one that the decider states with this calibration.\n")
	}
	fmt.Fprintf(b, "apiVersion: %s\nkind: %s\nmetadata:\n  name: %q\nspec:\n  calibration:\n    fingerprint: %s\n",
		v1alpha1.GroupVersion, v1alpha1.KindDeciderModel, r.Decider, r.Fingerprint)
	for _, one := range []struct {
		kind  questions.Type
		field string
	}{{questions.YesNo, "yesNoMilli"}, {questions.Choice, "choiceMilli"}, {questions.Score, "scoreMilli"}} {
		if milli := r.Use[one.kind]; milli != 0 {
			fmt.Fprintf(b, "    %s: %d\n", one.field, milli)
		}
	}
}
