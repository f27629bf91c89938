package main

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/serve"
)

func newLabel() *cobra.Command {
	var (
		o       deskOptions
		message string
	)
	c := &cobra.Command{
		Use: "label DECISION_ID allow|block", Short: "Say what a decision should have been",
		Long: "Puts a record into the audit log that says what a person thinks of a decision: it changes no decision. What is written\n" +
			"with --message is kept as the call itself is; the log has its digest.",
		Example: "  gatewright label 019b0000-0000-7000-8000-000000000000 block -m 'the user asked about it and did not ask for it'",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			outcome, ok := map[string]review.Outcome{"allow": review.Allow, "block": review.Block}[args[1]]
			if !ok {
				return exit{exitUsage, fmt.Sprintf("%q: want allow or block", args[1])}
			}
			label := serve.Label{Decision: args[0], Outcome: outcome, Message: message}
			if err := o.send(c.Context(), http.MethodPost, serve.LabelsPath, label, nil); err != nil {
				return err
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "%s labelled %s\n", cell(args[0]), args[1])
			return err
		},
	}
	addDesk(c, &o)
	c.Flags().StringVarP(&message, "message", "m", "", "why")
	return c
}
