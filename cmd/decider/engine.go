package main

import (
	"context"
	"errors"
	"fmt"

	"gatewright.dev/gatewright/internal/inference/llama"
	"gatewright.dev/gatewright/internal/inference/server"
)

// openEngine loads the pinned model.
func openEngine(ctx context.Context, c config) (server.Engine, error) {
	e, err := llama.Open(ctx, llama.Options{
		ModelPath: c.model, SHA256: c.sha256, Name: c.name, LibraryDir: c.library, PrivateDir: c.scratch,
		ContextTokens: c.contextTokens, Threads: c.threads, Temperatures: c.temperatures, MinCoverage: c.minCoverage,
	})
	if err != nil {
		return nil, err // not a nil *llama.Engine, which would be no nil interface
	}
	if err := c.check(e.Info().Readout, e.BaseFingerprint()); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// check refuses a model that is not read, or not calibrated, as was asked for.
func (c *config) check(readout, base string) error {
	if c.readout != "" && readout != c.readout {
		return &exit{exitMismatch, fmt.Errorf("ReadoutMismatch: answers are read by %s, -readout asks for %s", readout, c.readout)}
	}
	if c.calibratedFor != "" && base != c.calibratedFor {
		return &exit{exitMismatch, fmt.Errorf("CalibrationMismatch: temperatures were fitted for %s, the model has %s", c.calibratedFor, base)}
	}
	return nil
}
