package main

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gatewright.dev/gatewright/internal/inference/server"
)

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
