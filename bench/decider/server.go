package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// server is a running server of /v1/systemone.
type server struct {
	name, url string
	command   *exec.Cmd
	log       *os.File
	client    *http.Client
}

// sample is one request.
type sample struct {
	wall, cpu      time.Duration
	tokens, reused int
}

func startOurs(ctx context.Context, o *options) (*server, error) {
	return start(ctx, "decider", "/readyz", func(port string) *exec.Cmd {
		return exec.CommandContext(ctx, o.decider, "-listen", "127.0.0.1:"+port, "-model", o.model, "-sha256", o.sha256, "-library", o.library,
			"-threads", strconv.Itoa(o.threads), "-context-tokens", "1024", "-request-timeout", "2m", "-drain-delay", "0s",
			"-min-coverage", "0.000001") // what is measured is the work, not the answer
	})
}

// startPeer uses the flags with which llama-server answers fastest: a whole cache of the sliding window, so that it can be cut
// back, one slot, no polling threads, and weights laid out for this processor, which is its default.
func startPeer(ctx context.Context, o *options) (*server, error) {
	return start(ctx, "llama-server", "/health", func(port string) *exec.Cmd {
		return exec.CommandContext(ctx, o.peer, "--host", "127.0.0.1", "--port", port, "-m", o.peerModel, "-t", strconv.Itoa(o.threads), "-c", "1024",
			"--swa-full", "-np", "1", "--no-webui", "--poll", "0")
	})
}

func start(ctx context.Context, name, ready string, command func(port string) *exec.Cmd) (*server, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	log, err := os.CreateTemp("", "gatewright-bench-"+name+"-*.log")
	if err != nil {
		return nil, err
	}
	s := &server{name: name, url: "http://127.0.0.1:" + port, command: command(port), log: log, client: &http.Client{Timeout: 2 * time.Minute}}
	s.command.Stdout, s.command.Stderr = log, log
	if err := s.command.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	turn := time.NewTicker(50 * time.Millisecond)
	defer turn.Stop()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); {
		select {
		case <-turn.C:
		case <-ctx.Done():
			s.stop()
			return nil, ctx.Err()
		}
		if s.isReady(ctx, ready) {
			return s, nil
		}
	}
	s.stop()
	return nil, fmt.Errorf("%s is not ready: %s says why", name, log.Name())
}

// freePort may be taken again before it is used; then the start fails.
func freePort(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return "", err
	}
	return port, l.Close()
}

func (s *server) isReady(ctx context.Context, path string) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, http.NoBody)
	if err != nil {
		return false
	}
	answer, err := s.client.Do(r)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

func (s *server) stop() {
	if s == nil || s.command.Process == nil {
		return
	}
	_ = s.command.Process.Kill()
	_ = s.command.Wait()
	_ = s.log.Close()
	s.command.Process = nil
}

func (s *server) ask(ctx context.Context, body []byte) (sample, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/systemone", bytes.NewReader(body))
	if err != nil {
		return sample{}, err
	}
	r.Header.Set("Content-Type", "application/json")
	before, began := s.cpu(), time.Now()
	answer, err := s.client.Do(r)
	if err != nil {
		return sample{}, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	wall := time.Since(began)
	if err != nil {
		return sample{}, err
	}
	var reply struct {
		Answers map[string]json.RawMessage `json:"answers"`
		Usage   struct {
			Input  int `json:"input_tokens"`
			Reused int `json:"reused_tokens"`
		} `json:"usage"`
	}
	if err := json.Unmarshal(text, &reply); err != nil || answer.StatusCode != http.StatusOK || len(reply.Answers) == 0 {
		return sample{}, fmt.Errorf("HTTP %d: %s", answer.StatusCode, text)
	}
	return sample{wall: wall, cpu: s.cpu() - before, tokens: reply.Usage.Input, reused: reply.Usage.Reused}, nil
}

// cpu is what the threads of the server have computed so far.
func (s *server) cpu() time.Duration {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", s.command.Process.Pid))
	if err != nil {
		return 0
	}
	var total time.Duration
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue // the thread has just ended
		}
		ns, _, _ := strings.Cut(string(text), " ")
		if n, err := strconv.ParseInt(ns, 10, 64); err == nil {
			total += time.Duration(n)
		}
	}
	return total
}
