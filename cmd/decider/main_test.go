package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
	goleak.VerifyTestMain(m)
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

func TestWrongCommandLines(t *testing.T) {
	dir := t.TempDir()
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tests := map[string]struct {
		args []string
		want string
	}{
		"nothing":                         {nil, "-model and -library are required"},
		"no hash":                         {[]string{"-model", "m", "-library", "l"}, "-sha256 is required"},
		"a hash in capitals":              {enough("-sha256", strings.Repeat("A", 64)), "-sha256 is required"},
		"a hash that is short":            {enough("-sha256", "abc"), "-sha256 is required"},
		"an unknown flag":                 {enough("-gpu"), "flag provided but not defined"},
		"an argument":                     {enough("serve"), "unexpected argument"},
		"threads below 0":                 {enough("-threads", "-1"), "must not be negative"},
		"no queue":                        {enough("-queue", "0"), "-queue must be at least 1"},
		"a body too small":                {enough("-max-body", "10"), "-max-body at least 1024"},
		"no time":                         {enough("-request-timeout", "0s"), "times must be above 0"},
		"hashing all the time":            {enough("-verify-interval", "10ms"), "at least 1s"},
		"a certificate without key":       {enough("-tls-cert", "c"), "go together"},
		"an authority without TLS":        {enough("-client-ca", "c"), "needs -tls-cert"},
		"a record without file":           {enough("-golden-record"), "needs -golden"},
		"a tolerance of everything":       {enough("-golden-tolerance", "1"), "at most 0.2"},
		"profiles for everybody":          {enough("-pprof", "0.0.0.0:6060"), "loopback"},
		"profiles without host":           {enough("-pprof", ":6060"), "loopback"},
		"an address without port":         {enough("-listen", "127.0.0.1"), "with a port"},
		"plain text beyond loopback":      {enough("-listen", "0.0.0.0:0"), "needs -tls-cert"},
		"plain text on all addresses":     {enough("-listen", ":0"), "needs -tls-cert"},
		"a temperature of nothing":        {enough("-temperature", "noul"), "such as noul=1300"},
		"a temperature of another type":   {enough("-temperature", "box=1000"), "such as noul=1300"},
		"a temperature of 0":              {enough("-temperature", "noul=0"), "such as noul=1300"},
		"a level of another kind":         {enough("-log-level", "loud"), "log-level"},
		"a file that is not there":        {enough("-config", filepath.Join(dir, "none")), "reading configuration"},
		"a file that is no YAML":          {enough("-config", file("{")), "reading configuration"},
		"a file with a name twice":        {enough("-config", file("queue: 1\nqueue: 2\n")), "reading configuration"},
		"a file with another name":        {enough("-config", file("gpu: true\n")), "no flag that a file may set"},
		"a file that names a file":        {enough("-config", file("config: x\n")), "no flag that a file may set"},
		"a file with a wrong value":       {enough("-config", file("queue: many\n")), "queue"},
		"a file with a map":               {enough("-config", file("queue: {a: 1}\n")), "a text, a number"},
		"a file with half a number":       {enough("-config", file("queue: 1.5\n")), "queue"},
		"a file that breaks another rule": {enough("-config", file("queue: 0\n")), "-queue must be at least 1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			code, line := try(t, opens(&scripted{}), tt.args...)
			if code != exitUsage || !strings.Contains(line, tt.want) {
				t.Errorf("exit %d, %s", code, line)
			}
		})
	}
}

func TestConfigurationFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	text := "model: m.gguf\nlibrary: lib\nsha256: " + wantHash + "\nthreads: 2\nqueue: 7\nalias: [judge, default]\ntemperature: noul=1300\n" +
		"request-timeout: 3s\nplain-http: true\nlisten: :8017\ngolden-tolerance: 0.05\nlog-level: debug\nmax-body: 1048576\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := parse([]string{"-config", path, "-queue", "9"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	got := []any{c.model, c.threads, c.queue, c.aliases, c.temperatures, c.requestTimeout, c.plainHTTP, c.listen, c.golden.Tolerance, c.logLevel.String(), c.maxBody}
	want := []any{"m.gguf", 2, 9, []string{"judge", "default"}, map[questions.Type]int{questions.YesNo: 1300}, 3 * time.Second, true, ":8017", 0.05, "DEBUG", 1048576}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestEveryReasonOfLoadingHasACode goes through the reasons of the engine, so that a new one cannot be forgotten.
func TestEveryReasonOfLoadingHasACode(t *testing.T) {
	for _, reason := range llama.Reasons() {
		failing := func(context.Context, config) (server.Engine, error) {
			return nil, &llama.LoadError{Reason: reason, Detail: "x", Want: wantHash, Got: gotHash}
		}
		code, line := try(t, failing, enough()...)
		if want, ok := byReason[reason]; !ok || code != want || !strings.Contains(line, wantHash) || !strings.Contains(line, gotHash) {
			t.Errorf("%s: exit %d, %s", reason, code, line)
		}
	}
	if len(byReason) != len(llama.Reasons()) {
		t.Errorf("%d codes for %d reasons", len(byReason), len(llama.Reasons()))
	}
}

// TestBadFiles gives real files to the real engine, which looks at them before it loads any library.
func TestBadFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tests := map[string]struct {
		path string
		want int
	}{
		"a file that is not there":      {filepath.Join(dir, "none"), exitUnreadable},
		"a folder":                      {dir, exitUnreadable},
		"prose":                         {file("prose", []byte(strings.Repeat("I am a model. ", 100))), exitNotGGUF},
		"zeros":                         {file("zeros", make([]byte, 4096)), exitNotGGUF},
		"nothing but the first letters": {file("cut", []byte("GGUF\x03\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00")), exitTruncated},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if code, line := try(t, openEngine, enough("-model", tt.path)...); code != tt.want {
				t.Errorf("exit %d, want %d: %s", code, tt.want, line)
			}
		})
	}
}

