// Command decider serves one pinned model over the wire of typed questions.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"gatewright.dev/gatewright/internal/inference/llama"
	"gatewright.dev/gatewright/internal/inference/server"
)

// version is set at build time.
var version = "dev"

// Exit codes, for whoever started this process and for the tables of a reference. They stay what they are.
const (
	exitOK            = 0
	exitError         = 1  // something that has no code of its own
	exitUsage         = 2  // flags or configuration file
	exitFiles         = 3  // tokens, TLS files or golden answers cannot be read, or an answer not written
	exitHash          = 10 // the model file is not the pinned one
	exitUnreadable    = 11 // the model file cannot be opened or read
	exitNotGGUF       = 12
	exitTruncated     = 13
	exitMalformed     = 14
	exitArchitecture  = 15 // a kind of model that is not served
	exitLabels        = 16 // no usable labels, chat template or class head
	exitWindow        = 17
	exitMemory        = 18
	exitLibrary       = 19 // the engine's library is missing
	exitLibraryHash   = 20 // the engine's library is not the pinned one
	exitGolden        = 21 // another answer than the golden one
	exitGoldenMissing = 22 // no golden answer is known for this fingerprint
	exitListen        = 23
	exitIntegrity     = 24 // the loaded bytes changed, or cannot be hashed any more
	exitEngine        = 25 // the engine failed while it served
	exitMismatch      = 26 // read in another way, or calibrated for another fingerprint, than the model is
)

// byReason gives each reason for which a model is not loaded its exit code.
var byReason = map[llama.Reason]int{
	llama.OptionsWrong:              exitUsage,
	llama.ModelUnreadable:           exitUnreadable,
	llama.ModelHashMismatch:         exitHash,
	llama.NotGGUF:                   exitNotGGUF,
	llama.ModelTruncated:            exitTruncated,
	llama.ModelMalformed:            exitMalformed,
	llama.ArchitectureNotSupported:  exitArchitecture,
	llama.DecisionModelNotSupported: exitArchitecture,
	llama.NoClassHead:               exitLabels,
	llama.LabelsNotSupported:        exitLabels,
	llama.TemplateNotSupported:      exitLabels,
	llama.WindowTooSmall:            exitWindow,
	llama.MemoryTooSmall:            exitMemory,
	llama.LibraryMissing:            exitLibrary,
	llama.LibraryMismatch:           exitLibraryHash,
}

// exit is an error with an exit code of its own.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string { return e.err.Error() }
func (e *exit) Unwrap() error { return e.err }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, process{args: os.Args[1:], stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, open: openEngine})
	stop()
	os.Exit(report(os.Stderr, err))
}

// process is what a run has of the world.
type process struct {
	args           []string
	stdin          io.Reader
	stdout, stderr io.Writer
	open           func(context.Context, config) (server.Engine, error)
}

// report says in one line why the process ends, and with which code.
func report(w io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	fmt.Fprintln(w, "decider: "+strings.ReplaceAll(err.Error(), "\n", "; ")) // joined errors stand on lines of their own
	return codeOf(err)
}

func codeOf(err error) int {
	if e, ok := errors.AsType[*exit](err); ok {
		return e.code
	}
	if code, ok := byReason[llama.ReasonOf(err)]; ok && !isServing(err) {
		return code
	}
	if e, ok := errors.AsType[*server.GoldenError](err); ok {
		switch {
		case e.Missing:
			return exitGoldenMissing
		case e.File:
			return exitFiles
		default:
			return exitGolden
		}
	}
	if _, ok := errors.AsType[*server.IntegrityError](err); ok {
		return exitIntegrity
	}
	if _, ok := errors.AsType[*server.EngineError](err); ok || errors.Is(err, server.ErrStuck) {
		return exitEngine
	}
	return exitError
}

// isServing says whether an error is of a model that was loaded: a hash that differs then is a loss, not a wrong file.
func isServing(err error) bool {
	_, lost := errors.AsType[*server.IntegrityError](err)
	_, failed := errors.AsType[*server.EngineError](err)
	return lost || failed
}

func run(ctx context.Context, p process) error {
	c, err := parse(p.args, p.stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return &exit{exitUsage, err}
	case c.version:
		fmt.Fprintln(p.stdout, "decider", version)
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if c.parentStdin {
		go func() {
			_, _ = io.Copy(io.Discard, p.stdin)
			cancel(server.ErrLeaveNow)
		}()
	}
	return serve(ctx, c, p)
}
