// Package cmdline reads the command line of a binary that takes flags only, and says how it ended.
package cmdline

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"

	"gatewright.dev/gatewright/internal/loopback"
)

// Exit codes of gate and manager. The decider has more.
const (
	ExitOK    = 0
	ExitError = 1 // it could not start, or what it needs went away
	ExitUsage = 2 // flags
)

// ErrUsage wraps what is wrong with the command line.
var ErrUsage = errors.New("command line")

// ParseFlags parses a command line. Where help is asked for it writes what the binary is about and its flags, and returns
// flag.ErrHelp; what is wrong is returned and not written.
func ParseFlags(f *flag.FlagSet, args []string, about string, stderr io.Writer) error {
	f.SetOutput(io.Discard)
	err := f.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		f.SetOutput(stderr)
		fmt.Fprintln(stderr, about)
		f.PrintDefaults()
	}
	return err
}

// IsLoopback says whether only this machine reaches an address, host and port.
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && loopback.IsHost(host)
}

// Report says why the binary of that name ends, and returns the exit code.
func Report(w io.Writer, name string, err error) int {
	if err == nil {
		return ExitOK
	}
	fmt.Fprintln(w, name+": "+err.Error())
	if errors.Is(err, ErrUsage) {
		return ExitUsage
	}
	return ExitError
}
