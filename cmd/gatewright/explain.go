package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"gatewright.dev/gatewright/internal/inference/judge"
	"gatewright.dev/gatewright/internal/serve"
)

func newExplain() *cobra.Command {
	var (
		file    string
		options serve.ExplainOptions
		output  format
	)
	c := &cobra.Command{
		Use:   "explain --manifests DIR -f call.json",
		Short: "Judge a call on the spot and show every step",
		Long: "Judges a ToolCallReview by the manifests in a folder, without a gate, and shows how each policy came to what it says.\n" +
			"Nothing is recorded and no person is asked; a decider that a policy names is. Exit status 0 whatever the outcome.",
		Example: "  gatewright explain --manifests config/samples --caller agents/assistant -f testdata/calls/pods-are-listed.json",
		Args:    cobra.NoArgs,
	}
	c.Flags().StringVarP(&file, "file", "f", "", "file with a ToolCallReview, - for standard input (required)")
	c.Flags().StringVar(&options.Manifests, "manifests", "config/samples", "folder with the policies")
	c.Flags().StringVar(&options.Caller, "caller", "default/default", "service account that asks, as NAMESPACE/NAME")
	addLlama(c, &options.Llama)
	addOutput(c, &output)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if file == "" {
			return exit{exitUsage, "-f is required: name a file with a ToolCallReview"}
		}
		call, err := readCall(c.InOrStdin(), file)
		if err != nil {
			return err
		}
		body, err := json.Marshal(call)
		if err != nil {
			return err
		}
		options.Log = warnings(c.ErrOrStderr())
		explained, err := serve.Explain(c.Context(), options, body)
		if err != nil {
			return err
		}
		return output.print(c.OutOrStdout(), explained, func(w io.Writer) error { return printExplained(w, explained) })
	}
	return c
}

func printExplained(w io.Writer, x *serve.Explained) error {
	e, r := x.Explanation, x.Response
	_, _ = fmt.Fprintf(w, "%s asks for %s: class %s, base %s\n", cell(e.Caller), cell(e.Tool), cell(e.Class), cell(e.Base))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range e.Engine {
		_, _ = fmt.Fprintf(t, "  %s\t%s\t%s\n", s.Name, s.Result, cell(s.Detail))
	}
	for _, p := range e.Policies {
		_, _ = fmt.Fprintf(t, "%s\t%s\t\n", cell(p.Policy), p.Mode)
		for _, s := range p.Steps {
			detail := s.Detail
			if detail != "" {
				detail = cell(detail)
			}
			_, _ = fmt.Fprintf(t, "  %s\t%s\t%s\n", s.Name, cell(s.Result), detail)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	printDrivers(w, x.Drivers)
	_, err := fmt.Fprintf(w, "%s: %s by %s\n%s\nremedy: %s\n", r.Outcome, cell(r.Reason), cell(r.By), cell(r.Message), r.Remedy)
	return err
}

// printDrivers says which facts drove the answers of the embedded judge.
func printDrivers(w io.Writer, all []judge.Drivers) {
	for _, d := range all {
		_, _ = fmt.Fprintf(w, "embedded judge on %s: fault %.2f\n", d.Question, d.Fault)
		for _, p := range d.Pushes {
			_, _ = fmt.Fprintf(w, "  %+.2f  %s = %.3g: %s\n", p.By, p.Fact, p.Was, p.Doc)
		}
	}
}
