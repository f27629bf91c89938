package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatewright.dev/gatewright/internal/inference/llama"
	"gatewright.dev/gatewright/internal/inference/server"
)

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
	file := filepath.Join(dir, "prose")
	if err := os.WriteFile(file, []byte("no answers"), 0o600); err != nil {
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
		"a golden file that is none":            {enough("-golden", file), exitFiles, "reading " + file},
		"no folder for a golden answer":         {enough("-golden", filepath.Join(dir, "none", "x"), "-golden-record"), exitFiles, "recording the answer"},
		"no golden answer":                      {enough("-golden", filepath.Join(dir, "none")), exitGoldenMissing, "golden question"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := &scripted{}
			if code, line := try(t, opens(e), tt.args...); code != tt.want || !strings.Contains(line, tt.line) {
				t.Errorf("exit %d, %s", code, line)
			}
			if golden := strings.Contains(strings.Join(tt.args, " "), "-golden"); e.closed != golden {
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
