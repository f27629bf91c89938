package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestRealFilesThatCannotBeServed starts the command itself with real files that are wrong in one way each.
func TestRealFilesThatCannotBeServed(t *testing.T) {
	need(t, smollm2, gemma, minilm, nohead)
	command := program(t)
	is := func(name string) func(*testing.T) string { return func(t *testing.T) string { return model(t, name) } }
	cut := func(n int64) func(*testing.T) string {
		return func(t *testing.T) string { return copied(t, model(t, smollm2), n) }
	}
	change := func(name, old, now string) func(*testing.T) string {
		return func(t *testing.T) string { return copied(t, model(t, name), 0, replaces(t, old, now)) }
	}
	args := func(more ...string) func(*testing.T) []string { return func(*testing.T) []string { return more } }
	const (
		letterA = "\x01\x00\x00\x00\x00\x00\x00\x00A"
		noToken = "\x01\x00\x00\x00\x00\x00\x00\x00\x07"
	)
	tests := map[string]struct {
		model func(*testing.T) string
		args  func(*testing.T) []string
		env   string
		// kib bounds the address space of the process.
		kib string
		// other runs it as a user who may only read.
		other bool
		want  int
		says  []string
	}{
		"a file that is not there":             {model: is("none.gguf"), want: exitUnreadable, says: []string{"ModelUnreadable", "no such file"}},
		"a folder":                             {model: folder, want: exitUnreadable, says: []string{"ModelUnreadable"}},
		"a file that this user may not read":   {model: unreadable, other: true, want: exitUnreadable, says: []string{"ModelUnreadable", "permission denied"}},
		"another file than the pinned one":     {model: is(minilm), args: args("-sha256", wantHash), want: exitHash, says: []string{"ModelHashMismatch", wantHash, sha(t, model(t, minilm))}},
		"a model that was cut in its header":   {model: cut(100_000), want: exitTruncated, says: []string{"ModelTruncated"}},
		"a model that was cut in its weights":  {model: cut(90_000_000), want: exitTruncated, says: []string{"ModelTruncated", "90000000"}},
		"zeros":                                {model: zeros, want: exitNotGGUF, says: []string{"NotGGUF"}},
		"text":                                 {model: text, want: exitNotGGUF, says: []string{"NotGGUF"}},
		"an architecture of another kind":      {model: change(smollm2, "llama", "mamba"), want: exitArchitecture, says: []string{"ArchitectureNotSupported", `"mamba"`}},
		"a model with a decision interface":    {model: decision, want: exitArchitecture, says: []string{"DecisionModelNotSupported", `"a-way-to-decide-by-itself"`}},
		"a header that has no layers":          {model: change(smollm2, "block_count", "black_count"), want: exitMalformed, says: []string{"ModelMalformed", "block_count"}},
		"an encoder without a class head":      {model: is(nohead), want: exitLabels, says: []string{"NoClassHead"}},
		"a class that is no built-in question": {model: change(minilm, "moves_money", "moves_honey"), want: exitLabels, says: []string{"LabelsNotSupported", "moves_honey"}},
		"a letter that is not one token":       {model: change(smollm2, letterA, noToken), want: exitLabels, says: []string{"LabelsNotSupported", "letter A"}},
		"a chat template of another language":  {model: change(smollm2, "{% endfor %}", "{% endfoo %}"), want: exitLabels, says: []string{"TemplateNotSupported"}},
		"a window too small for the questions": {model: is(smollm2), args: args("-context-tokens", "300"), want: exitWindow, says: []string{"WindowTooSmall", "300", "512"}},
		"a window that the model does not have": {model: is(smollm2), args: args("-context-tokens", "9000"), want: exitWindow,
			says: []string{"WindowTooSmall", "9000", "8192"}},
		"too little memory": {model: is(gemma), args: args("-context-tokens", "32768"), kib: "2000000", want: exitMemory, says: []string{"MemoryTooSmall", "MiB are free"}},
		"a folder for the private copy that is read-only": {model: is(minilm), args: scratch, other: true, want: exitUnreadable,
			says: []string{"making a private copy", "permission denied"}},
		"a folder for golden answers that is read-only": {model: is(minilm), other: true, want: exitFiles, says: []string{"recording the answer", "permission denied"},
			args: func(t *testing.T) []string {
				return []string{"-golden-record", "-golden", filepath.Join(readOnly(t), "golden.json")}
			}},
		"a folder for the socket that is read-only": {model: is(minilm), other: true, want: exitListen, says: []string{"listening", "permission denied"},
			args: func(t *testing.T) []string { return []string{"-listen", "unix:" + filepath.Join(readOnly(t), "s")} }},
		"a library of another version": {model: is(minilm), args: library(func(t *testing.T, dir string) {
			path := filepath.Join(dir, "libllama.v0.5.0.so")
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			put(t, path, append(b, 0))
		}), want: exitLibraryHash, says: []string{"LibraryMismatch", "libllama.v0.5.0.so", "want SHA-256", "got"}},
		"a library that nobody pinned": {model: is(minilm), args: library(func(t *testing.T, dir string) {
			put(t, filepath.Join(dir, "libggml-cpu-other.so"), []byte("no library"))
		}), want: exitLibraryHash, says: []string{"LibraryMismatch", "libggml-cpu-other.so is no part of"}},
		"a library of the environment": {model: is(minilm), env: "GGML_BACKEND_PATH=/lib/x.so", want: exitLibraryHash, says: []string{"GGML_BACKEND_PATH"}},
		"a library that is missing": {model: is(minilm), args: library(func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "libggml-base.so")); err != nil {
				t.Fatal(err)
			}
		}), want: exitLibrary, says: []string{"LibraryMissing", "libggml-base.so"}},
		"no folder of libraries": {model: is(minilm), args: args("-library", "/none"), want: exitLibrary, says: []string{"LibraryMissing", "/none"}},
		"a way of reading that the file does not have": {model: is(minilm), args: args("-readout", "LabelLogits"), want: exitMismatch,
			says: []string{"ReadoutMismatch", "ClassHead"}},
		"temperatures that were fitted for another file": {model: is(minilm), args: args("-calibrated-for", "sha256:"+wantHash), want: exitMismatch,
			says: []string{"CalibrationMismatch", wantHash}},
		"no golden answer on record": {model: is(minilm), args: args("-golden", "/none/golden.json"), want: exitGoldenMissing, says: []string{"golden question"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			all := serves(t, tt.model(t))
			if tt.args != nil {
				all = append(all, tt.args(t)...)
			}
			cmd := exec.CommandContext(t.Context(), command, all...)
			if tt.kib != "" {
				cmd = exec.CommandContext(t.Context(), "sh", slices.Concat([]string{"-c", `ulimit -v "$0" && exec "$@"`, tt.kib, command}, all)...)
			}
			if tt.env != "" {
				cmd.Env = append(os.Environ(), tt.env)
			}
			if tt.other {
				without(cmd)
			}
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != tt.want {
				t.Errorf("exit %d (%v), want %d", cmd.ProcessState.ExitCode(), err, tt.want)
			}
			checkReason(t, stdout.String(), stderr.String(), tt.says)
		})
	}
}

