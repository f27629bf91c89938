package main

import (
	"flag"
	"fmt"
	"log/slog"
	"net"

	"github.com/spf13/cobra"

	"gatewright.dev/gatewright/internal/proxy"
)

func newProxy() *cobra.Command {
	var config proxy.Config
	flags := flag.NewFlagSet("proxy", flag.ContinueOnError)
	config.BindFlags(flags)
	c := &cobra.Command{
		Use:   "proxy --upstream URL --gate-url URL --audience NAME",
		Short: "Stand in front of a tool server and let only permitted calls through",
		Long: "Stands in front of a tool server. A tool call goes through with a permit for exactly its arguments, once; with --ask the proxy\n" +
			"asks the gate itself, so that an agent that knows nothing of it is held to the policy. Other requests go through if they are\n" +
			"listed, and are refused otherwise.",
		Example: "  gatewright proxy --upstream http://127.0.0.1:9000 --gate-url https://gate.example --audience shop-tools\n" +
			"  gatewright proxy --protocol mcp --ask --upstream http://127.0.0.1:9000 --gate-url https://gate.example --token-file token",
		Args: cobra.NoArgs,
	}
	c.Flags().AddGoFlagSet(flags)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := config.Validate(); err != nil {
			return exit{exitUsage, err.Error()}
		}
		config.Log = slog.New(slog.NewJSONHandler(c.ErrOrStderr(), nil))
		config.Listening = func(front, probes net.Addr) {
			_, _ = fmt.Fprintf(c.OutOrStdout(), "proxy: %s  probes: http://%s\n", front, probes)
		}
		return proxy.Run(c.Context(), config)
	}
	return c
}
