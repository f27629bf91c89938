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

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/evaluation"
	"gatewright.dev/gatewright/internal/evaluation/local"
)

type diffOptions struct {
	gateOptions
	left, right    string
	format, output string
}

func newDiff() *cobra.Command {
	var o diffOptions
	c := &cobra.Command{
		Use:   "diff --left DIR --right DIR CASES.jsonl",
		Short: "Show which decisions another policy or decider would change",
		Long: "Judges labelled calls by the manifests of two folders and shows what changes from left to right, dangerous changes first:\n" +
			"a dangerous call that would run, and a call that cannot be undone and would run without a person. It compares, and proves\n" +
			"nothing about other calls.\n" +
			"Exit status: 0 if nothing changes, 3 if something does, 4 if a change is dangerous, 1 if it could not be run.",
		Example: "  gatewright diff --left config/samples --right new --caller crm/agent cases.jsonl",
		Args:    cobra.ExactArgs(1),
	}
	o.bind(c)
	c.Flags().StringVar(&o.left, "left", "", "folder with the manifests of now (required)")
	c.Flags().StringVar(&o.right, "right", "", "folder with the manifests to come (required)")
	c.Flags().StringVar(&o.format, "format", "text", "text, json or html")
	c.Flags().StringVar(&o.output, "output", "", "file to write the comparison to; standard output by default")
	c.RunE = func(c *cobra.Command, args []string) error {
		if o.left == "" || o.right == "" {
			return exit{exitUsage, "--left and --right are required: name two folders with manifests"}
		}
		if !slices.Contains([]string{"text", "json", "html"}, o.format) {
			return exit{exitUsage, "--format: want text, json or html"}
		}
		return o.run(c, args[0])
	}
	return c
}

func (o *diffOptions) run(c *cobra.Command, file string) error {
	cases, _, err := loadCases(file, o.where)
	if err != nil {
		return err
	}
	var sides [2]evaluation.RunSide
	for i, folder := range []string{o.left, o.right} {
		results, err := o.judge(c.Context(), folder, cases, evaluation.NewProgress(c.ErrOrStderr(), clock.RealClock{}))
		if err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
		sides[i] = evaluation.RunSide{Cases: cases, Results: results}
	}
	d := evaluation.Compare(o.left, sides[0], o.right, sides[1])
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

// judge runs the cases by the policies of a folder as they are written.
func (o *diffOptions) judge(ctx context.Context, folder string, cases []*evaluation.Case, p *evaluation.Progress) (_ []evaluation.Result, err error) {
	policies, err := local.LoadPolicies(folder)
	if err != nil {
		return nil, err
	}
	gate, err := o.startFor(ctx, cases, policies, evaluation.Stacked)
	if err != nil {
		return nil, err
	}
	defer closing(&err, gate)
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
