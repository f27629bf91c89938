// Command demo shows the gate at work: it starts one on the sample policies, sends it real calls over HTTP, and prints
// what it decides, beside what was expected. It exits with 1 when a decision is not the expected one.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"gatewright.dev/gatewright/hack/samples"
)

const (
	calls       = "testdata/calls"
	publicCases = "testdata/evalsets/public.jsonl"
	binary      = "bin/gatewright"
	// publicCount is how many of the public cases are shown.
	publicCount = 50
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, len(os.Args) == 2 && os.Args[1] == "llama")
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo: "+err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, llama bool) (err error) {
	if llama {
		return runLlama(ctx)
	}
	work := filepath.Join(".cache", "demo")
	if err := os.MkdirAll(work, 0o750); err != nil {
		return err
	}
	index, err := readIndex(filepath.Join(calls, "index.yaml"))
	if err != nil {
		return err
	}
	cases, err := readPublic(publicCases, publicCount)
	if err != nil {
		return err
	}
	tokens, err := prepare(work, index, cases)
	if err != nil {
		return err
	}
	g, err := start(ctx, work)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.stop()) }()

	wrong, err := showSamples(ctx, g.url, index, tokens, true)
	if err != nil {
		return err
	}
	if err := showPublic(ctx, g.url, cases, tokens); err != nil {
		return err
	}
	next(g)
	if wrong > 0 {
		return fmt.Errorf("%d decisions are not the expected ones", wrong)
	}
	return nil
}

// gateProcess is a running gate.
type gateProcess struct {
	command *exec.Cmd
	url     string
	audit   string
	log     *os.File
}

// start runs the gate that is installed by make build, on a free port of loopback. More are further flags.
func start(ctx context.Context, work string, more ...string) (*gateProcess, error) {
	g := &gateProcess{audit: filepath.Join(work, "audit.jsonl")}
	// Each run begins with records of its own: the checkpoints of an earlier log would refuse a new one.
	for _, pattern := range []string{"audit*.jsonl*", "approvals*.jsonl*"} {
		old, err := filepath.Glob(filepath.Join(work, pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range old {
			if err := os.RemoveAll(path); err != nil {
				return nil, err
			}
		}
	}
	log, err := os.Create(filepath.Join(work, "gate.log"))
	if err != nil {
		return nil, err
	}
	g.log = log
	flags := append([]string{"serve", "--manifests", filepath.Join(work, "manifests"), "--listen", "127.0.0.1:0",
		"--token-auth-file", filepath.Join(work, "tokens.csv"), "--audit-log", g.audit, "--audit-key", filepath.Join(work, "audit-key.json"),
		"--approval-log", filepath.Join(work, "approvals.jsonl"), "--approver-secret", filepath.Join(work, "approver-secret"),
		"--permit-key", filepath.Join(work, "permit-key.json")}, more...)
	g.command = exec.CommandContext(ctx, binary, flags...)
	g.command.Cancel = func() error { return g.command.Process.Signal(syscall.SIGTERM) }
	g.command.Stderr = log
	out, err := g.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := g.command.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w (make build makes it)", binary, err)
	}
	line := make([]byte, 512)
	n, err := out.Read(line)
	if err != nil {
		return nil, fmt.Errorf("the gate did not start, %s says why: %w", log.Name(), err)
	}
	for word := range strings.FieldsSeq(string(line[:n])) {
		if strings.HasPrefix(word, "http://") {
			g.url = word
		}
	}
	return g, g.waitReady(ctx)
}

func (g *gateProcess) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+"/readyz", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the gate is not ready: HTTP %d", answer.StatusCode)
	}
	return nil
}

func (g *gateProcess) stop() error {
	if err := g.command.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return errors.Join(g.command.Wait(), g.log.Close())
}

func next(g *gateProcess) {
	fmt.Printf(`
Every decision is in %s, chained by hashes, without any argument.

Send a call of your own:
  %s serve --manifests %s --caller agents/assistant &
  %s check   -f %s/NAME.json
  %s explain -f %s/NAME.json --manifests %s --caller agents/assistant     (every step, without a gate)
`, g.audit, binary, samples.Folder, binary, calls, binary, calls, samples.Folder)
}
