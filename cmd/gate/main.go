// Command gate answers tool calls in a cluster: it judges them by the policies and deciders that the API server has.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"gatewright.dev/gatewright/internal/cmdline"
)

// version is set at build time.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := start(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(cmdline.Report(os.Stderr, "gate", err))
}

func start(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	c, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w", cmdline.ErrUsage, err)
	case c.version:
		fmt.Fprintln(stdout, "gate", version)
		return nil
	}
	c.audit.Stdout = stdout
	return run(ctx, c, stderr)
}
