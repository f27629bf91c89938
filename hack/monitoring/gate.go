package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"gatewright.dev/gatewright/hack/samples"
	"gatewright.dev/gatewright/internal/evaluation"
)

const (
	calls       = "testdata/calls"
	publicCases = "testdata/evalsets/public.jsonl"
)

// publicNamespace is where the agents run that send the public cases.
const publicNamespace = "public"

// program is a child process with a log.
type program struct {
	command *exec.Cmd
	log     *os.File
}

// launch starts a program whose output goes to a file.
func launch(ctx context.Context, log, name string, args ...string) (*program, error) {
	f, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	p := &program{command: exec.CommandContext(ctx, name, args...), log: f}
	p.command.Cancel = func() error { return p.command.Process.Signal(syscall.SIGTERM) }
	p.command.WaitDelay = 10 * time.Second
	p.command.Stdout, p.command.Stderr = f, f
	if err := p.command.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting %s: %w", name, err), f.Close())
	}
	return p, nil
}

func (p *program) stop() error {
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return errors.Join(p.command.Wait(), p.log.Close())
}

// gateProcess is a running gate with the secret by which approvals are decided.
type gateProcess struct {
	*program
	url, secret string
}

// startGate starts a gate on the prepared manifests.
func startGate(ctx context.Context, c *config) (*gateProcess, error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	in := func(name string) string { return filepath.Join(c.work, name) }
	p, err := launch(ctx, in("gate.log"), c.gate, "serve", "--manifests", in("manifests"), "--listen", address,
		"--token-auth-file", in("tokens.csv"), "--audit-log", in("audit.jsonl"), "--audit-key", in("audit-key.json"),
		"--approval-log", in("approvals.jsonl"), "--approver-secret", in("approver-secret"), "--permit-key", in("permit-key.json"))
	if err != nil {
		return nil, err
	}
	g := &gateProcess{program: p, url: "http://" + address}
	if err := waitFor(ctx, g.url+"/readyz"); err != nil {
		return nil, errors.Join(fmt.Errorf("the gate: %w; %s says why", err, p.log.Name()), g.stop())
	}
	secret, err := os.ReadFile(in("approver-secret"))
	if err != nil {
		return nil, errors.Join(err, g.stop())
	}
	g.secret = strings.TrimSpace(string(secret))
	return g, nil
}

// freeAddress is one on loopback that nobody listened on a moment ago.
func freeAddress(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// readyWithin is how long a program may take to start on a busy machine.
const readyWithin = 60 * time.Second

func waitFor(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if answer, err := http.DefaultClient.Do(r); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("%s is not ready: %w", url, err)
		}
	}
}

// prepare writes the samples, a policy for the public cases and tokens, and returns what is to be sent.
func prepare(work string) (*traffic, error) {
	manifests := filepath.Join(work, "manifests")
	if err := os.MkdirAll(manifests, 0o750); err != nil {
		return nil, err
	}
	cases, _, err := evaluation.LoadCases(publicCases)
	if err != nil {
		return nil, err
	}
	if err := samples.Copy(manifests, publicNamespace, cases); err != nil {
		return nil, err
	}
	t, err := newTraffic(filepath.Join(calls, "index.yaml"), cases)
	if err != nil {
		return nil, err
	}
	return t, t.writeTokens(filepath.Join(work, "tokens.csv"))
}

// writeTokens gives every caller a token and writes those that the gate knows.
func (t *traffic) writeTokens(path string) error {
	var file bytes.Buffer
	for i := range t.items {
		who := t.items[i].caller
		if t.tokens[who] != "" {
			continue
		}
		var random [16]byte
		if _, err := rand.Read(random[:]); err != nil {
			return err
		}
		t.tokens[who] = hex.EncodeToString(random[:])
		fmt.Fprintf(&file, "%s,system:serviceaccount:%s,%s\n", t.tokens[who], strings.ReplaceAll(who, "/", ":"), who)
	}
	return os.WriteFile(path, file.Bytes(), 0o600)
}
