package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gatewright.dev/gatewright/internal/inference/engine"
	"gatewright.dev/gatewright/internal/inference/llama"
	"gatewright.dev/gatewright/internal/inference/server"
	"gatewright.dev/gatewright/internal/questions"
)

// asChild in the environment makes this test binary a decider with a scripted engine, whose fault is the variable's value.
const asChild = "DECIDER_TEST_CHILD"

func TestMain(m *testing.M) {
	if fault, ok := os.LookupEnv(asChild); ok {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err := run(ctx, process{args: os.Args[1:], stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, open: opens(&scripted{fault: fault})})
		stop()
		os.Exit(report(os.Stderr, err))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(built.folder) // nothing is removed if it is empty
		os.Exit(code)
	}))
}

// scripted is an engine that answers evenly, or fails in one way.
type scripted struct {
	fault  string
	mu     sync.Mutex
	closed bool
}

var (
	wantHash = strings.Repeat("a", 64)
	gotHash  = strings.Repeat("b", 64)
)

func (s *scripted) Info() engine.Info {
	return engine.Info{Model: "scripted", SHA256: wantHash, Fingerprint: "sha256:" + wantHash, ContextTokens: 1024, Threads: 1}
}

func (s *scripted) Golden() ([]byte, questions.Question) {
	return []byte("golden"), questions.Question{Name: "golden", Type: questions.YesNo, Instructions: "Is it?"}
}

func (s *scripted) Ask(_ context.Context, state []byte, asked []questions.Question) (engine.Reply, error) {
	if s.fault == "engine" && string(state) != "golden" {
		return engine.Reply{}, &engine.Error{Reason: engine.Failed, Detail: "broken"}
	}
	var reply engine.Reply
	for _, q := range asked {
		n := len(q.PromptLabels())
		d := engine.Distribution{Coverage: 1}
		for range n {
			d.Probabilities = append(d.Probabilities, 1/float64(n))
		}
		reply.Distributions = append(reply.Distributions, d)
	}
	return reply, nil
}

func (s *scripted) Verify(context.Context) error {
	if s.fault == "integrity" {
		return &llama.LoadError{Reason: llama.ModelHashMismatch, Detail: "the loaded bytes changed", Want: wantHash, Got: gotHash}
	}
	return nil
}

func (s *scripted) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

func opens(e server.Engine) func(context.Context, config) (server.Engine, error) {
	return func(context.Context, config) (server.Engine, error) { return e, nil }
}

// enough are the arguments that every start needs.
func enough(more ...string) []string {
	return append([]string{"-model", "m.gguf", "-library", "lib", "-sha256", wantHash, "-listen", "127.0.0.1:0", "-drain-delay", "0s"}, more...)
}

// try runs a decider in this process until it ends by itself.
func try(t *testing.T, open func(context.Context, config) (server.Engine, error), args ...string) (code int, line string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var words bytes.Buffer
	err := run(ctx, process{args: args, stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard, open: open})
	if ctx.Err() != nil {
		t.Fatal("it does not end")
	}
	code = report(&words, err)
	if code != exitOK && strings.Count(words.String(), "\n") != 1 {
		t.Errorf("not one line: %q", words.String())
	}
	return code, words.String()
}

const question = `{"model":"scripted","state":"do-not-leak","questions":{"q":{"type":"noul","instructions":"Is it?"}}}`