// checkReason wants one line with the reason at the end of standard error, before it at most a log, and no sign that
// anybody could have been answered.
func checkReason(t *testing.T, stdout, stderr string, says []string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
	last := lines[len(lines)-1]
	if !strings.HasPrefix(last, "decider: ") {
		t.Errorf("standard error ends with %q", last)
	}
	for _, part := range says {
		if !strings.Contains(last, part) {
			t.Errorf("%q does not say %q", last, part)
		}
	}
	for _, line := range lines[:len(lines)-1] {
		if !strings.HasPrefix(line, "{") || strings.Contains(line, `"msg":"ready"`) {
			t.Errorf("before its reason it says %q", line)
		}
	}
	if loading := strings.Contains(last, "loading model"); loading && (stdout != "" || len(lines) != 1) {
		t.Errorf("it says more than why: %q, %q", stdout, stderr)
	}
}

func zeros(t *testing.T) string {
	path := written(t, nil)
	if err := os.Truncate(path, 98_362_432); err != nil { // as long as a real one
		t.Fatal(err)
	}
	return path
}

func text(t *testing.T) string {
	return written(t, bytes.Repeat([]byte("This is what a page says that is shown in place of a download.\n"), 10_000))
}

func unreadable(t *testing.T) string {
	path := copied(t, model(t, minilm), 0)
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	return path
}

// decision is a real model whose header has one more entry, as native decision models have it.
func decision(t *testing.T) string {
	return copied(t, model(t, smollm2), 0, func(b []byte) []byte {
		// 64 bytes more, so that the weights still begin at a multiple of 32.
		const key, value = "llama.decision.type", "a-way-to-decide-by-itself"
		var entry []byte
		entry = binary.LittleEndian.AppendUint64(entry, uint64(len(key)))
		entry = append(entry, key...)
		entry = binary.LittleEndian.AppendUint32(entry, 8) // a text
		entry = binary.LittleEndian.AppendUint64(entry, uint64(len(value)))
		entry = append(entry, value...)
		const first = 24 // after magic, version, and the numbers of tensors and entries
		b = slices.Insert(b, first, entry...)
		binary.LittleEndian.PutUint64(b[16:], binary.LittleEndian.Uint64(b[16:])+1)
		return b
	})
}

// readOnly is a folder in which only the superuser may write.
func readOnly(t *testing.T) string {
	t.Helper()
	dir := folder(t)
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	return dir
}

func scratch(t *testing.T) []string { return []string{"-scratch", readOnly(t)} }

// library makes a folder of the real libraries in which something is changed.
func library(change func(t *testing.T, dir string)) func(*testing.T) []string {
	return func(t *testing.T) []string {
		dir := folder(t)
		entries, err := os.ReadDir(cache(t, "llama"))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if err := os.Symlink(filepath.Join(cache(t, "llama"), e.Name()), filepath.Join(dir, e.Name())); err != nil {
				t.Fatal(err)
			}
		}
		change(t, dir)
		return []string{"-library", dir}
	}
}

// put replaces a file, or the link of that name.
func put(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
