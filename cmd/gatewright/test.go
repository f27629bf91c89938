package main

import (
	"fmt"
	"io"
	"os"
	"regexp"

	"github.com/spf13/cobra"

	"gatewright.dev/gatewright/internal/suite"
)

func newTest() *cobra.Command {
	var (
		options suite.Options
		only    string
		junit   string
		output  format
	)
	c := &cobra.Command{
		Use:   "test PATH...",
		Short: "Run policy test suites",
		Long: "Runs suites of calls with scripted answers against policies, and says which rules and thresholds they reach.\n" +
			"Exit status: 0 if all pass, 4 if one does not.",
		Example: "  gatewright test config/samples/suites\n  gatewright test --junit report.xml --minimum-coverage 90 policies",
		Args:    cobra.MinimumNArgs(1),
	}
	c.Flags().StringVar(&only, "run", "", "run only cases whose name matches this regular expression")
	c.Flags().IntVar(&options.MinimumCoverage, "minimum-coverage", 0, "percent of rules and thresholds that each suite has to reach")
	c.Flags().StringVar(&junit, "junit", "", "also write a JUnit report to this file")
	addOutput(c, &output)
	c.RunE = func(c *cobra.Command, args []string) error {
		options.Paths = args
		if only != "" {
			var err error
			if options.Only, err = regexp.Compile(only); err != nil {
				return exit{exitUsage, fmt.Sprintf("--run: %v", err)}
			}
		}
		report, err := suite.Run(c.Context(), options)
		if err != nil {
			return err
		}
		if err := writeReport(report, c.OutOrStdout(), output, junit); err != nil {
			return err
		}
		if !report.Passed() {
			return exit{code: exitFailed}
		}
		return nil
	}
	return c
}

func writeReport(r *suite.Report, w io.Writer, output format, junit string) error {
	if junit != "" {
		f, err := os.Create(junit)
		if err != nil {
			return err
		}
		if err := r.WriteJUnit(f); err != nil {
			_ = f.Close()
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	if output == formatJSON {
		return r.WriteJSON(w)
	}
	return output.print(w, r, r.WriteText)
}
