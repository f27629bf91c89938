package main

import (
	"context"

	"gatewright.dev/gatewright/internal/inference/llama"
	"gatewright.dev/gatewright/internal/inference/server"
)

// openEngine loads the pinned model.
func openEngine(ctx context.Context, c config) (server.Engine, error) {
	e, err := llama.Open(ctx, llama.Options{
		ModelPath: c.model, SHA256: c.sha256, Name: c.name, LibraryDir: c.library, PrivateDir: c.scratch,
		ContextTokens: c.contextTokens, Threads: c.threads, Temperatures: c.temperatures,
	})
	if err != nil {
		return nil, err // not a nil *llama.Engine, which would be no nil interface
	}
	return e, nil
}
