// Command manager runs the controllers and webhooks of an installation.
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
	os.Exit(cmdline.Report(os.Stderr, "manager", err))
}

func start(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	c, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w", cmdline.ErrUsage, err)
	case c.version:
		fmt.Fprintln(stdout, "manager", version)
		return nil
	}
	return run(ctx, c, stderr)
}
