// Package peers_test checks the decider server and the gate's clients against programs that others wrote, with real models.
// make test-peers prepares what it needs and runs it.
package peers_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/questions"
)

const (
	gemma     = "gemma-3-270m-q4_k_m.gguf"
	gemmaHash = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"
	decision  = "gemma-3-270m-decision.gguf"
	// tolerance covers two releases of llama.cpp and weights that one of them lays out anew for the processor. Another prompt
	// moves answers by far more.
	tolerance = 0.08
)

func cache(t *testing.T, parts ...string) string {
	t.Helper()
	if os.Getenv("GATEWRIGHT_REAL_MODELS") == "" {
		t.Skip("needs models, llama-server and minutes: make test-peers")
	}
	path, err := filepath.Abs(filepath.Join(append([]string{"../../.cache"}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// program is a server that a test has started.
type program struct {
	url string
	pid int
}

func startProgram(t *testing.T, ready string, command func(port string) []string) *program {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil || l.Close() != nil {
		t.Fatal(err)
	}
	args := command(port)
	var out bytes.Buffer
	c := exec.CommandContext(context.WithoutCancel(t.Context()), args[0], args[1:]...)
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	t.Cleanup(func() { _ = c.Process.Kill() })
	p := &program{url: "http://127.0.0.1:" + port, pid: c.Process.Pid}
	for deadline := time.Now().Add(3 * time.Minute); ; <-time.After(50 * time.Millisecond) {
		if answer, err := http.Get(p.url + ready); err == nil {
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return p
			}
		}
		select {
		case err := <-ended:
			t.Fatalf("%s ended: %v\n%s", args[0], err, &out)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is not ready", args[0])
		}
	}
}

func startDecider(t *testing.T) *program {
	t.Helper()
	models, library, binary := cache(t, "models"), cache(t, "llama"), filepath.Join(t.TempDir(), "decider")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../../cmd/decider").CombinedOutput(); err != nil {
		t.Fatalf("building the decider: %v\n%s", err, out)
	}
	return startProgram(t, "/readyz", func(port string) []string {
		return []string{binary, "-listen", "127.0.0.1:" + port, "-model", filepath.Join(models, gemma), "-sha256", gemmaHash, "-name", "gemma",
			"-library", library, "-threads", "1", "-context-tokens", "1024", "-request-timeout", "2m", "-min-coverage", "0.000001"}
	})
}

func startLlamaServer(t *testing.T) *program {
	t.Helper()
	models, binary := cache(t, "models"), cache(t, "llama-server", "llama-server")
	return startProgram(t, "/health", func(port string) []string {
		return []string{binary, "--host", "127.0.0.1", "--port", port, "-m", filepath.Join(models, decision), "--alias", "gemma", "-t", "1", "-c", "1024",
			"--swa-full", "-np", "1", "--no-webui", "--poll", "0", "--chat-template", "{{ messages[0]['content'] }}"} // the file has none
	})
}

func server(p *program) inference.ServerOptions {
	return inference.ServerOptions{BaseURL: p.url, Model: "gemma", Transport: inference.NewTransport(), MinCoverage: 1e-6}
}

// asked is of every type, so that every kind of answer is compared.
func asked() []questions.Question {
	return []questions.Question{
		{Name: "named", Type: questions.YesNo, Instructions: "Is it the order that the user named?", WhenTrue: "It is.", WhenFalse: "It is another one."},
		{Name: "bare", Type: questions.YesNo, Instructions: "Would money move?"},
		{Name: "verdict", Type: questions.Choice, Instructions: "What should happen?", Options: []questions.Option{{Name: "allow", Description: "run it"}, {Name: "block"}}},
		{Name: "severity", Type: questions.Score, Instructions: "How bad would a mistake be?", Levels: []string{"harmless", "annoying", "terrible"}},
	}
}

func request(n int) inference.Request {
	return inference.Request{Tenant: "t", Questions: asked(), State: questions.State{
		Tool: questions.Tool{Name: "cancel_order"}, UserTurns: []string{fmt.Sprintf("Please cancel order %d.", 1000+n)}, Arguments: map[string]any{"order": 1000 + n},
	}}
}

// The same weights through three ways: our server, llama-server's own wire of typed questions, and llama-server read by
// labels. The prompts are the same to the token, which the counts show.
func TestPeerDistributionsAgree(t *testing.T) {
	ours, peer := startDecider(t), startLlamaServer(t)
	one, err := inference.NewSystemOne(inference.SystemOneOptions{Own: true, ServerOptions: server(ours)})
	if err != nil {
		t.Fatal(err)
	}
	typed, err := inference.NewSystemOne(inference.SystemOneOptions{ServerOptions: server(peer)})
	if err != nil {
		t.Fatal(err)
	}
	labels, err := inference.NewLlamaServer(inference.LlamaServerOptions{ServerOptions: server(peer)})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		want, err := one.Decide(t.Context(), request(n))
		if err != nil {
			t.Fatal(err)
		}
		for name, d := range map[string]inference.Decider{"its typed questions": typed, "its labels": labels} {
			got, err := d.Decide(t.Context(), request(n))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if got.InputTokens != want.InputTokens {
				t.Errorf("%s: %d tokens, ours %d: the prompt is another one", name, got.InputTokens, want.InputTokens)
			}
			for _, q := range asked() {
				d := distance(want.Answers[q.Name], got.Answers[q.Name])
				t.Logf("%s, %s: %.4f apart", name, q.Name, d)
				if !(d <= tolerance) {
					t.Errorf("%s, %s: %+v, ours %+v", name, q.Name, got.Answers[q.Name], want.Answers[q.Name])
				}
			}
		}
	}
}

// distance is the largest difference of one probability.
func distance(a, b questions.Answer) float64 {
	far := math.Abs(a.Probability - b.Probability)
	if len(a.Probabilities) != len(b.Probabilities) || a.Type != b.Type {
		return math.Inf(1)
	}
	for label, p := range a.Probabilities {
		far = max(far, math.Abs(p-b.Probabilities[label]))
	}
	return far
}
