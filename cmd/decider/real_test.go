package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"gatewright.dev/gatewright/internal/inference/server"
)

// The real files, as hack/llama/fetch.sh puts them into the cache.
const (
	smollm2 = "SmolLM2-135M-Instruct.Q4_1.gguf"
	gemma   = "gemma-3-270m-q4_k_m.gguf"
	minilm  = "minilm-classhead-fixture.f16.gguf"
	nohead  = "minilm-no-head.f16.gguf"
)

// cache is where hack/llama/fetch.sh puts libraries and models, or the folder that GATEWRIGHT_LLAMA_CACHE names. The path
// is absolute, since a decider of a test may run elsewhere.
func cache(t *testing.T, parts ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(append([]string{cmp.Or(os.Getenv("GATEWRIGHT_LLAMA_CACHE"), "../../.cache")}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func model(t *testing.T, name string) string { return cache(t, "models", name) }

// need skips a test whose real files were not fetched; with GATEWRIGHT_REQUIRE_MODELS=1 it fails.
func need(t *testing.T, models ...string) {
	t.Helper()
	paths := []string{cache(t, "llama", "libllama.so")}
	for _, name := range models {
		paths = append(paths, model(t, name))
	}
	for _, path := range paths {
		if _, err := os.Stat(path); err != nil {
			if os.Getenv("GATEWRIGHT_REQUIRE_MODELS") == "1" {
				t.Fatalf("%s is required and not there: run hack/llama/fetch.sh", filepath.Base(path))
			}
			t.Skipf("%s is not there: run hack/llama/fetch.sh", filepath.Base(path))
		}
	}
}

// built is the command, compiled once for all tests and removed by TestMain.
var built struct {
	sync.Once
	folder string
	err    error
}

func program(t *testing.T) string {
	t.Helper()
	built.Do(func() {
		if built.folder, built.err = os.MkdirTemp("", "decider-*"); built.err != nil { //nolint:usetesting // it outlives this test
			return
		}
		if built.err = os.Chmod(built.folder, 0o755); built.err != nil {
			return
		}
		out, err := exec.Command("go", "build", "-o", filepath.Join(built.folder, "decider"), ".").CombinedOutput()
		if err != nil {
			built.err = errors.Join(err, errors.New(string(out)))
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.folder, "decider")
}

// sha is the hash of a file, or zeros if there is none to read.
func sha(t *testing.T, path string) string {
	t.Helper()
	h := sha256.New()
	f, err := os.Open(path)
	if err != nil {
		return strings.Repeat("0", 64)
	}
	defer f.Close()
	if _, err := io.Copy(h, f); err != nil {
		return strings.Repeat("0", 64)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// serves are arguments with which a real model is served. Later ones outrank them.
func serves(t *testing.T, path string, more ...string) []string {
	t.Helper()
	return append([]string{"-model", path, "-sha256", sha(t, path), "-library", cache(t, "llama"), "-name", "judge", "-threads", "1",
		"-listen", "127.0.0.1:0", "-request-timeout", "1m", "-drain-delay", "0s"}, more...)
}

// folder is one that other users of the machine can enter.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// without takes away what the superuser may do, for whom no folder is read-only.
func without(cmd *exec.Cmd) {
	if os.Geteuid() == 0 {
		const nobody = 65534
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
}

// copied is a copy of the first n bytes of a file, all of them if n is 0, after a change.
func copied(t *testing.T, from string, n int64, change ...func([]byte) []byte) string {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if n > 0 {
		b = b[:n]
	}
	for _, f := range change {
		b = f(b)
	}
	return written(t, b)
}

func written(t *testing.T, b []byte) string {
	t.Helper()
	path := filepath.Join(folder(t), "model.gguf")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// replaces changes a text, wherever it stands, into one of the same length.
func replaces(t *testing.T, old, now string) func([]byte) []byte {
	return func(b []byte) []byte {
		if len(old) != len(now) || !bytes.Contains(b, []byte(old)) {
			t.Fatalf("%q cannot be replaced", old)
		}
		return bytes.ReplaceAll(b, []byte(old), []byte(now))
	}
}

const cancelOrder = `{"model":"judge","state":{"user_request":"Please cancel order 7, I do not need it any more.","proposed_call":{"tool":"cancel_order",` +
	`"arguments":{"order":"7"}}},"questions":{"q":{"type":"noul","instructions":"Does ` + "`proposed_call`" + ` cancel the order that the user named?"}}}`

// answers is what stands in a reply but for the tokens that were not computed again.
func answers(t *testing.T, url, body string) string {
	t.Helper()
	status, got := do(t, http.MethodPost, url+server.PathSystemOne, body)
	got, _, _ = strings.Cut(got, `"reused_tokens"`)
	if status != 200 {
		t.Errorf("status %d: %s", status, got)
	}
	return got
}

// TestARealModel serves a model as the command does, asks it twice, and starts it again with the golden answer of the first
// time.
func TestARealModel(t *testing.T) {
	need(t, smollm2)
	golden := filepath.Join(t.TempDir(), "golden.json")
	var first string
	for _, extra := range []string{"-golden-record", "-golden-record=false"} {
		c := spawnProgram(t, program(t), "", serves(t, model(t, smollm2), "-context-tokens", "512", "-golden", golden, extra)...)
		ready(t, c.url)
		for range 2 {
			got := answers(t, c.url, cancelOrder)
			first = cmp.Or(first, got)
			if got != first {
				t.Errorf("got %s, first %s", got, first)
			}
		}
		c.ends(t)
	}
}

// ends tells a decider to end, and expects that it does so in peace.
func (c *child) ends(t *testing.T) {
	t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := c.wait(t); code != exitOK {
		t.Errorf("exit %d: %s", code, c.stderr)
	}
}
