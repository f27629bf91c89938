package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/evaluation"
	"gatewright.dev/gatewright/internal/evaluation/local"
)

type diffOptions struct {
	gateOptions
	left, right    string
	format, output string
	// log whose records are judged instead of cases, and by what.
	log     string
	records replayOptions
	now     func() time.Time
}

func newDiff() *cobra.Command {
	o := diffOptions{now: time.Now}
	c := &cobra.Command{
		Use:   "diff --left DIR --right DIR (CASES.jsonl | --audit LOG --capture-dir DIR)",
		Short: "Show which decisions another policy or decider would change",
		Long: "Judges labelled calls by the manifests of two folders and shows what changes from left to right, dangerous changes first:\n" +
			"a dangerous call that would run, and a call that cannot be undone and would run without a person. It compares, and proves\n" +
			"nothing about other calls. With --audit the calls are those of a log, each judged at its own time; their labels are what\n" +
			"people said with gatewright label. Records that hold digests only are refused and counted.\n" +
			"Exit status: 0 if nothing changes, 3 if something does, 4 if a change is dangerous, 1 if it could not be run.",
		Example: "  gatewright diff --left config/samples --right new --caller crm/agent cases.jsonl\n" +
			"  gatewright diff --left policies --right new --audit gatewright-audit.jsonl --capture-dir calls --since 168h",
		Args: cobra.MaximumNArgs(1),
	}
	o.bind(c)
	c.Flags().StringVar(&o.left, "left", "", "folder with the manifests of now (required)")
	c.Flags().StringVar(&o.right, "right", "", "folder with the manifests to come (required)")
	c.Flags().StringVar(&o.format, "format", "text", "text, json or html")
	c.Flags().StringVar(&o.output, "output", "", "file to write the comparison to; standard output by default")
	o.bindRecords(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if o.left == "" || o.right == "" {
			return exit{exitUsage, "--left and --right are required: name two folders with manifests"}
		}
		if !slices.Contains([]string{"text", "json", "html"}, o.format) {
			return exit{exitUsage, "--format: want text, json or html"}
		}
		if (o.log == "") == (len(args) == 0) || (o.log == "") != (o.records.kept == "") {
			return exit{exitUsage, "name a file of cases, or a log with --audit and the calls that were kept of it with --capture-dir"}
		}
		return o.run(c, args)
	}
	return c
}

func (o *diffOptions) bindRecords(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.log, "audit", "", "audit log, a file or a folder, whose calls are judged instead of cases")
	f.StringVar(&o.records.kept, "capture-dir", "", "with --audit: folder that serve keeps calls in")
	f.StringVar(&o.records.secret, "capture-key", "", "with --audit: file with the private key, for calls that are kept encrypted")
	f.BoolVar(&o.records.recorded, "recorded-answers", false, "with --audit: go by what deciders said at the time, and ask none")
	f.StringVar(&o.records.query.since, "since", "", "with --audit: from then on, a time as in RFC 3339, or how long ago, as in 168h")
	f.StringVar(&o.records.query.until, "until", "", "with --audit: before then, in the same form")
}

func (o *diffOptions) run(c *cobra.Command, files []string) error {
	d, err := o.compare(c, files)
	if err != nil {
		return err
	}
	err = writeTo(o.output, c.OutOrStdout(), func(w io.Writer) error {
		switch o.format {
		case "json":
			return d.WriteJSON(w)
		case "html":
			return d.WriteHTML(w)
		}
		return d.WriteText(w)
	})
	switch {
	case err != nil:
		return err
	case d.Dangerous > 0:
		return exit{code: exitFailed}
	case len(d.Changes) > 0:
		return exit{code: exitNotAllow}
	}
	return nil
}

func (o *diffOptions) compare(c *cobra.Command, files []string) (*evaluation.Difference, error) {
	if o.log != "" {
		return o.compareRecords(c.Context(), c.ErrOrStderr())
	}
	cases, _, err := loadCases(files[0], o.where)
	if err != nil {
		return nil, err
	}
	var sides [2]evaluation.RunSide
	for i, folder := range []string{o.left, o.right} {
		results, err := o.judge(c.Context(), folder, cases, c.ErrOrStderr())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", folder, err)
		}
		sides[i] = evaluation.RunSide{Cases: cases, Results: results}
	}
	return evaluation.Compare(o.left, sides[0], o.right, sides[1]), nil
}

// judge runs the cases by the policies of a folder as they are written.
func (o *diffOptions) judge(ctx context.Context, folder string, cases []*evaluation.Case, stderr io.Writer) (_ []evaluation.Result, err error) {
	policies, err := local.LoadPolicies(folder)
	if err != nil {
		return nil, err
	}
	processes, err := o.startProcesses(ctx, policies, stderr)
	if err != nil {
		return nil, err
	}
	defer closing(&err, processes)
	gate, err := o.startFor(ctx, cases, policies, evaluation.Stacked)
	if err != nil {
		return nil, err
	}
	defer closing(&err, gate)
	p := evaluation.NewProgress(stderr, clock.RealClock{})
	return evaluation.Run(ctx, evaluation.RunOptions{
		Cases: cases, Gates: []evaluation.NamedGate{{Configuration: evaluation.Stacked, Gate: gate}}, Concurrency: o.concurrency, Progress: p.Update,
	})
}

func closing(err *error, c io.Closer) { *err = errors.Join(*err, c.Close()) }

// loadCases reads the cases that have the wanted values, and says by a digest which these are.
func loadCases(file string, where map[string]string) ([]*evaluation.Case, string, error) {
	cases, digest, err := evaluation.LoadCases(file)
	if err != nil {
		return nil, "", err
	}
	selected, err := evaluation.Where(cases, where)
	if err != nil {
		return nil, "", exit{exitUsage, "--where: " + err.Error()}
	}
	if len(selected) == 0 {
		return nil, "", exit{exitUsage, "--where: no case has these values"}
	}
	return selected, digest + whereText(where), nil
}

func whereText(where map[string]string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(where)) {
		parts = append(parts, k+"="+where[k])
	}
	if parts == nil {
		return ""
	}
	return " where " + strings.Join(parts, ",")
}

func caseSetName(file string, where map[string]string) string {
	return filepath.Base(file) + whereText(where)
}

// writeTo writes to a file, whole or with an error, or to standard output.
func writeTo(path string, stdout io.Writer, write func(io.Writer) error) error {
	if path == "" {
		return write(stdout)
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
