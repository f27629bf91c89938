package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"gatewright.dev/gatewright/internal/doctor"
	"gatewright.dev/gatewright/internal/names"
	"gatewright.dev/gatewright/internal/policy"
)

func newWhoDecides() *cobra.Command {
	var (
		o      clusterOptions
		output format
		tool   string
	)
	c := &cobra.Command{
		Use: "who-decides sa/NAME", Short: "Say which policies decide about the calls of a service account, and what holds for its tools",
		Long: "Reads policies and deciders of a cluster and judges by the engine of the gate, without a call: what holds whatever a call says, what is\n" +
			"looked at when there is one, which decider is asked and whether its fingerprint is the one that thresholds were set for.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			account, err := serviceAccount(args[0])
			if err != nil {
				return err
			}
			namespace, err := o.ownNamespace()
			if err != nil {
				return err
			}
			s, err := o.gathered(c.Context(), names.Namespace, namespace)
			if err != nil {
				return err
			}
			if err := s.Sees(doctor.PolicyKinds()...); err != nil {
				return err
			}
			who := doctor.WhoDecides(c.Context(), s, policy.Caller{Namespace: namespace, ServiceAccount: account}, tool)
			return output.print(c.OutOrStdout(), who, func(w io.Writer) error { return printWho(w, &who) })
		},
	}
	addCluster(c, &o, "namespace of the service account; that of the context by default")
	addOutput(c, &output)
	c.Flags().StringVar(&tool, "tool", "", "one tool, whether a policy lists it or not; by default all that are listed")
	return c
}

// serviceAccount reads sa/NAME.
func serviceAccount(text string) (string, error) {
	kind, name, ok := strings.Cut(text, "/")
	if !ok || name == "" || kind != "sa" && kind != "serviceaccount" && kind != "serviceaccounts" {
		return "", exit{exitUsage, fmt.Sprintf("%q is no service account: write sa/NAME", text)}
	}
	return name, nil
}

func printWho(w io.Writer, who *doctor.Who) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(cells ...string) {
		for i := range cells {
			cells[i] = cell(cmp.Or(cells[i], "-"))
		}
		_, _ = fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	_, _ = fmt.Fprintf(t, "calls of %s\n", cell(who.Caller))
	if who.Verdict != "" {
		_, _ = fmt.Fprintf(t, "every call is %s\n", cell(who.Verdict))
	}
	if len(who.Policies) > 0 {
		_, _ = fmt.Fprintln(t, "\nPOLICY\tMODE\tSTATE\tBECAUSE")
		for _, p := range who.Policies {
			row(fmt.Sprintf("%s@%d", p.Policy, p.Generation), p.Mode, p.State, p.Why)
		}
	}
	if len(who.Grants) > 0 {
		_, _ = fmt.Fprintln(t, "\nSCOPE\tUNTIL\tGRANTED BY")
		for _, g := range who.Grants {
			row(g.Scope, g.Until, g.By)
		}
	}
	if len(who.Deciders) > 0 {
		_, _ = fmt.Fprintln(t, "\nDECIDER\tREADY\tFINGERPRINT\tPINNED\tACTIVE\tASKED BY")
		for _, d := range who.Deciders {
			row(d.Decider, d.Ready, d.State, d.Pinned, d.Active, d.Policy)
		}
	}
	printTools(t, who.Tools, row)
	return t.Flush()
}

// printTools lists what holds for each tool, and below it what is looked at.
func printTools(t io.Writer, tools []doctor.ToolView, row func(...string)) {
	if len(tools) == 0 {
		return
	}
	_, _ = fmt.Fprintln(t, "\nTOOL\tSERVER\tCLASS\tAT LEAST\tPERMIT\tBECAUSE")
	for _, v := range tools {
		class := v.Class
		if class != v.Base {
			class += " (" + v.Base + ")"
		}
		row(v.Tool, v.Server, strings.TrimSpace(class), v.AtLeast, v.Permit, strings.Join(v.Because, "; "))
		for _, line := range []struct {
			name  string
			texts []string
		}{{"looks at", v.Checks}, {"asks", v.Asks}, {"would be", v.WouldBe}} {
			for _, text := range line.texts {
				_, _ = fmt.Fprintf(t, "  %s %s\n", line.name, cell(text))
			}
		}
	}
}
