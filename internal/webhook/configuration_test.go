package webhook

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"gatewright.dev/gatewright/internal/names"
)

var update = flag.Bool("update", false, "write config/webhook/webhooks.yaml and the golden messages")

const generated = "# What tells the API server to ask the manager. Written by `go test ./internal/webhook -run Configuration -update`.\n"

// What is installed is what the code says.
func TestConfiguration(t *testing.T) {
	var documents []string
	for _, o := range []any{Validating(names.Namespace), Mutating(names.Namespace)} {
		data, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, strings.ReplaceAll(string(data), "  creationTimestamp: null\n", ""))
	}
	golden(t, filepath.Join("..", "..", "config", "webhook", "webhooks.yaml"), generated+strings.Join(documents, "---\n"))
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not up to date, run with -update (-want +got):\n%s", path, diff)
	}
}
