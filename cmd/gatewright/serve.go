package main

import (
	"flag"
	"fmt"
	"log/slog"
	"net"
	"slices"

	"github.com/spf13/cobra"

	"gatewright.dev/gatewright/internal/serve"
)

func newServe() *cobra.Command {
	config := serve.Config{Version: version}
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	config.BindFlags(flags)
	c := &cobra.Command{
		Use:   "serve --manifests DIR",
		Short: "Serve a gate from manifests in a folder",
		Long: "Serves a gate in one process. ToolPolicy, ClusterToolPolicy and DeciderModel manifests are read from a folder, with the same\n" +
			"schema, defaults and rules as an API server has, and read again when they change.",
		Example: "  gatewright serve --manifests config/samples",
		Args:    cobra.NoArgs,
	}
	c.Flags().AddGoFlagSet(flags)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := config.Validate(); err != nil {
			return exit{exitUsage, err.Error()}
		}
		config.Log = slog.New(slog.NewJSONHandler(c.ErrOrStderr(), nil))
		config.Audit.Stdout = c.OutOrStdout()
		about := c.OutOrStdout()
		if slices.Contains(config.Audit.Sinks, "stdout") {
			about = c.ErrOrStderr() // standard output is for records
		}
		config.Listening = func(a net.Addr) {
			_, _ = fmt.Fprintf(about, "gate: http://%s  audit log: %s\n", a, config.AuditLog)
		}
		return serve.Run(c.Context(), config)
	}
	return c
}
