package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/inference/server"
	"gatewright.dev/gatewright/internal/questions"
)

const wasAsked = `{"model":"judge","state":{"user_request":"Cancel order 7.","proposed_call":{"tool":"cancel_order","arguments":{"order":"7"}}},` +
	`"questions":{"asked":`

// asksBuiltin is a request about one built-in question in the words of the set.
func asksBuiltin(t *testing.T, name string) string {
	t.Helper()
	q, ok := questions.Builtin(name)
	if !ok {
		t.Fatalf("no built-in question %s", name)
	}
	text, err := json.Marshal(map[string]any{"type": "noul", "instructions": q.Instructions, "criteria": map[string]string{"true": q.WhenTrue, "false": q.WhenFalse}})
	if err != nil {
		t.Fatal(err)
	}
	return wasAsked + string(text) + "}}"
}

// TestAFileThatChangesWhileItIsServed overwrites, cuts and removes the file, of which the server has a copy.
func TestAFileThatChangesWhileItIsServed(t *testing.T) {
	need(t, minilm)
	for name, scratch := range map[string]string{"with the copy in memory": "", "with the copy in a folder": folder(t)} {
		t.Run(name, func(t *testing.T) {
			path := copied(t, model(t, minilm), 0)
			c := spawnProgram(t, program(t), "", serves(t, path, "-scratch", scratch, "-verify-interval", "1s")...)
			ready(t, c.url)
			body := asksBuiltin(t, "asked")
			before := answers(t, c.url, body)
			for _, change := range []func() error{
				func() error { return os.WriteFile(path, bytes.Repeat([]byte("x"), 46_824_416), 0o600) },
				func() error { return os.Truncate(path, 0) },
				func() error { return os.Remove(path) },
			} {
				if err := change(); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(before, answers(t, c.url, body)); diff != "" {
					t.Errorf("another answer after the file changed:\n%s", diff)
				}
			}
			seen := verified(t, c.url)
			eventually(t, "the copy is found right after the file is gone", func() bool { return verified(t, c.url) > seen+1 })
			c.ends(t)
		})
	}
}

func verified(t *testing.T, url string) (n int) {
	t.Helper()
	_, text := get(t, url+"/metrics")
	_, line, ok := strings.Cut(text, `gatewright_decider_server_verifications_total{result="ok"} `)
	if _, err := fmt.Sscan(line, &n); ok && err != nil {
		t.Fatal(err)
	}
	return n
}

// TestLoadedBytesThatChange reaches into the process for its private copy, as the superuser of a node could.
func TestLoadedBytesThatChange(t *testing.T) {
	need(t, minilm)
	t.Run("a file without a name is noticed", func(t *testing.T) {
		c := spawnProgram(t, program(t), "", serves(t, model(t, minilm), "-scratch", t.TempDir(), "-verify-interval", "1s")...)
		ready(t, c.url)
		if err := scribble(t, c.cmd.Process.Pid, "model-"); err != nil {
			t.Fatal(err)
		}
		code := c.wait(t)
		lines := strings.Split(strings.TrimSpace(c.stderr.String()), "\n")
		last := lines[len(lines)-1]
		if code != exitIntegrity || strings.Count(last, sha(t, model(t, minilm))) != 1 || !strings.Contains(last, "got ") {
			t.Errorf("exit %d: %s", code, last)
		}
	})
	t.Run("sealed memory refuses", func(t *testing.T) {
		c := spawnProgram(t, program(t), "", serves(t, model(t, minilm), "-verify-interval", "1s")...)
		ready(t, c.url)
		if err := scribble(t, c.cmd.Process.Pid, "memfd:model"); !errors.Is(err, syscall.EPERM) && !errors.Is(err, syscall.EACCES) {
			t.Errorf("got %v", err)
		}
		c.ends(t)
	})
}

// scribble changes the last byte of the open file of a process whose name holds a text.
func scribble(t *testing.T, pid int, name string) error {
	t.Helper()
	folder := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		if target, err := os.Readlink(path); err != nil || !strings.Contains(target, name) {
			continue
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		stat, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, stat.Size()-1); err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteAt([]byte{^last[0]}, stat.Size()-1)
		return err
	}
	t.Fatalf("process %d has no open file %s", pid, name)
	return nil
}