func TestEndsOfOtherKinds(t *testing.T) {
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	other := filepath.Join(dir, "golden.json")
	if code, line := try(t, opens(&scripted{fault: "integrity"}), enough("-golden", other, "-golden-record", "-verify-interval", "1s")...); code != exitIntegrity ||
		!strings.Contains(line, wantHash) || !strings.Contains(line, gotHash) {
		t.Errorf("integrity: exit %d, %s", code, line)
	}
	text, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(other, bytes.ReplaceAll(text, []byte("0.5"), []byte("0.75")), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args []string
		want int
		line string
	}{
		"an address that is taken":              {enough("-listen", taken.Addr().String()), exitListen, "listening"},
		"an address for profiles that is taken": {enough("-pprof", taken.Addr().String()), exitListen, "listening for profiles"},
		"no tokens":                             {enough("-token-file", filepath.Join(dir, "none")), exitFiles, "reading tokens"},
		"no certificate":                        {enough("-tls-cert", filepath.Join(dir, "none"), "-tls-key", filepath.Join(dir, "none")), exitFiles, "reading certificate"},
		"another golden answer":                 {enough("-golden", other), exitGolden, "0.7500 where 0.5000"},
		"no golden answer":                      {enough("-golden", filepath.Join(dir, "none")), exitGoldenMissing, "golden question"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := &scripted{}
			if code, line := try(t, opens(e), tt.args...); code != tt.want || !strings.Contains(line, tt.line) {
				t.Errorf("exit %d, %s", code, line)
			}
			if golden := tt.want == exitGolden || tt.want == exitGoldenMissing; e.closed != golden {
				t.Errorf("the engine was closed: %v", e.closed)
			}
		})
	}
	if code := codeOf(errors.Join(&server.EngineError{Err: server.ErrStuck}, server.ErrStuck)); code != exitEngine {
		t.Errorf("stuck: exit %d", code)
	}
	if code := codeOf(errors.New("something")); code != exitError {
		t.Errorf("unknown: exit %d", code)
	}
}

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
	c := &child{cmd: exec.CommandContext(t.Context(), program, args...), stderr: &bytes.Buffer{}, rest: make(chan string, 1)}
	c.cmd.Env = append(os.Environ(), asChild+"="+fault)
	c.cmd.Stderr = c.stderr
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
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for range 4000 {
		if status, _ := get(t, url+"/readyz"); status == 200 {
			return
		}
		<-ticker.C
	}
	t.Fatal("not ready in time")
}

const question = `{"model":"scripted","state":"do-not-leak","questions":{"q":{"type":"noul","instructions":"Is it?"}}}`

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

func TestProfilesAreApart(t *testing.T) {
	free, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	stop, err := profiles(t.Context(), address)
	if err != nil {
		t.Skip("somebody took the port in between")
	}
	defer stop()
	if status, body := get(t, "http://"+address+"/debug/pprof/"); status != 200 || !strings.Contains(body, "goroutine") {
		t.Errorf("status %d: %s", status, body)
	}
}

func TestVersionAndHelp(t *testing.T) {
	var out, errs bytes.Buffer
	if err := run(t.Context(), process{args: []string{"-version"}, stdout: &out, stderr: &errs}); err != nil || out.String() != "decider dev\n" {
		t.Errorf("%v, %q", err, out.String())
	}
	if err := run(t.Context(), process{args: []string{"-h"}, stdout: &out, stderr: &errs}); err != nil || !strings.Contains(errs.String(), "-parent-stdin") {
		t.Errorf("%v, %q", err, errs.String())
	}
}

// TestARealModel serves the model that DECIDER_TEST_MODEL names, with the libraries in DECIDER_TEST_LIBRARY, as the
// command does, asks it twice, and starts it again with the golden answer of the first time.
func TestARealModel(t *testing.T) {
	model, library := os.Getenv("DECIDER_TEST_MODEL"), os.Getenv("DECIDER_TEST_LIBRARY")
	if model == "" || library == "" {
		t.Skip("DECIDER_TEST_MODEL and DECIDER_TEST_LIBRARY name no model and no libraries")
	}
	text, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	binary, golden := filepath.Join(t.TempDir(), "decider"), filepath.Join(t.TempDir(), "golden.json")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const body = `{"model":"scripted","state":{"user_request":"Please cancel order 7, I do not need it any more.","proposed_call":{"tool":"cancel_order",` +
		`"arguments":{"order":"7"}}},"questions":{"q":{"type":"noul","instructions":"Does ` + "`proposed_call`" + ` cancel the order that the user named?"}}}`
	var first string
	for _, extra := range []string{"-golden-record", "-golden-record=false"} {
		c := spawnProgram(t, binary, "", "-model", model, "-library", library, "-sha256", hex.EncodeToString(sum[:]), "-name", "scripted", "-threads", "1",
			"-listen", "127.0.0.1:0", "-request-timeout", "1m", "-golden", golden, extra, "-drain-delay", "0s", "-verify-interval", "1s")
		ready(t, c.url)
		for range 2 {
			status, got := do(t, http.MethodPost, c.url+server.PathSystemOne, body)
			got, _, _ = strings.Cut(got, `"reused_tokens"`)
			if first == "" {
				first = got
			}
			if status != 200 || got != first {
				t.Errorf("status %d: %s, first %s", status, got, first)
			}
		}
		if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if code := c.wait(t); code != 0 {
			t.Errorf("exit %d: %s", code, c.stderr)
		}
	}
}
