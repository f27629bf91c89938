// Command gatewright serves a gate, asks one, and tests policies. Installed as kubectl-gatewright it is the kubectl
// plugin of the same name.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set at build time.
var version = "dev"

// Exit codes, for scripts.
const (
	exitOK       = 0
	exitError    = 1  // something failed; nothing was decided
	exitUsage    = 2  // the command line is wrong
	exitNotAllow = 3  // a decision other than Allow
	exitFailed   = 4  // a test suite failed, an audit log is broken, or the doctor found something
	exitHash     = 10 // a downloaded file has another SHA-256 than the one that was asked for
)

// exit is an error with an exit code of its own. An empty message prints nothing more.
type exit struct {
	code    int
	message string
}

func (e exit) Error() string { return e.message }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args)
	stop()
	os.Exit(report(err))
}

func run(ctx context.Context, args []string) error {
	root := newRoot(filepath.Base(args[0]))
	root.SetArgs(args[1:])
	return root.ExecuteContext(ctx)
}

func report(err error) int {
	if err == nil {
		return exitOK
	}
	code := exitError
	if e, ok := errors.AsType[exit](err); ok {
		code = e.code
	}
	if message := err.Error(); message != "" {
		fmt.Fprintln(os.Stderr, "error: "+message)
	}
	return code
}

func newRoot(name string) *cobra.Command {
	use := "gatewright"
	if strings.HasPrefix(name, "kubectl-") {
		use = "kubectl gatewright"
	}
	root := &cobra.Command{
		Use:   use,
		Short: "Admission control for what AI agents do",
		Long: "Gatewright stands between AI agents and what they can break: rules answer what code can know, a small decider model\n" +
			"answers typed questions about the rest, and a person confirms what cannot be undone.",
		SilenceUsage: true, SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return exit{exitUsage, err.Error()} })
	root.AddCommand(newServe(), newProxy(), newCheck(), newPending(), newApprove(), newReject(), newLabels(), newExplain(), newTest(), newEval(), newDiff(), newCalibrate(), newSuggest(), newAudit(), newLabel(), newKeys(), newModel(), newEvaluateRevision(), newTLSFront(), newDoctor(), newWhoDecides(), newVersion())
	root.Version = version
	usageErrors(root)
	return root
}

// usageErrors gives wrong arguments the exit code of a wrong command line, for every command.
func usageErrors(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return exit{exitUsage, err.Error() + ": usage is " + c.UseLine()}
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		usageErrors(sub)
	}
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), "gatewright", version)
			return err
		},
	}
}