// TestAClassHead serves an encoder from a folder that is read-only to a user without rights, and asks it as the gate does.
func TestAClassHead(t *testing.T) {
	need(t, minilm)
	dir := readOnly(t)
	path := filepath.Join(dir, "model.gguf")
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(copied(t, model(t, minilm), 0), path); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{path: 0o444, dir: 0o555} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	c := spawnChanged(t, program(t), "", without, serves(t, path)...)
	ready(t, c.url)
	defer c.ends(t)
	supported := []string{"asked", "matches_request", "exceeds_scope", "declined", "same_item", "deletes_data", "moves_money", "leaves_the_system"}
	t.Run("it is listed with its questions", func(t *testing.T) {
		_, listed := get(t, c.url+server.PathModels)
		if want := `"questions":["` + strings.Join(supported, `","`) + `"]`; !strings.Contains(listed, want) || !strings.Contains(listed, `"readout":"ClassHead"`) {
			t.Errorf("%s does not hold %s", listed, want)
		}
	})
	transport := inference.NewTransport()
	t.Cleanup(transport.CloseIdleConnections)
	client, err := inference.NewSystemOne(inference.SystemOneOptions{ServerOptions: inference.ServerOptions{BaseURL: c.url, Model: "judge", Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	state := questions.State{
		Tool: questions.Tool{Name: "cancel_order"}, UserTurns: []string{"Cancel order 7."}, Arguments: map[string]any{"order": "7"},
		Facts: questions.Facts{SchemaValid: questions.True},
	}
	t.Run("one request answers all of them", func(t *testing.T) {
		all, err := client.Decide(t.Context(), inference.Request{State: state, Questions: builtins(t, supported...)})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range supported {
			one, err := client.Decide(t.Context(), inference.Request{State: state, Questions: builtins(t, name)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(one.Answers[name], all.Answers[name]); diff != "" || len(all.Answers) != len(supported) {
				t.Errorf("%s alone and with %d others:\n%s", name, len(all.Answers)-1, diff)
			}
		}
	})
	for _, name := range questions.BuiltinNames() {
		if slices.Contains(supported, name) {
			continue
		}
		t.Run(name+" is refused, alone and with others", func(t *testing.T) {
			for _, asked := range [][]questions.Question{builtins(t, name), builtins(t, "asked", name)} {
				result, err := client.Decide(t.Context(), inference.Request{State: state, Questions: asked})
				if inference.ReasonOf(err) != inference.QuestionNotSupported || len(result.Answers) != 0 {
					t.Errorf("got %v and %d answers", err, len(result.Answers))
				}
			}
		})
	}
	t.Run("a state beyond the window is refused with both counts", func(t *testing.T) {
		long := strings.ReplaceAll(asksBuiltin(t, "asked"), "Cancel order 7.", strings.Repeat("Cancel order 7. ", 400))
		status, text := do(t, http.MethodPost, c.url+server.PathSystemOne, long)
		var refused struct {
			Detail struct {
				Type          string `json:"error_type"`
				Tokens, Limit int
			}
		}
		if err := json.Unmarshal([]byte(text), &refused); err != nil {
			t.Fatal(err)
		}
		d := refused.Detail
		if status != 413 || d.Type != "max_tokens_exceeded" || d.Limit != 512 || d.Tokens < 4*400 || strings.Contains(text, "Cancel") {
			t.Errorf("status %d: %s", status, text)
		}
	})
	t.Run("a question in other words is refused by its name", func(t *testing.T) {
		status, text := do(t, http.MethodPost, c.url+server.PathSystemOne, wasAsked+`{"type":"noul","instructions":"Was it asked?"}}}`)
		if status != 422 || !strings.Contains(text, `"question_not_supported"`) || !strings.Contains(text, `"question":"asked"`) {
			t.Errorf("status %d: %s", status, text)
		}
	})
}

func builtins(t *testing.T, names ...string) []questions.Question {
	t.Helper()
	var all []questions.Question
	for _, name := range names {
		q, ok := questions.Builtin(name)
		if !ok {
			t.Fatalf("no built-in question %s", name)
		}
		all = append(all, q)
	}
	return all
}
