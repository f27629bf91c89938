package keywatch

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestKeysThatCannotBeReadAreCountedAndTriedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	write(t, path, "one")
	broken, reads := errors.New("broken"), 0
	held := []string{"a"}
	f := &File{Name: "seal-key", Paths: []string{path}, IDs: func() []string { return slices.Clone(held) }, Reload: func() error {
		reads++
		if broken == nil {
			held = []string{"b", "a"}
		}
		return broken
	}}
	log := &bytes.Buffer{}
	w := New([]*File{f}, slog.New(slog.NewJSONHandler(log, nil)))
	counted := func() float64 { return testutil.ToFloat64(w.failures.WithLabelValues("seal-key")) }
	for _, step := range []struct {
		name         string
		change       func()
		reads        int
		failures     float64
		wantReported bool
	}{
		{"a file is read the first time", func() {}, 1, 1, false},
		{"a file that stays as it is", func() {}, 1, 1, false},
		{"a file that has changed and can be read", func() { broken = nil; write(t, path, "other") }, 2, 1, true},
		{"a file that is gone", func() { broken = os.ErrNotExist; _ = os.Remove(path) }, 3, 2, true},
		{"a file that stays away", func() {}, 3, 2, true},
		{"a file that is back", func() { broken = nil; write(t, path, "other") }, 4, 2, true},
	} {
		step.change()
		w.look(t.Context())
		got := []any{reads, counted(), strings.Contains(log.String(), `"kids":["b","a"]`)}
		if diff := cmp.Diff([]any{step.reads, step.failures, step.wantReported}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}
