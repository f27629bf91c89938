package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gatewright.dev/gatewright/internal/inference/server"
)

// child is a decider in a process of its own.
type child struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	url    string
	stderr *bytes.Buffer
	rest   chan string // what followed on standard output
}

// spawn starts this test binary as a decider.
func spawn(t *testing.T, fault string, args ...string) *child {
	t.Helper()
	return spawnProgram(t, os.Args[0], fault, args...)
}

func spawnProgram(t *testing.T, program, fault string, args ...string) *child {
	t.Helper()
	return spawnChanged(t, program, fault, func(*exec.Cmd) {}, args...)
}

// spawnChanged starts a program after a change to how it is started.
func spawnChanged(t *testing.T, program, fault string, change func(*exec.Cmd), args ...string) *child {
	t.Helper()
	c := &child{cmd: exec.CommandContext(t.Context(), program, args...), stderr: &bytes.Buffer{}, rest: make(chan string, 1)}
	c.cmd.Env = append(os.Environ(), asChild+"="+fault)
	c.cmd.Stderr = c.stderr
	change(c.cmd)
	var err error
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	line, err := lines.ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		t.Fatalf("first line %q, %v", line, err)
	}
	c.url = "http://" + address
	go func() {
		more, _ := io.ReadAll(lines)
		c.rest <- string(more)
	}()
	return c
}

// wait returns the exit code.
func (c *child) wait(t *testing.T) int {
	t.Helper()
	if more := <-c.rest; more != "" {
		t.Errorf("more on standard output: %q", more)
	}
	err := c.cmd.Wait()
	if err == nil {
		return 0
	}
	ended, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		t.Fatal(err)
	}
	return ended.ExitCode()
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	return do(t, http.MethodGet, url, "")
}

func do(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func ready(t *testing.T, url string) {
	t.Helper()
	eventually(t, "the server is ready", func() bool {
		status, _ := get(t, url+"/readyz")
		return status == 200
	})
}

// eventually looks until something is so. The limit is for a machine that has much else to do.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	end := time.After(time.Minute)
	for !is() {
		select {
		case <-ticker.C:
		case <-end:
			t.Fatalf("not in time: %s", what)
		}
	}
}

func TestChildEnds(t *testing.T) {
	tests := map[string]struct {
		fault string
		args  []string
		end   func(t *testing.T, c *child)
		want  int
		line  string
	}{
		"by a signal": {args: enough(), end: func(t *testing.T, c *child) {
			if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}},
		"with its parent, at once": {args: enough("-parent-stdin", "-drain-delay", "1h"), end: func(t *testing.T, c *child) {
			if err := c.stdin.Close(); err != nil {
				t.Fatal(err)
			}
		}},
		"by an engine that failed": {fault: "engine", args: enough(), want: exitEngine, line: "engine failed", end: func(t *testing.T, c *child) {
			if status, body := do(t, http.MethodPost, c.url+server.PathSystemOne, question); status != 500 {
				t.Errorf("status %d: %s", status, body)
			}
		}},
		"by a model that changed": {fault: "integrity", args: enough("-verify-interval", "1s"), want: exitIntegrity, line: "integrity lost", end: func(*testing.T, *child) {}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := spawn(t, tt.fault, tt.args...)
			ready(t, c.url)
			if tt.fault == "" {
				if status, body := do(t, http.MethodPost, c.url+server.PathSystemOne, question); status != 200 || !strings.Contains(body, `"noul":0.5`) {
					t.Errorf("status %d: %s", status, body)
				}
			}
			tt.end(t, c)
			code := c.wait(t)
			lines := strings.Split(strings.TrimSpace(c.stderr.String()), "\n")
			if last := lines[len(lines)-1]; code != tt.want || !strings.Contains(last, tt.line) {
				t.Errorf("exit %d, want %d; log:\n%s", code, tt.want, c.stderr)
			}
			if strings.Contains(c.stderr.String(), "do-not-leak") {
				t.Error("text of a state was logged")
			}
		})
	}
}

// TestAChildWithoutParentStdinStays closes the standard input of a decider that was not told to care.
func TestAChildWithoutParentStdinStays(t *testing.T) {
	c := spawn(t, "", enough()...)
	if err := c.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	ready(t, c.url)
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := c.wait(t); code != 0 {
		t.Errorf("exit %d: %s", code, c.stderr)
	}
}

// TestTheParentGoesWhileTheModelLoads must not wait for a load that takes for ever.
func TestTheParentGoesWhileTheModelLoads(t *testing.T) {
	free := make(chan struct{})
	defer close(free)
	stuck := func(context.Context, config) (server.Engine, error) {
		<-free
		return nil, errors.New("too late")
	}
	if code, line := try(t, stuck, enough("-parent-stdin")...); code != exitOK {
		t.Errorf("exit %d: %s", code, line)
	}
}

// TestTracesGoToTheCollector sets the standard variables and looks at what a collector gets.
func TestTracesGoToTheCollector(t *testing.T) {
	var mu sync.Mutex
	var got bytes.Buffer
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(&got, r.Method, r.URL.Path)
		_, _ = io.Copy(&got, r.Body)
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	c := spawn(t, "", enough()...)
	ready(t, c.url)
	if status, body := do(t, http.MethodPost, c.url+server.PathSystemOne, question); status != 200 {
		t.Errorf("status %d: %s", status, body)
	}
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := c.wait(t); code != 0 {
		t.Errorf("exit %d: %s", code, c.stderr)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, part := range []string{"POST /v1/traces", "gatewright-decider", "POST /v1/systemone", "prompt"} {
		if !strings.Contains(got.String(), part) {
			t.Errorf("no %s in %q", part, got.String())
		}
	}
	if strings.Contains(got.String(), "do-not-leak") {
		t.Error("text of a state was sent")
	}
}
