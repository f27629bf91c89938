package main

import (
	"context"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"gatewright.dev/gatewright/internal/evaluation"
	"gatewright.dev/gatewright/internal/serve"
)

// addLlama adds the flags by which a command runs deciders of runtime LlamaCpp itself.
func addLlama(c *cobra.Command, o *serve.LlamaConfig) {
	f := c.Flags()
	f.StringVar(&o.Models, "models", "", "folder with model files, for a DeciderModel of runtime LlamaCpp; it is run for as long as this command")
	f.StringVar(&o.Library, "llama-library", "", "folder with the shared libraries of llama.cpp, for the same")
	f.StringVar(&o.Decider, "decider-program", "", "program that serves the model (default: decider beside this program)")
}

// warnings is the log of commands that have no other.
func warnings(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// startProcesses runs the deciders of runtime LlamaCpp that policies may ask, for all gates that are started from then on.
func (o *gateOptions) startProcesses(ctx context.Context, p evaluation.Policies, stderr io.Writer) (*serve.Processes, error) {
	var err error
	o.processes, err = serve.StartProcesses(ctx, p.Models, o.llama, warnings(stderr))
	return o.processes, err
}
