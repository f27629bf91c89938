package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"gatewright.dev/gatewright/internal/doctor"
	"gatewright.dev/gatewright/internal/names"
)

func newDoctor() *cobra.Command {
	var (
		o      clusterOptions
		output format
		system string
		failOn = string(doctor.Error)
	)
	c := &cobra.Command{
		Use: "doctor", Short: "Say what is wrong with an installation and with the agents around it",
		Long: "Reads a cluster and says what does not work, what is open or weaker than it looks, and what to do about it: parts that are not\n" +
			"ready or do not fit, certificates, admission, deciders that others reach, callers without a policy, agents without a token, and for\n" +
			"each policy whether it is enforced or advice. It changes nothing.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			least, err := severity(failOn)
			if err != nil {
				return err
			}
			s, err := o.gathered(c.Context(), system, o.namespace)
			if err != nil {
				return err
			}
			found := doctor.Diagnose(c.Context(), s)
			if found == nil {
				found = []doctor.Finding{}
			}
			if err := output.print(c.OutOrStdout(), found, func(w io.Writer) error { return printFindings(w, found) }); err != nil {
				return err
			}
			if least != "" && slices.ContainsFunc(found, func(f doctor.Finding) bool { return f.Severity.AtLeast(least) }) {
				return exit{exitFailed, ""}
			}
			return nil
		},
	}
	addCluster(c, &o, "namespace of agents to look at; all by default")
	addOutput(c, &output)
	c.Flags().StringVar(&system, "system-namespace", names.Namespace, "namespace of the installation")
	c.Flags().StringVar(&failOn, "fail-on", failOn, "least severity that makes the exit code 4: Error, Warning, Info or Never")
	return c
}

// severity reads the least severity that fails; empty is none.
func severity(text string) (doctor.Severity, error) {
	switch s := doctor.Severity(text); s {
	case doctor.Error, doctor.Warning, doctor.Info:
		return s, nil
	case "Never":
		return "", nil
	}
	return "", exit{exitUsage, fmt.Sprintf("--fail-on %q is none: use Error, Warning, Info or Never", text)}
}

// printFindings writes each finding with its remedy, and how many there are.
func printFindings(w io.Writer, found []doctor.Finding) error {
	counts := map[doctor.Severity]int{}
	for _, f := range found {
		counts[f.Severity]++
		if _, err := fmt.Fprintf(w, "%-7s  %s  %s\n         %s\n         %s\n", f.Severity, f.Check, cell(f.Object), cell(f.Message), cell("> "+f.Remedy)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%d errors, %d warnings, %d to know\n", counts[doctor.Error], counts[doctor.Warning], counts[doctor.Info])
	return err
}
