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
)

// version is set at build time.
var version = "dev"

// Exit codes.
const (
	exitOK    = 0
	exitError = 1 // it could not start, or what it needs went away
	exitUsage = 2 // flags
)

// errUsage wraps what is wrong with the command line.
var errUsage = errors.New("command line")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := start(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(report(os.Stderr, err))
}

func start(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	c, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w", errUsage, err)
	case c.version:
		fmt.Fprintln(stdout, "gate", version)
		return nil
	}
	c.audit.Stdout = stdout
	return run(ctx, c, stderr)
}

func report(w io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	fmt.Fprintln(w, "gate: "+err.Error())
	if errors.Is(err, errUsage) {
		return exitUsage
	}
	return exitError
}
